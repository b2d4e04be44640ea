# step.awk - the list of lab 1: three layers, their updates on the host or on the device, and one activation that leaves
# the device for a while.
#
#     awk -v seed=N -f ../lib/draw.awk -f step.awk     prints a step file, such as
#
#     device gpu memory=1M share
#     ...
#     tensor w0 gpu 23000 parameters
#     ...
#     task forward0 gpu.compute 1.4ms reads=w0,batch writes=x0
#
# Layer K has wK, the parameters, gK, their gradients, mK, the moments, xK, what its forward leaves, and dK, the
# gradient of its input.  hwK and hgK are on the host, if it updates the layer.  The order of the draws decides what a seed gives.

# ---- lines of a step file: tensors come first, so tasks and copies are kept until the end ----------------------------

function tensor(name, device, bytes, class) { # in units of 1000 bytes
    printf "tensor %s %s %d %s\n", name, device, 1000 * bytes, class
}

function add_line(text) {
    lines++
    line[lines] = text
}

function task(name, lane, reads, writes,   ms) {
    ms = draw(0, 2)
    ms = ms "." draw(1, 9)
    if (reads != "")
        reads = " reads=" reads
    add_line("task " name " " lane " " ms "ms" reads " writes=" writes)
}

function copy(name, to, from) {
    add_line("copy " name " " to " " from)
}

# ---- the step --------------------------------------------------------------------------------------------------------

function forward(layer,   bytes, left, input) {
    bytes = draw(10, 50)
    tensor("w" layer, "gpu", bytes, "parameters")
    tensor("g" layer, "gpu", bytes, "gradients")
    left = draw(10, 60)
    tensor("x" layer, "gpu", left, "activations")
    tensor("d" layer, "gpu", draw(10, 40), "work")
    input = layer > 0 ? "x" (layer - 1) : "batch"
    task("forward" layer, "gpu.compute", "w" layer "," input, "x" layer)
    if (layer == away) {
        tensor("hx", "host", left, "activations keep")
        tensor("y", "gpu", left, "activations")
    }
    if (layer == away + 1)
        copy("leave", "hx", "x" away)
    on_host[layer] = draw(1, 3) < 3
    tensor("m" layer, on_host[layer] ? "host" : "gpu", 2 * bytes, "optimizer")
    if (on_host[layer]) {
        tensor("hw" layer, "host", bytes, "parameters")
        tensor("hg" layer, "host", bytes, "gradients keep")
    }
}

function backward(layer,   reads) {
    if (layer == (away < 1 ? 1 : 2))
        copy("return", "y", "hx")
    reads = "w" layer ",d" (layer + 1) "," (layer == away ? "y" : "x" layer)
    if (layer == 0)
        reads = reads ",batch"
    task("backward" layer, "gpu.compute", reads, "g" layer ",d" layer)
}

function update(layer) {
    if (!on_host[layer]) {
        task("update" layer, "gpu.compute", "w" layer ",g" layer ",m" layer, "w" layer ",m" layer)
        return
    }
    copy("down" layer, "hg" layer, "g" layer)
    task("update" layer, "host.cpu", "hg" layer ",hw" layer ",m" layer, "hw" layer ",m" layer)
    copy("up" layer, "w" layer, "hw" layer)
}

BEGIN {
    state = seed * 104729 + 1
    for (i = 0; i < 5; i++)
        draw(0, 1) # the first ones of small seeds are small
    print "device gpu memory=1M share"
    print "lane gpu.upload1"
    printf "link gpu up %d 100us\n", 1000000 * draw(30, 90)
    printf "link gpu down %d 100us\n", 1000000 * draw(30, 90)
    batch = draw(5, 30)
    tensor("hbatch", "host", batch, "work keep")
    tensor("batch", "gpu", batch, "activations")
    task("read", "host.feed", "", "hbatch")
    copy("send", "batch", "hbatch lane=gpu.upload1")
    away = draw(0, 1) # the layer whose activations leave
    for (layer = 0; layer < 3; layer++)
        forward(layer)
    tensor("d3", "gpu", draw(10, 40), "work")
    task("loss", "gpu.compute", "x2", "d3")
    for (layer = 2; layer >= 0; layer--) {
        backward(layer)
        update(layer)
    }
    for (i = 1; i <= lines; i++)
        print line[i]
}
