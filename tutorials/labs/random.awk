# random.awk - random step files for graders: awk -v seed=N [-v NAME=VALUE ...] -f tutorials/labs/random.awk
#
#     n=TASKS     how many (default 21)
#     lanes=L     compute lanes of device a (3)
#     keep=PCT    tensors that are kept from step to step, of a hundred (30)
#     join=1      fork and join: every fifth task, and the last, comes after all before it; no wait crosses the end
#     parts=1     tasks touch parts of tensors
#     share=1     tensors may get the bytes of others
#     every=1     some tasks do not run in every step
#     copies=own|shared   a third of the tasks are copies, each lane of copies with links of its own, or links in common
#     latency=1   links have one
#
# Each tensor that is not kept is written before it is read.  The numbers are those of Park and Miller (1988).

function draw(low, high) { # a whole number
    state = state * 16807 % 2147483647
    return low + state % (high - low + 1) }
function chance(percent) { return draw(1, 100) <= percent }

function part(i,   from) { # of tensor i; all of it where it has to be written first
    if (!parts || !written[i] || chance(40)) return name[i]
    from = draw(0, bytes[i] - 2)
    return name[i] "[" from ":" draw(from + 1, bytes[i]) "]" }

function any(device, is_written,   i, tries) { # one of the device's tensors, or 0
    while (tries++ < 50) {
        i = draw(1, tensors)
        if (home[i] == device && (!is_written || written[i])) return i }
    return 0 }

function work(i,   lane, reads, x, y, k, late) {
    lane = draw(0, lanes - 1)
    for (k = draw(0, 2); k > 0; k--) {
        y = any("a", 1)
        if (y && y != x) { reads = reads "," part(y); x = y } }
    do y = any("a", 0); while (y == x)
    late = written[y]
    x = part(y); written[y] = 1 # in this order: its first write is to all of it
    printf "task t%d %s %d.%03dms%s writes=%s%s\n", i, lane_name(lane), draw(0, 2), draw(1, 999),
        reads ? " reads=" substr(reads, 2) : "", x, every && late && chance(60) ? " every=" draw(2, 3) : "" }
function lane_name(k) { return "a.compute" (k ? k : "") }

# Task 1, and every fifth one, is on the first lane and reads what others have written since; they read what it wrote.
function fork_or_join(i,   lane, k, reads) {
    lane = i % 5 == 1 ? 0 : draw(0, lanes - 1)
    for (k = 0; k < lanes && i % 5 == 1; k++) if (k in touched) reads = reads ",l" k
    if (i % 5 == 1) split("", touched)
    else touched[lane]
    printf "task t%d %s %d.%03dms%s writes=%s\n", i, lane_name(lane), draw(0, 2), draw(1, 999),
        i % 5 != 1 ? " reads=f" : reads ? " reads=" substr(reads, 2) : "", i % 5 == 1 ? "f" : "l" lane }

function copy(i,   from, to, x, y, k, lane) {
    do { from = substr("abh", draw(1, 3), 1); to = substr("abh", draw(1, 3), 1) }
    while (from == to || copies == "own" && from != "h" && to != "h")
    x = any(from, 1); y = any(to, 1)
    if (!x || !y) return
    k = draw(1, bytes[x] < bytes[y] ? bytes[x] : bytes[y])
    lane = from == "h" ? to ".upload" : from ".download"
    if (copies == "shared" && chance(50)) lane = lane "1"
    printf "copy c%d %s[0:%d] %s[0:%d] lane=%s\n", i, name[y], k, name[x], k, lane }

function link(devices, way) {
    printf "link %s %s %d%s\n", devices, way, 1000 * draw(200, 2000), latency ? " " draw(50, 900) "us" : "" }

BEGIN {
    state = seed * seed * 7919 + seed * 104729 + 1
    for (i = 0; i < 5; i++) draw(0, 1)
    n = n ? n : 21; lanes = lanes ? lanes : 3; keep = keep == "" ? 30 : keep; tensors = int(n / 2) + 2
    if (join) n -= (n - 1) % 5
    print "device a memory=1M" (share ? " share" : "")
    for (i = 1; i < lanes; i++) print "lane a.compute" i
    if (copies) {
        print "device b memory=1M"
        for (i = 1; i <= 4; i++) {
            way = i % 2 ? "up" : "down"
            if (copies == "shared") print "lane " (i < 3 ? "a." : "b.") way "load1"
            if (copies == "own" || i < 3) link(copies == "own" ? (i < 3 ? "a" : "b") : "a,b", way) } }
    for (i = 1; i <= tensors; i++) {
        home[i] = !copies || i < 3 ? "a" : substr("aabh", draw(1, 4), 1)
        name[i] = home[i] i; bytes[i] = draw(100, 2000); written[i] = home[i] != "a" || chance(keep)
        printf "tensor %s %s %d %s\n", name[i], home[i] == "h" ? "host" : home[i], bytes[i],
            written[i] ? "parameters" : "activations" }
    if (join) for (i = 0; i <= lanes; i++) printf "tensor %s a 100 activations\n", i < lanes ? "l" i : "f"
    for (i = 1; i <= n; i++)
        if (copies && i > 3 && chance(35)) copy(i)
        else if (join) fork_or_join(i)
        else work(i) }
