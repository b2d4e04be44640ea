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

# ---- lines of a step file -------------------------------------------------------------------------------------------

function machine(bytes, rate, latency) {
    printf "device gpu memory=%d\n", bytes
    printf "link gpu down %d %dus\n", rate, latency
    printf "link gpu up %d %dus\n", rate, latency
}

function tensor(name, bytes, class) {
    printf "tensor %s gpu %d %s\n", name, bytes, class
}

function layer_tensors(i, weights, optimizer) {
    tensor("w" i, weights, "parameters")
    tensor("g" i, weights, "gradients")
    tensor("o" i, optimizer, "optimizer")
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

# ---- kinds ----------------------------------------------------------------------------------------------------------

function choose_layers(low, high,   n) { # drawn even where the caller has chosen: then all other draws stay the same
    n = whole(low, high)
    return layers ? layers : n
}

function chain(   n, i, bytes, sum, most, memory) {
    n = choose_layers(6, 16)
    for (i = 0; i < n; i++) {
        bytes[i] = seed % 2 ? 64000 : whole(10000, 100000)
        sum += bytes[i]
        if (bytes[i] + bytes[i - 1] > most) # what a forward needs at once
            most = bytes[i] + bytes[i - 1]
    }
    memory = most + draw(0.1, 0.5) * (sum - most)
    machine(memory, draw(0.4, 1.6) * 64e6, seed % 3 ? 0 : 100)
    for (i = 0; i < n; i++)
        tensor("a" i, bytes[i], "activations")
    for (i = 0; i < n; i++)
        task("forward", draw(0.5, 1.5), i, "", i > 0 ? "a" (i - 1) : "", "a" i)
    for (i = n - 1; i >= 0; i--)
        task("backward", draw(0.5, 2.5), i, "", "a" i)
}

# Of layer i and micro-batch m: w, o and a, b are the bytes of its parameters, optimizer and activations.
function training(   n, micros, rate, i, m, w, o, a, b, sum, memory) {
    n = choose_layers(4, 8)
    micros = whole(1, 3)
    rate = draw(10, 60) * 1e6
    for (i = 0; i < n; i++) {
        w[i] = whole(5000, 45000)
        o[i] = 2 * w[i]
        for (m = 0; m < micros; m++) {
            a[i, m] = whole(10000, 100000)
            b[i, m] = whole(2000, 20000)
        }
        sum += 2 * w[i] + o[i] + a[i, 0] + b[i, 0]
    }
    memory = draw(0.5, 0.9) * sum
    machine(memory, rate, seed % 3 ? 0 : 100)
    for (i = 0; i < n; i++) {
        layer_tensors(i, w[i], o[i])
        for (m = 0; m < micros; m++) {
            tensor("a" i "." m, a[i, m], "activations")
            tensor("b" i "." m, b[i, m], "activations")
        }
    }
    for (m = 0; m < micros; m++)
        forward_and_back(n, m)
    for (i = n - 1; i >= 0; i--)
        task("update", draw(0, 0.5), i, "", "w" i ",g" i ",o" i, "w" i ",o" i)
}

function forward_and_back(n, m,   i, reads) { # of micro-batch m
    for (i = 0; i < n; i++) {
        reads = "w" i
        if (i > 0)
            reads = reads ",b" (i - 1) "." m
        task("forward", draw(0.5, 1.5), i, m, reads, "a" i "." m)
        task("forward", draw(0, 0.5), i, m, "a" i "." m, "b" i "." m)
    }
    for (i = n - 1; i >= 0; i--) {
        reads = "w" i ",a" i "." m ",b" i "." m
        if (m > 0)
            reads = reads ",g" i # gradients are added up
        task("backward", draw(0.5, 2.5), i, m, reads, "g" i)
    }
}

# Of layer i: ms of its forward, backward and update, on the device and on the CPU; and its parameters' bytes.
function overlap(   n, i, forward, backward, update, on_cpu, bytes, reads) {
    n = choose_layers(6, 14)
    machine(1e9, draw(2, 20) * 1e6, 20)
    for (i = 0; i < n; i++) {
        if (i > 0 && seed % 2 == 0) {
            forward[i] = forward[0]
            backward[i] = backward[0]
            update[i] = update[0]
            on_cpu[i] = on_cpu[0]
            bytes[i] = bytes[0]
        } else {
            forward[i] = draw(0.5, 2)
            backward[i] = draw(1, 4)
            update[i] = draw(0.1, 3)
            on_cpu[i] = draw(0.1, 6)
            bytes[i] = whole(1000, 9000)
        }
        layer_tensors(i, bytes[i], 2 * bytes[i])
        tensor("a" i, 100, "activations")
    }
    for (i = 0; i < n; i++) {
        reads = "w" i
        if (i > 0)
            reads = reads ",a" (i - 1)
        task("forward", forward[i], i, "", reads, "a" i)
    }
    for (i = n - 1; i >= 0; i--) {
        task("backward", backward[i], i, "", "w" i ",a" i, "g" i)
        task("update", update[i], i, "", "w" i ",g" i ",o" i, "w" i ",o" i, sprintf(" cpu=%.3fms", on_cpu[i]))
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
