# gallery.awk - writes a step file of the gallery: what its entry says as a comment, then the list of its generator.
#
#     awk -v name=zb-h1 [-v set="p=8 m=32"] -f gallery.awk entries
#
# `make GENERATOR NAME=VALUE ...` of an entry calls a function below; the values are in v[], and `set` changes them.

# ---- pipelines -------------------------------------------------------------------------------------------------------
#
# p devices, m micro-batches.  A micro-batch passes stages 0, 1, ... and comes back.  Where a device has several, they
# are dealt round (stage k is on device k % p) or folded as a V (0 1 2 3 3 2 1 0).  What is done on a stage:
#
#     F   forward              D   the gradient of its input        W   those of its weights
#     B   D and W in one       O   F of one stage and B of another, overlapped
#
# An order takes the turns of device s.  Each stage takes its micro-batches in order.

function take(what, k) {
    turn[s, ++turns[s]] = what " " k " " taken[what == "B" ? "D" : what, k]++
    if (what == "B") taken["W", k]++
    if (what == "D") owed[s, ++owes[s]] = k }
function pay() { take("W", owed[s, ++paid[s]]) } # the W that waits longest
function both(k, j) { # the last two turns are one
    take("F", k); take("B", j)
    turns[s]--; turn[s, turns[s]] = "O" substr(turn[s, turns[s]], 2) substr(turn[s, turns[s] + 1], 2) }

function gpipe(   i) {
    for (i = 0; i < m; i++) take("F", s)
    for (i = 0; i < m; i++) take("B", s) }

function one_f_one_b(   i, ahead) { # as many forwards first as there are stages behind
    ahead = p - 1 - s
    for (i = -ahead; i < m; i++) {
        if (i + ahead < m) take("F", s)
        if (i >= 0) take("B", s) } }

function interleaved(   i, n, ahead) { # p micro-batches pass the first stage of each device, then the second, ...
    n = m * chunks; ahead = 2 * (p - 1 - s) + (chunks - 1) * p
    for (i = -ahead; i < n; i++) {
        if (i + ahead < n) take("F", int((i + ahead) / p) % chunks * p + s)
        if (i >= 0) take("B", (chunks - 1 - int(i / p) % chunks) * p + s) } }

function zero_bubble(   i, ahead) { # k times as many forwards first; each stage puts k W more off than the one before
    ahead = v["k"] * (p - 1 - s)
    for (i = -ahead; i < m; i++) {
        if (i + ahead < m) take("F", s)
        if (i >= 0) take("D", s)
        if (i >= 0 && (i >= v["k"] * s || i + ahead >= m)) pay() }
    while (paid[s] < m) pay() }

function zb_v(   i, x, y) { # x on the way down the V, y on the way up
    x = s; y = 2 * p - 1 - s
    for (i = 0; i < 2 * (p - s) - 1; i++) take("F", x)
    for (i = 0; i < s; i++) { take("F", y); take("F", x) }
    for (i = 0; i < p - s; i++) { take("F", y); take("D", y); pay() }
    while (taken["F", y] < m) {
        if (taken["F", x] < m) take("F", x)
        take("D", x); pay(); take("F", y); take("D", y); pay() }
    for (i = 0; i < s; i++) { take("D", x); take("D", y) }
    for (i = 0; i < p - s; i++) { take("D", x); pay() }
    while (paid[s] < owes[s]) pay() }

# DeepSeek's eight parts.  A device has a stage of either direction; h counts devices from the pipeline's ends, and q
# are on one half of it.  In DualPipe-V the other half is folded onto this one, and both directions are one chain.
function dual(   i, h, q, x, y) {
    q = chain / 2; h = s < q ? s : p - 1 - s; x = s; y = 2 * p - 1 - s
    if (s >= q) { x = y; y = s }
    for (i = 0; i < 2 * (q - h - 1); i++) take("F", x)
    for (i = 0; i <= h; i++) { take("F", x); take("F", y) }
    for (i = 0; i < q - h - 1; i++) { take("D", y); pay(); take("F", y) }
    for (i = 0; i < m - 2 * q + h + 1; i++) {
        if (i == 0 && h == q - 1) { take("F", x); take("B", y) } else both(x, y)
        both(y, x) }
    for (i = 0; i < q - h - 1; i++) { take("B", y); both(y, x) }
    for (i = 0; i < 2 * (h + 1); i++) take(i <= h ? "B" : "D", i % 2 ? x : y)
    for (i = 0; i < q - h - 1; i++) { pay(); take("D", x) }
    for (i = 0; i <= h; i++) pay() }

function home(k) { return v["fold"] && k >= p ? 2 * p - 1 - k : k % p }
function is_first(k) { return k % chain == 0 }
function is_last(k) { return k % chain == chain - 1 }
function number(k, u) { return u + int(k / chain) * m } # of a micro-batch, over both directions

function ready(what, k, u) {
    if (what == "W") return ("D", k, u) in did
    if (what == "F") return is_first(k) || (("F", k - 1, u) in did)
    return is_last(k) ? (("F", k, u) in did) : (("D", k + 1, u) in did) }

# Adds what it reads and writes to `reads` and `writes`, and what is sent then to `sends`: x to the next stage, y back.
function access(what, k, u,   id) {
    id = k "." u
    reads = reads (what == "W" ? ",d" id : ",w" k) (what != "F" ? ",a" id : is_first(k) ? "" : ",x" id)
    if (what ~ /[DB]/ && !is_last(k)) reads = reads ",y" id
    if (what ~ /[WB]/) reads = reads (k in began ? ",g" k : "")
    writes = writes (what == "F" ? ",a" id : what == "D" ? ",d" id : what == "W" ? ",g" k : ",d" id ",g" k)
    if (what ~ /[WB]/) began[k]
    did[what == "B" ? "D" : what, k, u]
    if (what == "F" && !is_last(k)) send("x" k + 1 "." u, "a" id "[0:1M]", k, u)
    if (what ~ /[DB]/ && !is_first(k)) send("y" k - 1 "." u, "d" id, k, u) }
function send(to, from, k, u) {
    sends = sends sprintf("copy send %s %s lane=s%d.compute layer=%d micro=%d role=send\n",
        to, from, s, k, number(k, u)) }

function do_turn(part,   what) {
    reads = writes = sends = ""; what = part[1]
    access(what == "O" ? "F" : what, part[2], part[3])
    if (what == "O") access("B", part[4], part[5])
    printf "task %s s%d.compute %gms layer=%d micro=%d role=%s reads=%s writes=%s\n%s", what == "O" ? "F&B" : what, s,
        (what == "B" ? v["D"] + v["W"] : v[what]) * p / chain, part[2], number(part[2], part[3]),
        what == "F" ? "forward" : "backward", substr(reads, 2), substr(writes, 2), sends }

function refuse(what) { print "gallery.awk: no " what > "/dev/stderr"; exit 1 }
function take_turns() {
    if (v["order"] == "gpipe") gpipe()
    else if (v["order"] == "1f1b") one_f_one_b()
    else if (v["order"] == "interleaved") interleaved()
    else if (v["order"] == "zb") zero_bubble()
    else if (v["order"] == "zb-v") zb_v()
    else if (v["order"] == "dual") dual()
    else refuse("order=" v["order"] " in take_turns") }

function stage_tensors(k, bytes,   u) {
    tensor("w" k, "s" home(k), bytes, "parameters"); tensor("g" k, "s" home(k), bytes, "gradients")
    for (u = 0; u < m; u++) {
        tensor("a" k "." u, "s" home(k), bytes, "activations"); tensor("d" k "." u, "s" home(k), MiB, "work")
        if (!is_first(k)) tensor("x" k "." u, "s" home(k), MiB, "work")
        if (!is_last(k)) tensor("y" k "." u, "s" home(k), MiB, "work") } }

function pipeline(   k, left, part, at, stuck) {
    p = v["p"]; chunks = v["chunks"] ? v["chunks"] : 1; chain = v["chain"] ? v["chain"] : p * chunks
    m = v["m"] * chain / (p * chunks)
    for (s = 0; s < p; s++) print "device s" s " memory=64G"
    for (k = 0; k < p * chunks; k++) stage_tensors(k, v["A"] * MiB * p / chain)
    for (s = 0; s < p; s++) { take_turns(); left += turns[s]; at[s] = 1 }
    for (s = 0; left > 0; s = (s + 1) % p) { # in rounds: each device takes its next turn if it can
        split(turn[s, at[s]], part)
        if (at[s] > turns[s] || !ready(part[1] == "O" ? "F" : part[1], part[2], part[3]) ||
            part[1] == "O" && !ready("B", part[4], part[5])) {
            if (++stuck > p) refuse("device can go on: the orders wait for one another")
            continue }
        do_turn(part); at[s]++; left--; stuck = 0 }
    for (k = 0; k < p * chunks; k++)
        task("update", "s" home(k) ".compute", 0, "update layer=" k, "g" k ",w" k, "w" k) }

# ---- data on links ---------------------------------------------------------------------------------------------------
#
# n devices, each with a link of its own that moves `rate` bytes per second each way.

function tensor(name, device, bytes, class) { printf "tensor %s %s %.0f %s\n", name, device, bytes, class }
function task(name, lane, ms, role, reads, writes) {
    printf "task %s %s %gms role=%s%s writes=%s\n", name, lane, ms, role, reads == "" ? "" : " reads=" reads, writes }
function on(r, name, role, reads, writes) { # a task on device r; forwards take F ms and backwards B ms
    task(name, "r" r ".compute", v[name == "forward" ? "F" : name == "backward" ? "B" : 0], role, reads, writes) }
function machine(   r) {
    n = v["n"]
    for (r = 0; r < n; r++)
        print "device r" r " memory=8000G\nlink r" r " up " v["rate"] "\nlink r" r " down " v["rate"] }
function share(name, k, of, bytes) { # number k of `of`
    return sprintf("%s[%.0f:%.0f]", name, k * bytes / of, (k + 1) * bytes / of) }

# Each sends a share to its neighbour, n - 1 times, and adds what it gets: then each has the sum of one share.  Sent on
# n - 1 times more, all have all sums.
function ring(   r, i, k, q, mine) {
    machine()
    for (r = 0; r < n; r++) {
        tensor("w" r, "r" r, v["S"], "parameters"); tensor("g" r, "r" r, v["S"], "gradients")
        tensor("b" r, "r" r, v["S"], "work") }
    for (r = 0; r < n; r++) on(r, "backward", "backward", "w" r, "g" r)
    for (i = 0; i < 2 * (n - 1); i++) for (r = 0; r < n; r++) {
        q = (r + 1) % n; k = (r - i + 2 * n) % n; mine = share("g" q, k, n, v["S"])
        printf "copy send %s %s role=reduce micro=%d\n", i < n - 1 ? share("b" q, k, n, v["S"]) : mine,
            share("g" r, k, n, v["S"]), k
        if (i < n - 1) on(q, "add", "reduce", share("b" q, k, n, v["S"]) "," mine, mine) }
    for (r = 0; r < n; r++) on(r, "update", "update", "g" r ",w" r, "w" r) }

# Device 0 sends its parameters to 1, which passes each of M slices on as soon as it has it, and so on.
function chain_of_sends(   r, i) {
    machine()
    for (r = 0; r < n; r++) { tensor("w" r, "r" r, v["S"], "parameters"); tensor("g" r, "r" r, 1024, "gradients") }
    for (r = 0; r < n; r++) on(r, "backward", "backward", "w" r, "g" r)
    on(0, "update", "update", "g0,w0", "w0")
    for (i = 0; i < v["M"]; i++) for (r = 0; r < n - 1; r++)
        printf "copy send %s %s role=broadcast msg=%d micro=%d\n", share("w" r + 1, i, v["M"], v["S"]),
            share("w" r, i, v["M"], v["S"]), i + 1, i }

# ZeRO of `stage` 0 to 3.  Of each layer a device keeps its parameters w, or a share s of them, and gathers w for
# forward and u for backward; the gradients g, or a share h, and g until they are added up; the optimizer's state o, or
# a share.  A parameter takes wb bytes of w, gb of g and ob of o.
function exchange(to, from, bytes, what,   i, r, q, source) { # what: each sends the other's share, its own, or all of s
    for (i = 1; i < n; i++) for (r = 0; r < n; r++) {
        q = (r + i) % n; source = from "." r
        printf "copy send %s %s layer=%d role=%s\n", share(to "." q, r, n, bytes),
            what == "all" ? source : share(source, what == "own" ? r : q, n, bytes), l,
            what == "other" ? "reduce" : "broadcast msg=" messages + r + 1 } # to all others the same bytes
    if (what != "other") messages += n }
function gather(name,   r) {
    for (r = 0; r < n; r++)
        printf "copy own %s s%d.%d lane=r%d.compute layer=%d\n", share(name l "." r, r, n, w), l, r, r, l
    exchange(name l, "s" l, w, "all") }
function add_up(   r, i, q, sum, mine) { # what the others sent, to one's own share
    exchange("b" l, "g" l, g, "other")
    for (r = 0; r < n; r++) for (i = 1; i < n; i++) {
        q = (r + i) % n; mine = share("g" l "." r, r, n, g); sum = z < 2 ? mine : "h" l "." r
        on(r, "add", "reduce", share("b" l "." r, q, n, g) "," (i == 1 ? mine : sum), sum) } }
function layer_tensors(id, r) {
    tensor("w" id, "r" r, w, z < 3 ? "parameters" : "work"); tensor("g" id, "r" r, g, z < 2 ? "gradients" : "work")
    tensor("o" id, "r" r, v["P"] * v["ob"] / (z ? n : 1), "optimizer"); tensor("b" id, "r" r, g, "work")
    if (z >= 2) tensor("h" id, "r" r, g / n, "gradients")
    if (z == 3) { tensor("u" id, "r" r, w, "work"); tensor("s" id, "r" r, w / n, "parameters") } }

function zero(   r, id, state) {
    machine(); z = v["stage"]; w = v["P"] * v["wb"]; g = v["P"] * v["gb"]
    for (l = 0; l < v["L"]; l++) for (r = 0; r < n; r++) layer_tensors(l "." r, r)
    for (r = 0; r < n; r++) tensor("y" r, "r" r, 1024, "activations")
    for (l = 0; l < v["L"]; l++) {
        if (z == 3) gather("w")
        for (r = 0; r < n; r++) on(r, "forward", "forward layer=" l, "w" l "." r (l ? ",y" r : ""), "y" r) }
    for (l = v["L"] - 1; l >= 0; l--) {
        if (z == 3) gather("u")
        for (r = 0; r < n; r++) {
            id = l "." r
            on(r, "backward", "backward layer=" l, (z < 3 ? "w" : "u") id ",y" r, "g" id ",y" r) }
        add_up()
        if (z == 0) exchange("g" l, "g" l, g, "own") }
    for (l = 0; l < v["L"]; l++) {
        for (r = 0; r < n; r++) {
            id = l "." r; state = (z == 0 ? "w" id : z == 3 ? "s" id : share("w" id, r, n, w)) ",o" id
            on(r, "update", "update", (z == 0 ? "g" id : z == 1 ? share("g" id, r, n, g) : "h" id) "," state, state) }
        if (z == 1 || z == 2) exchange("w" l, "w" l, w, "own") } }

# ---- one device ------------------------------------------------------------------------------------------------------

function work(name, role, reads, writes) { # a task; its time is F, B or U for forward, backward or update
    task(name, "gpu.compute", name == "advance" ? v["F"] : v[substr(toupper(name), 1, 1)], role, reads, writes) }
function computer() { print "device gpu memory=" v["memory"] "\nlink gpu up " v["rate"] "\nlink gpu down " v["rate"] }
function shared() { # by all layers
    tensor("w", "gpu", 16 * MiB, "parameters"); tensor("g", "gpu", 16 * MiB, "gradients") }

# Layers with parameters of their own, updated as soon as their backward has ended; `cpu=`: or on the host.
function layers(   l) {
    computer()
    for (l = 0; l < v["L"]; l++) {
        tensor("w" l, "gpu", v["P"] * v["wb"], "parameters"); tensor("g" l, "gpu", v["P"] * v["gb"], "gradients")
        tensor("o" l, "gpu", v["P"] * v["ob"], "optimizer") }
    tensor("y", "gpu", 1024, "activations")
    for (l = 0; l < v["L"]; l++) work("forward", "forward layer=" l, "w" l (l ? ",y" : ""), "y")
    for (l = v["L"] - 1; l >= 0; l--) {
        work("backward", "backward layer=" l, "w" l ",y", "g" l ",y")
        work("update", "update layer=" l " cpu=" v["U"] "ms", "g" l ",w" l ",o" l, "w" l ",o" l) } }

# Each layer's forward reads what the one before it left, A MiB, and its backward what its own forward left.
function forward_and_back(   l) {
    computer(); shared()
    for (l = 0; l < v["L"]; l++) tensor("a" l, "gpu", v["A"] * MiB, "activations")
    for (l = 0; l < v["L"]; l++) work("forward", "forward layer=" l, "w" (l ? ",a" l - 1 : ""), "a" l)
    for (l = v["L"] - 1; l >= 0; l--) work("backward", "backward layer=" l, "w,a" l (l < v["L"] - 1 ? ",g" : ""), "g")
    work("update", "update", "w,g", "w") }

# Backward through `steps` steps.  `slots` states are kept, the first of them in c0; `now` is the state on the way to
# another; `tape` is what the forward of a step leaves for its backward.
function choose(n, k,   i, c) { c = 1; for (i = 1; i <= k; i++) c = c * (n - k + i) / i; return c }
function extra(l, s,   r) { r = 0; while (choose(s + r, s) < l) r++; return r * l - choose(s + r, s + 1) }
function advance(from, to, slot, target,   j) { # slot has the state of step `from`; target gets that of `to`
    for (j = from; j < to; j++)
        work("advance", "forward layer=" j, "w," (j == from ? slot : "now"), j == to - 1 ? target : "now") }
function cut(l, s,   j, best, cost, least) { # where the next state is kept, with s slots for l steps
    for (j = 1; j < l; j++) {
        cost = j + extra(l - j, s - 1) + extra(j, s)
        if (j == 1 || cost < least) { best = j; least = cost } }
    return best }
function reverse(from, to, s, slot,   j, mid, next_slot) { # steps from .. to - 1
    if (s > 1 && to - from > 1) {
        mid = from + cut(to - from, s); next_slot = "c" v["slots"] - s + 1
        advance(from, mid, slot, next_slot); reverse(mid, to, s - 1, next_slot); reverse(from, mid, s, slot)
        return }
    for (j = to - 1; j >= from; j--) {
        advance(from, j, slot, "now")
        work("forward", "forward layer=" j, "w," (j == from ? slot : "now"), "tape")
        work("backward", "backward layer=" j, "w,tape" (j < v["steps"] - 1 ? ",g" : ""), "g") } }
function revolve(   j) {
    computer(); shared(); tensor("now", "gpu", v["A"] * MiB, "work"); tensor("tape", "gpu", v["A"] * MiB, "work")
    for (j = 0; j < v["slots"]; j++) tensor("c" j, "gpu", v["A"] * MiB, "activations")
    task("batch", "gpu.compute", 0, "feed", "", "c0"); reverse(0, v["steps"], v["slots"], "c0")
    work("update", "update", "w,g", "w") }

# A step of t seconds; every K-th the parameters are stored, which takes d seconds, and nothing goes on meanwhile.
function storing() {
    computer(); shared(); tensor("stored", "gpu", 16 * MiB, "parameters")
    task("step", "gpu.compute", 1000 * v["t"], "backward", "w", "g"); work("update", "update", "w,g", "w")
    print "copy store stored w lane=gpu.compute time=" v["d"] "s every=" v["K"] }

# ---- entries ---------------------------------------------------------------------------------------------------------

function set_values(words,   n, i, word, pair) {
    n = split(words, word)
    for (i = 1; i <= n; i++)
        if (word[i] ~ /^[A-Za-z]+=/) { split(word[i], pair, "="); v[pair[1]] = pair[2] } }

$1 == "entry" { mine = $2 == name; sub(/^entry +[^ ]+ +/, ""); if (mine) print "# " $0; next }
!mine { next }
$1 == "make" { generator = $2; set_values($0); set_values(set); sub(/make/, "  made by") }
$1 == "row" { sub(/row/, " ") }
$1 == "picture" { next }
{ line[++lines] = $0 }
END {
    while (line[lines] == "") lines--
    for (i = 1; i <= lines; i++) print line[i] == "" ? "#" : "# " line[i]
    print ""
    MiB = 1048576
    if (generator == "pipeline") pipeline()
    else if (generator == "ring") ring()
    else if (generator == "chain_of_sends") chain_of_sends()
    else if (generator == "zero") zero()
    else if (generator == "layers") layers()
    else if (generator == "forward_and_back") forward_and_back()
    else if (generator == "revolve") revolve()
    else if (generator == "storing") storing()
    else refuse("generator " generator)
}
