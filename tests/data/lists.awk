# lists.awk - random step files.
#
#     awk -v kind=chain|training|overlap -v seed=N [-v layers=N] -f tests/data/lists.awk
#
#     chain      6 to 16 layers forward, then back; each backward needs what its forward made; not all of it fits
#     training   layers with parameters, gradients, optimizer and activations, 1 to 3 micro-batches, and updates
#     overlap    layers whose updates the device or the CPU may do, of alike sizes where the seed is even
#
# A chain of two layers, with seed=1:
#
#     device gpu memory=128000
#     link gpu down 58738470 0us
#     link gpu up 58738470 0us
#     tensor a0 gpu 64000 activations
#     tensor a1 gpu 64000 activations
#     task forward gpu.compute 0.561ms layer=0 role=forward writes=a0
#     task forward gpu.compute 0.720ms layer=1 role=forward reads=a0 writes=a1
#     task backward gpu.compute 0.751ms layer=1 role=backward reads=a1
#     task backward gpu.compute 1.970ms layer=0 role=backward reads=a0
#
# The numbers are those of Park and Miller (1988): the same with every awk, since no product needs more than 53 bits.
# They follow one another, so the order of the draws below decides what a seed gives.

function draw(low, high) {
    state = state * 16807 % 2147483647
    return low + (high - low) * state / 2147483647
}

function whole(low, high) { # low to high
    return int(draw(low, high + 1))
}

# ---- lines of a step file --------------------------------------------------------------------------------------------

function machine(bytes, rate, latency) {
    printf "device gpu memory=%d\n", bytes
    printf "link gpu down %d %dus\n", rate, latency
    printf "link gpu up %d %dus\n", rate, latency
}

function tensor(name, bytes, class) {
    printf "tensor %s gpu %d %s\n", name, bytes, class
}

function layer_tensors(layer, weights, optimizer) {
    tensor("w" layer, weights, "parameters")
    tensor("g" layer, weights, "gradients")
    tensor("o" layer, optimizer, "optimizer")
}

function task(name, ms, layer, micro, reads, writes, more) { # micro, reads, writes and more may be ""
    if (micro != "")
        micro = " micro=" micro
    if (reads != "")
        reads = " reads=" reads
    if (writes != "")
        writes = " writes=" writes
    printf "task %s gpu.compute %.3fms layer=%d role=%s%s%s%s%s\n", name, ms, layer, name, micro, reads, writes, more
}

# ---- kinds -----------------------------------------------------------------------------------------------------------

# Drawn even where the caller has chosen: then all other draws stay the same.
function choose_layers(low, high,   drawn) {
    drawn = whole(low, high)
    return layers ? layers : drawn
}

function chain(   count, layer, bytes, sum, most, memory) {
    count = choose_layers(6, 16)
    for (layer = 0; layer < count; layer++) {
        bytes[layer] = seed % 2 ? 64000 : whole(10000, 100000)
        sum += bytes[layer]
        if (bytes[layer] + bytes[layer - 1] > most) # what a forward needs at once
            most = bytes[layer] + bytes[layer - 1]
    }
    memory = most + draw(0.1, 0.5) * (sum - most)
    machine(memory, draw(0.4, 1.6) * 64e6, seed % 3 ? 0 : 100)
    for (layer = 0; layer < count; layer++)
        tensor("a" layer, bytes[layer], "activations")
    for (layer = 0; layer < count; layer++)
        task("forward", draw(0.5, 1.5), layer, "", layer > 0 ? "a" (layer - 1) : "", "a" layer)
    for (layer = count - 1; layer >= 0; layer--)
        task("backward", draw(0.5, 2.5), layer, "", "a" layer)
}

# Bytes: weights[layer] of a layer's parameters, left_a[layer, micro] and left_b[layer, micro] of what it leaves.
function training(   count, micros, rate, layer, micro, weights, left_a, left_b, sum, memory) {
    count = choose_layers(4, 8)
    micros = whole(1, 3)
    rate = draw(10, 60) * 1e6
    for (layer = 0; layer < count; layer++) {
        weights[layer] = whole(5000, 45000)
        for (micro = 0; micro < micros; micro++) {
            left_a[layer, micro] = whole(10000, 100000)
            left_b[layer, micro] = whole(2000, 20000)
        }
        sum += 4 * weights[layer] + left_a[layer, 0] + left_b[layer, 0]
    }
    memory = draw(0.5, 0.9) * sum
    machine(memory, rate, seed % 3 ? 0 : 100)
    for (layer = 0; layer < count; layer++) {
        layer_tensors(layer, weights[layer], 2 * weights[layer])
        for (micro = 0; micro < micros; micro++) {
            tensor("a" layer "." micro, left_a[layer, micro], "activations")
            tensor("b" layer "." micro, left_b[layer, micro], "activations")
        }
    }
    for (micro = 0; micro < micros; micro++)
        forward_and_back(count, micro)
    for (layer = count - 1; layer >= 0; layer--)
        task("update", draw(0, 0.5), layer, "", "w" layer ",g" layer ",o" layer, "w" layer ",o" layer)
}

function forward_and_back(count, micro,   layer, reads) { # of a micro-batch
    for (layer = 0; layer < count; layer++) {
        reads = "w" layer
        if (layer > 0)
            reads = reads ",b" (layer - 1) "." micro
        task("forward", draw(0.5, 1.5), layer, micro, reads, "a" layer "." micro)
        task("forward", draw(0, 0.5), layer, micro, "a" layer "." micro, "b" layer "." micro)
    }
    for (layer = count - 1; layer >= 0; layer--) {
        reads = "w" layer ",a" layer "." micro ",b" layer "." micro
        if (micro > 0)
            reads = reads ",g" layer # gradients are added up
        task("backward", draw(0.5, 2.5), layer, micro, reads, "g" layer)
    }
}

# Each layer has the ms of its forward, backward and update, on the device and on the CPU, and its parameters' bytes.
function overlap(   count, layer, forward, backward, update, on_cpu, bytes, reads, written) {
    count = choose_layers(6, 14)
    machine(1e9, draw(2, 20) * 1e6, 20)
    for (layer = 0; layer < count; layer++) {
        if (layer > 0 && seed % 2 == 0) {
            forward[layer] = forward[0]
            backward[layer] = backward[0]
            update[layer] = update[0]
            on_cpu[layer] = on_cpu[0]
            bytes[layer] = bytes[0]
        } else {
            forward[layer] = draw(0.5, 2)
            backward[layer] = draw(1, 4)
            update[layer] = draw(0.1, 3)
            on_cpu[layer] = draw(0.1, 6)
            bytes[layer] = whole(1000, 9000)
        }
        layer_tensors(layer, bytes[layer], 2 * bytes[layer])
        tensor("a" layer, 100, "activations")
    }
    for (layer = 0; layer < count; layer++) {
        reads = "w" layer
        if (layer > 0)
            reads = reads ",a" (layer - 1)
        task("forward", forward[layer], layer, "", reads, "a" layer)
    }
    for (layer = count - 1; layer >= 0; layer--) {
        task("backward", backward[layer], layer, "", "w" layer ",a" layer, "g" layer)
        written = "w" layer ",o" layer
        task("update", update[layer], layer, "", "w" layer ",g" layer ",o" layer, written, \
            sprintf(" cpu=%.3fms", on_cpu[layer]))
    }
}

BEGIN {
    state = seed * seed * 7919 + seed * 104729 + 1
    for (i = 0; i < 5; i++)
        draw(0, 1) # the first ones of small seeds are small
    if (kind == "chain")
        chain()
    else if (kind == "training")
        training()
    else
        overlap()
}
