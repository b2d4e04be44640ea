# zero.awk - ZeRO's stages 0 to 3, on the machine of links.awk.
#
#     make zero stage=1 n=4 L=3 P=1000000 wb=4 gb=4 ob=8 rate=1e9 F=8 B=16
#
#     stage          0 shares out nothing, 1 the optimizer's state, 2 gradients too, 3 parameters too
#     n, L, P        devices, layers, and parameters of a layer, of which each has
#     wb, gb, ob     bytes of w, of its gradient, and of the optimizer's state
#     F, B           ms of a layer's forward and backward
#
# It prints the machine, tensors and tasks.  Of layer L, device R keeps
#
#     wL.R     its parameters, or a share of them, sL.R: wL.R is gathered for forward then, and uL.R for backward
#     gL.R     its gradients, or a share of them, hL.R: gL.R lasts until they are added up then
#     bL.R     gradients that others have sent
#     oL.R     the optimizer's state, or a share of it
#     yR       what the layers leave for one another
#
# and with stage=1 a layer's update on device 0 is
#
#     task update r0.compute 0ms role=update reads=g0.0[0:1000000],w0.0[0:1000000],o0.0 writes=w0.0[0:1000000],o0.0
#
# These are the same in all functions:
#
#     stage, layer                   ZeRO's, and the layer that the functions are about
#     weight_bytes, gradient_bytes   of a layer
#     messages                       that were sent to several devices at once: their numbers in the step file

function layer_tensors(id, rank) {
    tensor("w" id, "r" rank, weight_bytes, stage < 3 ? "parameters" : "work")
    tensor("g" id, "r" rank, gradient_bytes, stage < 2 ? "gradients" : "work")
    tensor("o" id, "r" rank, value["P"] * value["ob"] / (stage > 0 ? devices : 1), "optimizer")
    tensor("b" id, "r" rank, gradient_bytes, "work")
    if (stage >= 2)
        tensor("h" id, "r" rank, gradient_bytes / devices, "gradients")
    if (stage == 3) {
        tensor("u" id, "r" rank, weight_bytes, "work")
        tensor("s" id, "r" rank, weight_bytes / devices, "parameters")
    }
}

# Each device sends to each other one a part of its tensor `from`: which="other", the other's share; "own", its own; or
# "all" of it, where that is a share already.  What a device sends comes to its share of `to`.
function exchange(to, from, bytes, which,   distance, rank, other, source, role) {
    for (distance = 1; distance < devices; distance++)
        for (rank = 0; rank < devices; rank++) {
            other = (rank + distance) % devices
            source = from "." rank
            if (which == "own")
                source = share(source, rank, devices, bytes)
            if (which == "other")
                source = share(source, other, devices, bytes)
            role = "reduce"
            if (which != "other") # the same bytes to all others
                role = "broadcast msg=" (messages + rank + 1)
            printf "copy send %s %s layer=%d role=%s\n", share(to "." other, rank, devices, bytes), source, layer, role
        }
    if (which != "other")
        messages += devices
}

function gather(name,   rank, own) { # the layer's parameters, from their shares
    for (rank = 0; rank < devices; rank++) {
        own = share(name layer "." rank, rank, devices, weight_bytes)
        printf "copy own %s s%d.%d lane=r%d.compute layer=%d\n", own, layer, rank, rank, layer
    }
    exchange(name layer, "s" layer, weight_bytes, "all")
}

function add_up(   rank, distance, sum, mine, theirs) { # what the others sent of the layer's gradients, to one's share
    exchange("b" layer, "g" layer, gradient_bytes, "other")
    for (rank = 0; rank < devices; rank++) {
        mine = share("g" layer "." rank, rank, devices, gradient_bytes)
        sum = stage < 2 ? mine : "h" layer "." rank
        for (distance = 1; distance < devices; distance++) {
            theirs = share("b" layer "." rank, (rank + distance) % devices, devices, gradient_bytes)
            on(rank, "add", "reduce", theirs "," (distance == 1 ? mine : sum), sum)
        }
    }
}

function zero_forward(   rank, reads) { # of the layer
    if (stage == 3)
        gather("w")
    for (rank = 0; rank < devices; rank++) {
        reads = "w" layer "." rank
        if (layer > 0)
            reads = reads ",y" rank
        on(rank, "forward", "forward layer=" layer, reads, "y" rank)
    }
}

function zero_backward(   rank, id, weights) { # of the layer
    if (stage == 3)
        gather("u")
    for (rank = 0; rank < devices; rank++) {
        id = layer "." rank
        weights = (stage < 3 ? "w" : "u") id
        on(rank, "backward", "backward layer=" layer, weights ",y" rank, "g" id ",y" rank)
    }
    add_up()
    if (stage == 0)
        exchange("g" layer, "g" layer, gradient_bytes, "own")
}

function zero_update(   rank, id, state, gradient) { # of the layer
    for (rank = 0; rank < devices; rank++) {
        id = layer "." rank
        state = share("w" id, rank, devices, weight_bytes)
        gradient = "h" id
        if (stage == 0)
            state = "w" id
        if (stage == 3)
            state = "s" id
        if (stage == 0)
            gradient = "g" id
        if (stage == 1)
            gradient = share("g" id, rank, devices, gradient_bytes)
        state = state ",o" id
        on(rank, "update", "update", gradient "," state, state)
    }
    if (stage == 1 || stage == 2)
        exchange("w" layer, "w" layer, weight_bytes, "own")
}

function zero(   rank) {
    machine()
    stage = value["stage"]
    weight_bytes = value["P"] * value["wb"]
    gradient_bytes = value["P"] * value["gb"]
    for (layer = 0; layer < value["L"]; layer++)
        for (rank = 0; rank < devices; rank++)
            layer_tensors(layer "." rank, rank)
    for (rank = 0; rank < devices; rank++)
        tensor("y" rank, "r" rank, 1024, "activations")
    for (layer = 0; layer < value["L"]; layer++)
        zero_forward()
    for (layer = value["L"] - 1; layer >= 0; layer--)
        zero_backward()
    for (layer = 0; layer < value["L"]; layer++)
        zero_update()
}
