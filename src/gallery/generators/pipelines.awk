# pipelines.awk - a pipeline as a list: it takes the turns that orders.awk gives to each device.
#
#     make pipeline order=ORDER p=4 m=8 F=1 D=1 W=1 A=32 [chunks=2] [fold=1] [chain=8] [O=3]
#     make pipeline csv=FILE ...
#
#     p, m          devices, and micro-batches
#     F, D, W, O    ms of a device's forward, gradient of the input, gradients of the weights, and an overlapped pair
#     A             MiB that a forward leaves, and of a device's parameters
#     chunks        stages per device, dealt round; with fold=1 they are folded as a V
#     chain         stages of a whole model: with fewer than there are stages, micro-batches pass in two directions
#
# It prints devices, tensors and tasks.  Of stage K and micro-batch U, the tensors are
#
#     wK, gK     its parameters and their gradients          aK.U     what its forward leaves for its backward
#     xK.U       what the stage before it has sent to it     dK.U     the gradient of its input
#     yK.U       what the stage behind it has sent back
#
# and a turn "B 1 0" of device 1 becomes
#
#     task B s1.compute 2ms layer=1 micro=0 role=backward reads=w1,a1.0,y1.0 writes=d1.0,g1
#     copy send y0.0 d1.0 lane=s1.compute layer=1 micro=0 role=send

function home(stage) { # its device
    if (value["fold"] && stage >= p)
        return 2 * p - 1 - stage
    return stage % p
}

function is_first(stage) {
    return stage % chain == 0
}

function is_last(stage) {
    return stage % chain == chain - 1
}

function number_of(stage, micro) { # of a micro-batch, over both directions
    return micro + int(stage / chain) * m
}

# ---- what a turn does ------------------------------------------------------------------------------------------------

# Has all been done that it reads?
function is_ready(computation, stage, micro) {
    if (computation == "W")
        return ("D", stage, micro) in did
    if (computation == "F")
        return is_first(stage) || (("F", stage - 1, micro) in did)
    if (is_last(stage))
        return ("F", stage, micro) in did
    return ("D", stage + 1, micro) in did
}

function turn_is_ready(part) { # part: the words of a turn
    if (part[1] == "O")
        return is_ready("F", part[2], part[3]) && is_ready("B", part[4], part[5])
    return is_ready(part[1], part[2], part[3])
}

# Notes that it is done.  Adds what it reads and writes to `reads` and `writes`, and what the device sends then to
# `sends`: x to the next stage, y back.
function compute(device, computation, stage, micro,   id) {
    id = stage "." micro
    if (computation == "F")
        forward(device, stage, micro, id)
    if (computation == "D" || computation == "B")
        input_gradient(device, stage, micro, id)
    if (computation == "W" || computation == "B")
        weight_gradients(computation, stage, micro, id)
}

function forward(device, stage, micro, id) {
    reads = reads ",w" stage
    if (!is_first(stage))
        reads = reads ",x" id
    writes = writes ",a" id
    did["F", stage, micro]
    if (!is_last(stage))
        send(device, "x" (stage + 1) "." micro, "a" id "[0:1M]", stage, micro)
}

function input_gradient(device, stage, micro, id) {
    reads = reads ",w" stage ",a" id
    if (!is_last(stage))
        reads = reads ",y" id
    writes = writes ",d" id
    did["D", stage, micro]
    if (!is_first(stage))
        send(device, "y" (stage - 1) "." micro, "d" id, stage, micro)
}

function weight_gradients(computation, stage, micro, id) {
    if (computation == "W") # else D has read them, and this is the same task
        reads = reads ",d" id ",a" id
    if (stage in began) # gradients are added up, but for the first ones
        reads = reads ",g" stage
    began[stage]
    writes = writes ",g" stage
}

function send(device, to, from, stage, micro) {
    sends = sends sprintf("copy send %s %s lane=s%d.compute layer=%d micro=%d role=send\n", \
        to, from, device, stage, number_of(stage, micro))
}

function do_turn(device, part,   name, ms) { # part: the words of a turn
    reads = ""
    writes = ""
    sends = ""
    name = part[1]
    ms = value[name]
    if (name == "B")
        ms = value["D"] + value["W"]
    if (name == "O") {
        compute(device, "F", part[2], part[3])
        compute(device, "B", part[4], part[5])
        name = "F&B"
    } else
        compute(device, name, part[2], part[3])
    printf "task %s s%d.compute %gms layer=%d micro=%d role=%s reads=%s writes=%s\n", name, device, ms * p / chain, \
        part[2], number_of(part[2], part[3]), name == "F" ? "forward" : "backward", substr(reads, 2), substr(writes, 2)
    printf "%s", sends
}

# ---- the list --------------------------------------------------------------------------------------------------------

function stage_tensors(stage, bytes,   micro, device) {
    device = "s" home(stage)
    tensor("w" stage, device, bytes, "parameters")
    tensor("g" stage, device, bytes, "gradients")
    for (micro = 0; micro < m; micro++) {
        tensor("a" stage "." micro, device, bytes, "activations")
        tensor("d" stage "." micro, device, MiB, "work")
        if (!is_first(stage))
            tensor("x" stage "." micro, device, MiB, "work")
        if (!is_last(stage))
            tensor("y" stage "." micro, device, MiB, "work")
    }
}

function merge_turns(   device, left, part, next_turn, stuck) { # in rounds: each device takes its next turn if it can
    for (device = 0; device < p; device++) {
        left += turns[device]
        next_turn[device] = 1
    }
    for (device = 0; left > 0; device = (device + 1) % p) {
        split(turn[device, next_turn[device]], part)
        if (next_turn[device] > turns[device] || !turn_is_ready(part)) {
            stuck++
            if (stuck > p)
                refuse("device can go on: the orders wait for one another")
            continue
        }
        do_turn(device, part)
        next_turn[device]++
        left--
        stuck = 0
    }
}

function pipeline(   device, stage, stages, chunks) {
    p = value["p"]
    chunks = value["chunks"] ? value["chunks"] : 1
    stages = p * chunks
    chain = value["chain"] ? value["chain"] : stages
    m = value["m"] * chain / stages # in each direction
    for (device = 0; device < p; device++)
        print "device s" device " memory=64G"
    for (stage = 0; stage < stages; stage++)
        stage_tensors(stage, value["A"] * MiB * p / chain)
    take_turns(value["order"], chunks)
    merge_turns()
    for (stage = 0; stage < stages; stage++)
        task("update", "s" home(stage) ".compute", 0, "update layer=" stage, "g" stage ",w" stage, "w" stage)
}
