# gallery.awk - writes a step file of the gallery: what its entry says as a comment, then the list of its generator.
#
#     awk -v name=zb-h1 [-v set="p=8 m=32"] -f gallery.awk entries
#
# An entry of `entries`                           and its step file (tutorials/reference-lists.md has the words)
#
#     entry ring Ring all-reduce                      # Ring all-reduce
#       make ring n=2 S=80 rate=1e9                   #   made by ring n=2 S=80 rate=1e9
#                                                     device r0 memory=8000G
#                                                     link r0 up 1e9
#                                                     ...
#                                                     tensor w0 r0 80 parameters
#                                                     task backward r0.compute 0ms role=backward reads=w0 writes=g0
#
# The line `make GENERATOR NAME=VALUE ...` calls the function of that name, in one of the sections below.  It finds the
# values in v["NAME"]; `set` gives some of them others.  A generator prints the list line by line.
#
# Names behind three blanks in a list of parameters are local variables, as always in awk.

# ---- lines of a step file -------------------------------------------------------------------------------------------

function tensor(name, device, bytes, class) {
    printf "tensor %s %s %.0f %s\n", name, device, bytes, class
}

function task(name, lane, ms, role, reads, writes) {
    if (reads != "")
        reads = " reads=" reads
    printf "task %s %s %gms role=%s%s writes=%s\n", name, lane, ms, role, reads, writes
}

function share(name, k, of, bytes) { # share k of a tensor that is cut into so many: name[from:to]
    return sprintf("%s[%.0f:%.0f]", name, k * bytes / of, (k + 1) * bytes / of)
}

function refuse(what) {
    print "gallery.awk: no " what > "/dev/stderr"
    exit 1
}

# ---- pipelines: the order of a device's turns -----------------------------------------------------------------------
#
# p devices, m micro-batches.  A micro-batch passes stages 0, 1, ... and comes back.  Where a device has several, they
# are dealt round (stage k is on device k % p) or folded as a V (0 1 2 3 3 2 1 0).  What is done on a stage:
#
#     F   forward              D   the gradient of its input        W   those of its weights
#     B   D and W in one       O   F of one stage and B of another, overlapped
#
# An order is a function that takes the turns of device s, one after another; pipeline() calls it for each device, and
# merge_turns() makes one list of all their turns.  Each stage takes its micro-batches in order, so take() is told only
# what is done, and on which stage.
#
#     turn[s, i]     turn i of device s: "F 3 0" is the forward of micro-batch 0 on stage 3; "O 3 5 4 1" is that of
#                    micro-batch 5 on stage 3, overlapped with the backward of micro-batch 1 on stage 4
#     turns[s]       how many it has
#     taken[what, k] the micro-batches that stage k has had of F, D and W; a B counts as D and W
#     owed[s, i]     the stage of the i-th D without its W; owes[s] of them are there, and for paid[s] W was taken

function take(what, k) {
    turns[s]++
    if (what == "B") {
        turn[s, turns[s]] = "B " k " " (taken["D", k] + 0)
        taken["D", k]++
        taken["W", k]++
        return
    }
    turn[s, turns[s]] = what " " k " " (taken[what, k] + 0)
    taken[what, k]++
    if (what == "D") {
        owes[s]++
        owed[s, owes[s]] = k
    }
}

function pay() { # the W that waits longest
    paid[s]++
    take("W", owed[s, paid[s]])
}

function both(k, j,   forward, backward) { # the forward on stage k and the backward on stage j are one turn
    take("F", k)
    take("B", j)
    forward = turn[s, turns[s] - 1]
    backward = turn[s, turns[s]]
    turns[s]--
    turn[s, turns[s]] = "O" substr(forward, 2) substr(backward, 2)
}

function gpipe(   i) {
    for (i = 0; i < m; i++)
        take("F", s)
    for (i = 0; i < m; i++)
        take("B", s)
}

function one_f_one_b(   i, ahead) { # as many forwards first as there are stages behind
    ahead = p - 1 - s
    for (i = -ahead; i < m; i++) {
        if (i + ahead < m)
            take("F", s)
        if (i >= 0)
            take("B", s)
    }
}

function interleaved(   i, n, ahead) { # p micro-batches pass the first stage of each device, then the second, ...
    n = m * chunks
    ahead = 2 * (p - 1 - s) + (chunks - 1) * p
    for (i = -ahead; i < n; i++) {
        if (i + ahead < n)
            take("F", int((i + ahead) / p) % chunks * p + s)
        if (i >= 0)
            take("B", (chunks - 1 - int(i / p) % chunks) * p + s)
    }
}

function zero_bubble(   i, ahead) { # k times as many forwards first; each stage puts k W more off than the one before
    ahead = v["k"] * (p - 1 - s)
    for (i = -ahead; i < m; i++) {
        if (i + ahead < m)
            take("F", s)
        if (i < 0)
            continue
        take("D", s)
        if (i >= v["k"] * s || i + ahead >= m)
            pay()
    }
    while (paid[s] < m)
        pay()
}

function zb_v(   i, down, up) { # the stage on the way down the V, and the one on the way up
    down = s
    up = 2 * p - 1 - s
    for (i = 0; i < 2 * (p - s) - 1; i++)
        take("F", down)
    for (i = 0; i < s; i++) {
        take("F", up)
        take("F", down)
    }
    for (i = 0; i < p - s; i++) {
        take("F", up)
        take("D", up)
        pay()
    }
    while (taken["F", up] < m) { # the steady part
        if (taken["F", down] < m)
            take("F", down)
        take("D", down)
        pay()
        take("F", up)
        take("D", up)
        pay()
    }
    for (i = 0; i < s; i++) {
        take("D", down)
        take("D", up)
    }
    for (i = 0; i < p - s; i++) {
        take("D", down)
        pay()
    }
    while (paid[s] < owes[s])
        pay()
}

# DeepSeek's eight parts.  A device has a stage of either direction, x and y; h counts devices from the pipeline's
# ends, and q are on one half of it.  In DualPipe-V the other half is folded onto this one, and both directions are one
# chain.
function dual(   i, h, q, x, y) {
    q = chain / 2
    if (s < q) {
        h = s
        x = s
        y = 2 * p - 1 - s
    } else {
        h = p - 1 - s
        x = 2 * p - 1 - s
        y = s
    }
    # 1. Forwards in one direction, until those of the other one arrive.
    for (i = 0; i < 2 * (q - h - 1); i++)
        take("F", x)
    # 2. Forwards in both directions.
    for (i = 0; i <= h; i++) {
        take("F", x)
        take("F", y)
    }
    # 3. The first backwards arrive, between forwards of the same direction.
    for (i = 0; i < q - h - 1; i++) {
        take("D", y)
        pay()
        take("F", y)
    }
    # 4. The steady part: a forward of either direction, overlapped with a backward of the other.
    for (i = 0; i < m - 2 * q + h + 1; i++) {
        if (i == 0 && h == q - 1) {
            take("F", x)
            take("B", y)
        } else
            both(x, y)
        both(y, x)
    }
    # 5. No forward of x is left: only those of y are overlapped.
    for (i = 0; i < q - h - 1; i++) {
        take("B", y)
        both(y, x)
    }
    # 6. Backwards in both directions; in the second half of them each W is put off.
    for (i = 0; i < 2 * (h + 1); i++)
        take(i <= h ? "B" : "D", i % 2 ? x : y)
    # 7. The last D, with W that were put off between them.
    for (i = 0; i < q - h - 1; i++) {
        pay()
        take("D", x)
    }
    # 8. The W that are left.
    for (i = 0; i <= h; i++)
        pay()
}

# A schedule of PyTorch: row s has the turns of device s.  "(0F7;7B3)OVERLAP_F_B" becomes "O 0 7 7 3".
function turns_of_row(file,   line, row, cell, n, i, what) {
    for (row = 0; row <= s; row++)
        getline line < file
    close(file)
    n = split(line, cell, ",")
    for (i = 1; i <= n; i++) {
        what = "O"
        if (match(cell[i], /^[0-9]+[FIWB]/))
            what = substr(cell[i], RLENGTH, 1)
        gsub(/[^0-9]+/, " ", cell[i])
        sub(/^ /, "", cell[i])
        turns[s]++
        turn[s, turns[s]] = (what == "I" ? "D" : what) " " cell[i]
    }
}

function take_turns() { # of device s
    if (v["csv"])
        turns_of_row(v["csv"])
    else if (v["order"] == "gpipe")
        gpipe()
    else if (v["order"] == "1f1b")
        one_f_one_b()
    else if (v["order"] == "interleaved")
        interleaved()
    else if (v["order"] == "zb")
        zero_bubble()
    else if (v["order"] == "zb-v")
        zb_v()
    else if (v["order"] == "dual")
        dual()
    else
        refuse("order=" v["order"] " in take_turns")
}

# ---- pipelines: the list --------------------------------------------------------------------------------------------
#
# Of stage k and micro-batch u, with K.U for their numbers:
#
#     wK, gK     its parameters and their gradients          aK.U     what its forward leaves for its backward
#     xK.U       what the stage before it has sent to it     dK.U     the gradient of its input
#     yK.U       what the stage behind it has sent back
#
# `chain` stages are a whole model: with fewer of them than there are stages, micro-batches pass in two directions.

function home(k) { # the device of stage k
    if (v["fold"] && k >= p)
        return 2 * p - 1 - k
    return k % p
}

function is_first(k) {
    return k % chain == 0
}

function is_last(k) {
    return k % chain == chain - 1
}

function number(k, u) { # of a micro-batch, over both directions
    return u + int(k / chain) * m
}

function is_ready(what, k, u) { # has all been done that it reads?
    if (what == "W")
        return ("D", k, u) in did
    if (what == "F")
        return is_first(k) || (("F", k - 1, u) in did)
    if (is_last(k))
        return ("F", k, u) in did
    return ("D", k + 1, u) in did
}

function turn_is_ready(part) { # part: the words of a turn
    if (part[1] == "O")
        return is_ready("F", part[2], part[3]) && is_ready("B", part[4], part[5])
    return is_ready(part[1], part[2], part[3])
}

# Adds what it reads and writes to `reads` and `writes`, and what is sent then to `sends`: x to the next stage, y back.
function access(what, k, u,   id) {
    id = k "." u
    if (what == "F") {
        reads = reads ",w" k
        if (!is_first(k))
            reads = reads ",x" id
        writes = writes ",a" id
    }
    if (what == "D" || what == "B") {
        reads = reads ",w" k ",a" id
        if (!is_last(k))
            reads = reads ",y" id
        writes = writes ",d" id
    }
    if (what == "W")
        reads = reads ",d" id ",a" id
    if (what == "W" || what == "B") { # gradients are added up, but for the first ones
        if (k in began)
            reads = reads ",g" k
        began[k]
        writes = writes ",g" k
    }
    if (what == "B")
        did["D", k, u]
    else
        did[what, k, u]
    if (what == "F" && !is_last(k))
        send("x" (k + 1) "." u, "a" id "[0:1M]", k, u)
    if ((what == "D" || what == "B") && !is_first(k))
        send("y" (k - 1) "." u, "d" id, k, u)
}

function send(to, from, k, u) {
    sends = sends sprintf("copy send %s %s lane=s%d.compute layer=%d micro=%d role=send\n",
        to, from, s, k, number(k, u))
}

function do_turn(part,   what, ms) { # part: the words of a turn
    reads = ""
    writes = ""
    sends = ""
    what = part[1]
    ms = v[what]
    if (what == "B")
        ms = v["D"] + v["W"]
    if (what == "O") {
        access("F", part[2], part[3])
        access("B", part[4], part[5])
        what = "F&B"
    } else
        access(what, part[2], part[3])
    printf "task %s s%d.compute %gms layer=%d micro=%d role=%s reads=%s writes=%s\n", what, s, ms * p / chain, part[2],
        number(part[2], part[3]), what == "F" ? "forward" : "backward", substr(reads, 2), substr(writes, 2)
    printf "%s", sends
}

function stage_tensors(k, bytes,   u, device) {
    device = "s" home(k)
    tensor("w" k, device, bytes, "parameters")
    tensor("g" k, device, bytes, "gradients")
    for (u = 0; u < m; u++) {
        tensor("a" k "." u, device, bytes, "activations")
        tensor("d" k "." u, device, MiB, "work")
        if (!is_first(k))
            tensor("x" k "." u, device, MiB, "work")
        if (!is_last(k))
            tensor("y" k "." u, device, MiB, "work")
    }
}

function merge_turns(   left, part, next_turn, stuck) { # in rounds: each device takes its next turn if it can
    for (s = 0; s < p; s++) {
        left += turns[s]
        next_turn[s] = 1
    }
    for (s = 0; left > 0; s = (s + 1) % p) {
        split(turn[s, next_turn[s]], part)
        if (next_turn[s] > turns[s] || !turn_is_ready(part)) {
            stuck++
            if (stuck > p)
                refuse("device can go on: the orders wait for one another")
            continue
        }
        do_turn(part)
        next_turn[s]++
        left--
        stuck = 0
    }
}

function pipeline(   k, stages) {
    p = v["p"]
    chunks = v["chunks"] ? v["chunks"] : 1
    stages = p * chunks
    chain = v["chain"] ? v["chain"] : stages
    m = v["m"] * chain / stages
    for (s = 0; s < p; s++)
        print "device s" s " memory=64G"
    for (k = 0; k < stages; k++)
        stage_tensors(k, v["A"] * MiB * p / chain)
    for (s = 0; s < p; s++)
        take_turns()
    merge_turns()
    for (k = 0; k < stages; k++)
        task("update", "s" home(k) ".compute", 0, "update layer=" k, "g" k ",w" k, "w" k)
}

# ---- data on links --------------------------------------------------------------------------------------------------
#
# n devices, each with a link of its own that moves `rate` bytes per second each way.

function machine(   r) {
    n = v["n"]
    for (r = 0; r < n; r++) {
        print "device r" r " memory=8000G"
        print "link r" r " up " v["rate"]
        print "link r" r " down " v["rate"]
    }
}

function on(r, name, role, reads, writes,   ms) { # a task on device r; forwards take F ms and backwards B ms
    ms = 0
    if (name == "forward")
        ms = v["F"]
    if (name == "backward")
        ms = v["B"]
    task(name, "r" r ".compute", ms, role, reads, writes)
}

# Each sends a share to its neighbour, n - 1 times, and adds what it gets: then each has the sum of one share.  Sent on
# n - 1 times more, all have all sums.
function ring(   r, i) {
    machine()
    for (r = 0; r < n; r++) {
        tensor("w" r, "r" r, v["S"], "parameters")
        tensor("g" r, "r" r, v["S"], "gradients")
        tensor("b" r, "r" r, v["S"], "work")
    }
    for (r = 0; r < n; r++)
        on(r, "backward", "backward", "w" r, "g" r)
    for (i = 0; i < 2 * (n - 1); i++)
        for (r = 0; r < n; r++)
            pass_share(r, (r + 1) % n, (r - i + 2 * n) % n, i < n - 1)
    for (r = 0; r < n; r++)
        on(r, "update", "update", "g" r ",w" r, "w" r)
}

function pass_share(r, q, k, add,   from, buffer, to) { # share k from device r to its neighbour q, which may add it
    from = share("g" r, k, n, v["S"])
    buffer = share("b" q, k, n, v["S"])
    to = share("g" q, k, n, v["S"])
    printf "copy send %s %s role=reduce micro=%d\n", add ? buffer : to, from, k
    if (add)
        on(q, "add", "reduce", buffer "," to, to)
}

# Device 0 sends its parameters to 1, which passes each of M slices on as soon as it has it, and so on.
function chain_of_sends(   r, i, to, from) {
    machine()
    for (r = 0; r < n; r++) {
        tensor("w" r, "r" r, v["S"], "parameters")
        tensor("g" r, "r" r, 1024, "gradients")
    }
    for (r = 0; r < n; r++)
        on(r, "backward", "backward", "w" r, "g" r)
    on(0, "update", "update", "g0,w0", "w0")
    for (i = 0; i < v["M"]; i++)
        for (r = 0; r < n - 1; r++) {
            to = share("w" (r + 1), i, v["M"], v["S"])
            from = share("w" r, i, v["M"], v["S"])
            printf "copy send %s %s role=broadcast msg=%d micro=%d\n", to, from, i + 1, i
        }
}

# ---- ZeRO -----------------------------------------------------------------------------------------------------------
#
# On the same machine, stages 0 to 3.  Of layer L device R keeps
#
#     wL.R     its parameters, or a share of them, sL.R: wL.R is gathered for forward then, and uL.R for backward
#     gL.R     its gradients, or a share of them, hL.R: gL.R lasts until they are added up then
#     bL.R     gradients that others have sent
#     oL.R     the optimizer's state, or a share of it
#
# A parameter takes wb bytes of w, gb of g and ob of o.  In the functions,
#
#     stage, l     ZeRO's, and the layer that the functions are about
#     w, g         bytes of a layer's parameters and gradients
#     messages     that were sent to several devices at once: their numbers in the step file

function layer_tensors(id, r) {
    tensor("w" id, "r" r, w, stage < 3 ? "parameters" : "work")
    tensor("g" id, "r" r, g, stage < 2 ? "gradients" : "work")
    tensor("o" id, "r" r, v["P"] * v["ob"] / (stage > 0 ? n : 1), "optimizer")
    tensor("b" id, "r" r, g, "work")
    if (stage >= 2)
        tensor("h" id, "r" r, g / n, "gradients")
    if (stage == 3) {
        tensor("u" id, "r" r, w, "work")
        tensor("s" id, "r" r, w / n, "parameters")
    }
}

# Each device sends to each other one a part of its tensor `from`: the other's share, its own, or all of it, where that
# is a share already.  What device r sends comes to share r of `to`.
function exchange(to, from, bytes, what,   i, r, q, source, role) {
    for (i = 1; i < n; i++)
        for (r = 0; r < n; r++) {
            q = (r + i) % n
            source = from "." r
            if (what == "own")
                source = share(source, r, n, bytes)
            if (what == "other")
                source = share(source, q, n, bytes)
            role = "reduce"
            if (what != "other") # the same bytes to all others
                role = "broadcast msg=" (messages + r + 1)
            printf "copy send %s %s layer=%d role=%s\n", share(to "." q, r, n, bytes), source, l, role
        }
    if (what != "other")
        messages += n
}

function gather(name,   r) { # the parameters of layer l, from their shares
    for (r = 0; r < n; r++)
        printf "copy own %s s%d.%d lane=r%d.compute layer=%d\n", share(name l "." r, r, n, w), l, r, r, l
    exchange(name l, "s" l, w, "all")
}

function add_up(   r, i, sum, mine, theirs) { # what the others sent of layer l's gradients, to one's own share
    exchange("b" l, "g" l, g, "other")
    for (r = 0; r < n; r++) {
        mine = share("g" l "." r, r, n, g)
        sum = stage < 2 ? mine : "h" l "." r
        for (i = 1; i < n; i++) {
            theirs = share("b" l "." r, (r + i) % n, n, g)
            on(r, "add", "reduce", theirs "," (i == 1 ? mine : sum), sum)
        }
    }
}

function zero_forward(   r, reads) { # of layer l
    if (stage == 3)
        gather("w")
    for (r = 0; r < n; r++) {
        reads = "w" l "." r
        if (l > 0)
            reads = reads ",y" r
        on(r, "forward", "forward layer=" l, reads, "y" r)
    }
}

function zero_backward(   r, id) { # of layer l
    if (stage == 3)
        gather("u")
    for (r = 0; r < n; r++) {
        id = l "." r
        on(r, "backward", "backward layer=" l, (stage < 3 ? "w" : "u") id ",y" r, "g" id ",y" r)
    }
    add_up()
    if (stage == 0)
        exchange("g" l, "g" l, g, "own")
}

function zero_update(   r, id, state, gradient) { # of layer l
    for (r = 0; r < n; r++) {
        id = l "." r
        state = share("w" id, r, n, w)
        gradient = "h" id
        if (stage == 0)
            state = "w" id
        if (stage == 3)
            state = "s" id
        if (stage == 0)
            gradient = "g" id
        if (stage == 1)
            gradient = share("g" id, r, n, g)
        state = state ",o" id
        on(r, "update", "update", gradient "," state, state)
    }
    if (stage == 1 || stage == 2)
        exchange("w" l, "w" l, w, "own")
}

function zero(   r) {
    machine()
    stage = v["stage"]
    w = v["P"] * v["wb"]
    g = v["P"] * v["gb"]
    for (l = 0; l < v["L"]; l++)
        for (r = 0; r < n; r++)
            layer_tensors(l "." r, r)
    for (r = 0; r < n; r++)
        tensor("y" r, "r" r, 1024, "activations")
    for (l = 0; l < v["L"]; l++)
        zero_forward()
    for (l = v["L"] - 1; l >= 0; l--)
        zero_backward()
    for (l = 0; l < v["L"]; l++)
        zero_update()
}

# ---- one device -----------------------------------------------------------------------------------------------------

function work(name, role, reads, writes,   ms) { # a task; its time is F, B or U for forward, backward or update
    ms = v[toupper(substr(name, 1, 1))]
    if (name == "advance")
        ms = v["F"]
    task(name, "gpu.compute", ms, role, reads, writes)
}

function computer() {
    print "device gpu memory=" v["memory"]
    print "link gpu up " v["rate"]
    print "link gpu down " v["rate"]
}

function shared() { # by all layers
    tensor("w", "gpu", 16 * MiB, "parameters")
    tensor("g", "gpu", 16 * MiB, "gradients")
}

# Layers with parameters of their own, updated as soon as their backward has ended; `cpu=`: or on the host, in C ms.
function layers(   l, reads, on_host) {
    computer()
    on_host = v["C"]
    if (on_host == "")
        on_host = v["U"]
    for (l = 0; l < v["L"]; l++) {
        tensor("w" l, "gpu", v["P"] * v["wb"], "parameters")
        tensor("g" l, "gpu", v["P"] * v["gb"], "gradients")
        tensor("o" l, "gpu", v["P"] * v["ob"], "optimizer")
    }
    tensor("y", "gpu", 1024, "activations")
    for (l = 0; l < v["L"]; l++) {
        reads = "w" l
        if (l > 0)
            reads = reads ",y"
        work("forward", "forward layer=" l, reads, "y")
    }
    for (l = v["L"] - 1; l >= 0; l--) {
        work("backward", "backward layer=" l, "w" l ",y", "g" l ",y")
        work("update", "update layer=" l " cpu=" on_host "ms", "g" l ",w" l ",o" l, "w" l ",o" l)
    }
}

# Each layer's forward reads what the one before it left, A MiB, and its backward what its own forward left.
function forward_and_back(   l, reads) {
    computer()
    shared()
    for (l = 0; l < v["L"]; l++)
        tensor("a" l, "gpu", v["A"] * MiB, "activations")
    for (l = 0; l < v["L"]; l++) {
        reads = "w"
        if (l > 0)
            reads = reads ",a" (l - 1)
        work("forward", "forward layer=" l, reads, "a" l)
    }
    for (l = v["L"] - 1; l >= 0; l--) {
        reads = "w,a" l
        if (l < v["L"] - 1)
            reads = reads ",g"
        work("backward", "backward layer=" l, reads, "g")
    }
    work("update", "update", "w,g", "w")
}

# No layer lives on the device.  Parameters come up to two places there, p0 and p1, in turn; gradients go down from q0
# and q1; the host updates.  Before the first backwards the last two layers are still in their places.
function layer_stream(   l, reads) {
    computer()
    for (l = 0; l < 2; l++) {
        tensor("p" l, "gpu", v["A"] * MiB, "work")
        tensor("q" l, "gpu", v["A"] * MiB, "gradients")
    }
    for (l = 0; l < v["L"]; l++) {
        tensor("x" l, "gpu", v["X"] * MiB, "activations")
        tensor("w" l, "host", v["A"] * MiB, "parameters")
        tensor("h" l, "host", v["A"] * MiB, "gradients keep")
        tensor("m" l, "host", 2 * v["A"] * MiB, "optimizer")
    }
    for (l = 0; l < v["L"]; l++) {
        print "copy up p" l % 2 " w" l " layer=" l
        reads = "p" l % 2
        if (l > 0)
            reads = reads ",x" (l - 1)
        work("forward", "forward layer=" l, reads, "x" l)
    }
    for (l = v["L"] - 1; l >= 0; l--) {
        if (l < v["L"] - 2)
            print "copy up p" l % 2 " w" l " layer=" l
        reads = "p" l % 2 ",x" l
        if (l < v["L"] - 1)
            reads = reads ",q" (l + 1) % 2
        work("backward", "backward layer=" l, reads, "q" l % 2)
        print "copy down h" l " q" l % 2 " layer=" l
        task("update", "host.cpu", v["C"], "update layer=" l, "h" l ",w" l ",m" l, "w" l ",m" l)
    }
}

# A step of t seconds; every K-th the parameters are stored, which takes d seconds, and nothing goes on meanwhile.
function storing() {
    computer()
    shared()
    tensor("stored", "gpu", 16 * MiB, "parameters")
    task("step", "gpu.compute", 1000 * v["t"], "backward", "w", "g")
    work("update", "update", "w,g", "w")
    print "copy store stored w lane=gpu.compute time=" v["d"] "s every=" v["K"]
}

# ---- Revolve --------------------------------------------------------------------------------------------------------

# Backward through `steps` steps.  `slots` states are kept, the first of them in c0; `now` is the state on the way to
# another; `tape` is what the forward of a step leaves for its backward.

function advance(from, to, slot, target,   j, source, result) { # slot has state `from`; target gets state `to`
    source = slot
    for (j = from; j < to; j++) {
        result = "now"
        if (j == to - 1)
            result = target
        work("advance", "forward layer=" j, "w," source, result)
        source = "now"
    }
}

function choose(n, k,   i, product) { # how many ways to choose k of n
    product = 1
    for (i = 1; i <= k; i++)
        product = product * (n - k + i) / i
    return product
}

function extra(l, s,   r) { # the fewest advances back through l steps with s slots: Griewank and Walther's formula
    r = 0
    while (choose(s + r, s) < l)
        r++
    return r * l - choose(s + r, s + 1)
}

function cut(l, s,   j, best, cost, least) { # where the next state is kept, with s slots for l steps
    for (j = 1; j < l; j++) {
        cost = j + extra(l - j, s - 1) + extra(j, s)
        if (j == 1 || cost < least) {
            best = j
            least = cost
        }
    }
    return best
}

function step_back(j, slot,   reads) { # through step j; slot has its state
    work("forward", "forward layer=" j, "w," slot, "tape")
    reads = "w,tape"
    if (j < v["steps"] - 1)
        reads = reads ",g"
    work("backward", "backward layer=" j, reads, "g")
}

function reverse(from, to, s, slot,   j, mid, next_slot) { # steps from .. to - 1; slot has state `from`, s are free
    if (s > 1 && to - from > 1) {
        mid = from + cut(to - from, s)
        next_slot = "c" (v["slots"] - s + 1)
        advance(from, mid, slot, next_slot)
        reverse(mid, to, s - 1, next_slot)
        reverse(from, mid, s, slot)
        return
    }
    for (j = to - 1; j >= from; j--) {
        advance(from, j, slot, "now")
        step_back(j, j == from ? slot : "now")
    }
}

function revolve(   j) {
    computer()
    shared()
    tensor("now", "gpu", v["A"] * MiB, "work")
    tensor("tape", "gpu", v["A"] * MiB, "work")
    for (j = 0; j < v["slots"]; j++)
        tensor("c" j, "gpu", v["A"] * MiB, "activations")
    task("batch", "gpu.compute", 0, "feed", "", "c0")
    reverse(0, v["steps"], v["slots"], "c0")
    work("update", "update", "w,g", "w")
}

# ---- step files -----------------------------------------------------------------------------------------------------

# A step file, `list`, as it is written by hand, with links of `rate`, and a disk of `disk` if it has one.  If it has no
# link, every device gets one, before the first tensor.

function print_links(   i) {
    for (i = 1; i <= devices; i++) {
        print "link " device[i] " up " v["rate"]
        print "link " device[i] " down " v["rate"]
    }
}

function step_file(   text, part, links) {
    while ((getline text < v["list"]) > 0) {
        split(text, part)
        if (part[1] == "device")
            device[++devices] = part[2]
        if (part[1] == "link") {
            links++
            text = "link " part[2] " " part[3] " " v["rate"]
        }
        if (part[1] == "disk" && v["disk"] != "")
            text = "disk " v["disk"]
        if (part[1] == "tensor" && !links++)
            print_links()
        print text
    }
    if (!devices)
        refuse("step file " v["list"])
}

# ---- entries --------------------------------------------------------------------------------------------------------

function set_values(words,   n, i, word, pair) { # the words NAME=VALUE among them
    n = split(words, word)
    for (i = 1; i <= n; i++)
        if (word[i] ~ /^[A-Za-z]+=/) {
            split(word[i], pair, "=")
            v[pair[1]] = pair[2]
        }
}

function print_comment(   i) { # the lines of the entry, without blank ones at the end
    while (line[lines] == "")
        lines--
    for (i = 1; i <= lines; i++)
        print line[i] == "" ? "#" : "# " line[i]
    print ""
}

function generate() {
    if (generator == "pipeline")
        pipeline()
    else if (generator == "ring")
        ring()
    else if (generator == "chain_of_sends")
        chain_of_sends()
    else if (generator == "zero")
        zero()
    else if (generator == "layers")
        layers()
    else if (generator == "forward_and_back")
        forward_and_back()
    else if (generator == "revolve")
        revolve()
    else if (generator == "storing")
        storing()
    else if (generator == "layer_stream")
        layer_stream()
    else if (generator == "step_file")
        step_file()
    else
        refuse("generator " generator)
}

BEGIN { MiB = 1048576 }
$1 == "entry" {
    mine = $2 == name
    sub(/^entry +[^ ]+ +/, "")
    if (mine)
        print "# " $0
    next
}
!mine || $1 == "picture" || $1 == "curve" { next }
$1 == "make" {
    generator = $2
    set_values($0)
    set_values(set)
    sub(/make/, "  made by")
}
$1 == "row" { sub(/row/, " ") }
{ line[++lines] = $0 }
END {
    print_comment()
    generate()
}
