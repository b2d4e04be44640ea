# gallery.awk - writes a step file of the gallery: what its entry says as a comment, then the list of its generator.
#
#     awk -v name=zb-h1 [-v set="p=8 m=32"] -f gallery.awk entries
#
# `make GENERATOR NAME=VALUE ...` of an entry calls a function below; the values are in v[], and `set` changes them.

# ---- pipelines -------------------------------------------------------------------------------------------------------
#
# p devices, m micro-batches.  A micro-batch passes stages 0, 1, ... and comes back.  Where a device has two, they are
# dealt round (stage k is on device k % p) or folded as a V (0 1 2 3 3 2 1 0).  What is done for a micro-batch on a stage:
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

# DeepSeek's eight parts.  A device has a stage of either direction; h counts devices from the pipeline's ends, and q are
# on one half of it.  In DualPipe-V the other half is folded onto this one, and both directions are one chain.
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
    sends = sends sprintf("copy send %s %s lane=s%d.compute layer=%d micro=%d role=send\n", to, from, s, k, number(k, u)) }

function do_turn(part, n,   what) {
    reads = writes = sends = ""; what = part[1]
    access(what == "O" ? "F" : what, part[2], part[3])
    if (what == "O") access("B", part[4], part[5])
    printf "task %s s%d.compute %gms layer=%d micro=%d role=%s reads=%s writes=%s\n%s", what == "O" ? "F&B" : what, s,
        (what == "B" ? v["D"] + v["W"] : v[what]) * p / chain, part[2], number(part[2], part[3]),
        what == "F" ? "forward" : "backward", substr(reads, 2), substr(writes, 2), sends }

function take_turns() {
    if (v["order"] == "gpipe") gpipe()
    if (v["order"] == "1f1b") one_f_one_b()
    if (v["order"] == "interleaved") interleaved()
    if (v["order"] == "zb") zero_bubble()
    if (v["order"] == "zb-v") zb_v()
    if (v["order"] == "dual") dual() }

function pipeline(   k, u, left, part, next_turn, bytes) {
    p = v["p"]; chunks = v["chunks"] ? v["chunks"] : 1; chain = v["chain"] ? v["chain"] : p * chunks
    m = v["m"] * chain / (p * chunks); bytes = v["A"] * p / chain
    for (s = 0; s < p; s++) print "device s" s " memory=64G"
    for (k = 0; k < p * chunks; k++) {
        printf "tensor w%d s%d %dM parameters\ntensor g%d s%d %dM gradients\n", k, home(k), bytes, k, home(k), bytes
        for (u = 0; u < m; u++) {
            printf "tensor a%d.%d s%d %dM activations\ntensor d%d.%d s%d 1M work\n", k, u, home(k), bytes, k, u, home(k)
            if (!is_first(k)) printf "tensor x%d.%d s%d 1M work\n", k, u, home(k)
            if (!is_last(k)) printf "tensor y%d.%d s%d 1M work\n", k, u, home(k) } }
    for (s = 0; s < p; s++) { take_turns(); left += turns[s]; next_turn[s] = 1 }
    while (left > 0) # in rounds: each device takes its next turn if it can
        for (s = 0; s < p; s++) {
            if (split(turn[s, next_turn[s]], part) < 3 || !ready(part[1] == "O" ? "F" : part[1], part[2], part[3]) ||
                part[1] == "O" && !ready("B", part[4], part[5])) { stuck++; if (stuck > p) exit 1; continue }
            do_turn(part); next_turn[s]++; left--; stuck = 0 }
    for (k = 0; k < p * chunks; k++)
        printf "task update s%d.compute 0 layer=%d role=update reads=g%d,w%d writes=w%d\n", home(k), k, k, k, k }

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
    if (generator == "pipeline") pipeline()
}
