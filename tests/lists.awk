# lists.awk - random step files: awk -v kind=chain|training|overlap -v seed=N [-v layers=N] -f tests/lists.awk
#
#     chain      6 to 16 layers forward, then back; each backward needs what its forward made; not all of it fits
#     training   layers with parameters, gradients, optimizer and activations, in 1 to 3 micro-batches, and their updates
#     overlap    layers whose updates the device or the CPU may do, of alike sizes where the seed is even
#
# The numbers are those of Park and Miller (1988): the same with every awk, since no product needs more than 53 bits.

function draw(low, high) {
    state = state * 16807 % 2147483647
    return low + (high - low) * state / 2147483647
}
function whole(low, high) { return int(draw(low, high + 1)) } # low to high
function task(name, ms, layer, micro, reads, writes, more) {
    printf "task %s gpu.compute %.3fms layer=%d role=%s%s%s%s%s\n", name, ms, layer, name,
        (micro == "" ? "" : " micro=" micro), (reads ? " reads=" reads : ""), (writes ? " writes=" writes : ""), more
}
function tensor(name, n, class) { printf "tensor %s gpu %d %s\n", name, n, class; return n }
function machine(bytes, rate, latency) {
    printf "device gpu memory=%d\nlink gpu down %d %dus\nlink gpu up %d %dus\n", bytes, rate, latency, rate, latency
}

function chain(    i, sum, most) {
    n = whole(6, 16); n = layers ? layers : n
    for (i = 0; i < n; i++) {
        bytes[i] = seed % 2 ? 64000 : whole(10000, 100000)
        sum += bytes[i]
        most = bytes[i] + bytes[i - 1] > most ? bytes[i] + bytes[i - 1] : most
    }
    machine(most + draw(0.1, 0.5) * (sum - most), draw(0.4, 1.6) * 64e6, seed % 3 ? 0 : 100)
    for (i = 0; i < n; i++)
        tensor("a" i, bytes[i], "activations")
    for (i = 0; i < n; i++)
        task("forward", draw(0.5, 1.5), i, "", i ? "a" i - 1 : "", "a" i)
    for (i = n; i-- > 0;)
        task("backward", draw(0.5, 2.5), i, "", "a" i)
}

function training(    i, m, micros, rate, text) {
    n = whole(4, 8); n = layers ? layers : n; micros = whole(1, 3); rate = draw(10, 60) * 1e6
    for (i = 0; i < n; i++) {
        w[i] = whole(5000, 45000); o[i] = 2 * w[i]
        for (m = 0; m < micros; m++) {
            a[i, m] = whole(10000, 100000); b[i, m] = whole(2000, 20000)
        }
        sum += 2 * w[i] + o[i] + a[i, 0] + b[i, 0]
    }
    machine(draw(0.5, 0.9) * sum, rate, seed % 3 ? 0 : 100)
    for (i = 0; i < n; i++) {
        tensor("w" i, w[i], "parameters"); tensor("g" i, w[i], "gradients"); tensor("o" i, o[i], "optimizer")
        for (m = 0; m < micros; m++) {
            tensor("a" i "." m, a[i, m], "activations"); tensor("b" i "." m, b[i, m], "activations")
        }
    }
    for (m = 0; m < micros; m++) {
        for (i = 0; i < n; i++) {
            task("forward", draw(0.5, 1.5), i, m, "w" i (i ? ",b" i - 1 "." m : ""), "a" i "." m)
            task("forward", draw(0, 0.5), i, m, "a" i "." m, "b" i "." m)
        }
        for (i = n; i-- > 0;)
            task("backward", draw(0.5, 2.5), i, m, "w" i ",a" i "." m ",b" i "." m (m ? ",g" i : ""), "g" i)
    }
    for (i = n; i-- > 0;)
        task("update", draw(0, 0.5), i, "", "w" i ",g" i ",o" i, "w" i ",o" i)
}

function overlap(    i, same) {
    n = whole(6, 14); n = layers ? layers : n
    machine(1e9, draw(2, 20) * 1e6, 20)
    for (i = 0; i < n; i++) {
        same = i && seed % 2 == 0
        f[i] = same ? f[0] : draw(0.5, 2); g[i] = same ? g[0] : draw(1, 4)
        u[i] = same ? u[0] : draw(0.1, 3); c[i] = same ? c[0] : draw(0.1, 6); w[i] = same ? w[0] : whole(1000, 9000)
        tensor("w" i, w[i], "parameters"); tensor("g" i, w[i], "gradients"); tensor("o" i, 2 * w[i], "optimizer")
        tensor("a" i, 100, "activations")
    }
    for (i = 0; i < n; i++)
        task("forward", f[i], i, "", "w" i (i ? ",a" i - 1 : ""), "a" i)
    for (i = n; i-- > 0;) {
        task("backward", g[i], i, "", "w" i ",a" i, "g" i)
        task("update", u[i], i, "", "w" i ",g" i ",o" i, "w" i ",o" i, sprintf(" cpu=%.3fms", c[i]))
    }
}

BEGIN {
    state = seed * seed * 7919 + seed * 104729 + 1
    for (i = 0; i < 5; i++)
        draw(0, 1)
    if (kind == "chain") chain()
    else if (kind == "training") training()
    else overlap()
}
