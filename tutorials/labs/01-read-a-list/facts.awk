# facts.awk - reads `plan --json` of a list, and says what lab 1 asks of it:
#
#     lane KIND TASKS
#     peak BYTES TASK,...                         most bytes on the gpu, and the tasks at which they are held
#     wait TASK PRODUCER['] data|reuse TENSOR:WHY,...    tasks with one such wait; WHY: raw, war, waw, bytes
#     life TENSOR TASK TENSOR,...                 its last task; then who gets some of its bytes next
#     work TASK                                   of a task that is not a copy

BEGIN { RS = "{" }
function value(key,   at, text) {
    at = index($0, "\"" key "\":")
    if (!at) return ""
    text = substr($0, at + length(key) + 3); sub(/^"/, "", text); sub(/[",}].*/, "", text)
    return text }
/^"index"/ {
    n = value("index") + 0; lane = value("lane"); sub(/.* /, "", lane)
    count[lane]++; lane_of[n] = lane; first_access[n] = accesses + 1; last_access[n] = accesses }
/^"from"/ && value("wait") == "true" {
    w = ++waits; consumer[w] = n; producer[w] = value("from") + 0; kind[w] = value("kind")
    mark[w] = value("previous_step") == "true" ? "\047" : ""; sort[n, mark[w], kind[w]]++ }
/^"tensor"/ {
    i = ++accesses; last_access[n] = i; t[i] = value("tensor"); mode[i] = value("mode")
    begin[i] = value("address") + 0; end[i] = begin[i] + value("bytes"); where[i] = value("device")
    if (!(t[i] in first)) {
        first[t[i]] = n; order[++tensors] = t[i]; from[t[i]] = begin[i]; to[t[i]] = end[i]; home[t[i]] = where[i] }
    last[t[i]] = n }
/^"device"/ && value("device") == "gpu" { gpu = 1 }
/"together"/ && gpu && !peak { peak = value("together") + 0 }

function why(w, a, b) { # of accesses a and b of producer and consumer, or ""
    if (kind[w] == "reuse" || t[a] != t[b]) return "bytes"
    if (mode[a] == "write") return mode[b] == "read" ? "raw" : "waw"
    return mode[b] == "write" ? "war" : "" }
function kept(x) { return x ~ /^(w|m)/ }

END {
    for (lane in count) print "lane", lane, count[lane]
    for (i = 0; i <= n; i++) {
        held = 0
        for (k = 1; k <= tensors; k++) {
            x = order[k]
            if (home[x] == "gpu" && (kept(x) || (first[x] <= i && i <= last[x]))) held += to[x] - from[x] }
        if (held == peak) at = at (at == "" ? "" : ",") i }
    print "peak", peak, at
    for (i = 0; i <= n; i++)
        if (lane_of[i] == "compute" || lane_of[i] == "cpu") print "work", i
    for (w = 1; w <= waits; w++) {
        c = consumer[w]; p = producer[w]; text = ""
        if (sort[c, mark[w], kind[w]] > 1) continue
        for (a = first_access[p]; a <= last_access[p]; a++)
            for (b = first_access[c]; b <= last_access[c]; b++)
                if (where[a] == where[b] && begin[a] < end[b] && begin[b] < end[a] && (r = why(w, a, b)) != "")
                    text = text (text == "" ? "" : ",") t[a] ":" r
        print "wait", c, p mark[w], kind[w], text }
    for (k = 1; k <= tensors; k++) {
        x = order[k]; soon = n + 1; next_one = ""
        if (home[x] != "gpu" || kept(x)) continue
        for (j = 1; j <= tensors; j++) {
            y = order[j]
            if (home[y] != "gpu" || kept(y) || first[y] <= last[x] || from[y] >= to[x] || from[x] >= to[y]) continue
            if (first[y] < soon) { soon = first[y]; next_one = "" }
            if (first[y] == soon) next_one = next_one (next_one == "" ? "" : ",") y }
        if (next_one != "") print "life", x, last[x], next_one } }
