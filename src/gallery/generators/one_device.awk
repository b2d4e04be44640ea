# one_device.awk - steps of one device, whose data come and go over its link to the host.
#
#     make layers L=4 P=125000 wb=4 gb=4 ob=8 F=1 B=2 U=1.5 [C=4] ...     layers with P parameters each
#     make forward_and_back L=6 A=64 F=2 B=4 ...                          each forward leaves A MiB for its backward
#     make layer_stream L=3 A=32 X=4 F=2 B=4 C=2 ...                      no layer lives on the device
#     make storing t=67 d=10 K=4 ...                                      each K-th step is stored, in d seconds
#
# All have `memory` and `rate`, in bytes and bytes per second.  F, B and U are ms of a forward, backward and update, and
# C those of an update on the host; wb, gb and ob are bytes of a parameter, its gradient and the optimizer's state.
# These print the device, tensors and tasks, such as
#
#     task forward gpu.compute 1ms role=forward layer=1 reads=w1,y writes=y

function work(name, role, reads, writes,   ms) { # a task; its time is F, B or U for forward, backward or update
    ms = value[toupper(substr(name, 1, 1))]
    if (name == "advance")
        ms = value["F"]
    task(name, "gpu.compute", ms, role, reads, writes)
}

function computer() {
    print "device gpu memory=" value["memory"]
    print "link gpu up " value["rate"]
    print "link gpu down " value["rate"]
}

function shared() { # by all layers
    tensor("w", "gpu", 16 * MiB, "parameters")
    tensor("g", "gpu", 16 * MiB, "gradients")
}

# Layers with parameters of their own, updated as soon as their backward has ended; `cpu=`: or on the host, in C ms.
function layers(   layer, reads, on_host, state) {
    computer()
    on_host = value["C"]
    if (on_host == "")
        on_host = value["U"]
    for (layer = 0; layer < value["L"]; layer++) {
        tensor("w" layer, "gpu", value["P"] * value["wb"], "parameters")
        tensor("g" layer, "gpu", value["P"] * value["gb"], "gradients")
        tensor("o" layer, "gpu", value["P"] * value["ob"], "optimizer")
    }
    tensor("y", "gpu", 1024, "activations")
    for (layer = 0; layer < value["L"]; layer++) {
        reads = "w" layer
        if (layer > 0)
            reads = reads ",y"
        work("forward", "forward layer=" layer, reads, "y")
    }
    for (layer = value["L"] - 1; layer >= 0; layer--) {
        work("backward", "backward layer=" layer, "w" layer ",y", "g" layer ",y")
        state = "w" layer ",o" layer
        work("update", "update layer=" layer " cpu=" on_host "ms", "g" layer "," state, state)
    }
}

# Each layer's forward reads what the one before it left, A MiB, and its backward what its own forward left.
function forward_and_back(   layer, reads) {
    computer()
    shared()
    for (layer = 0; layer < value["L"]; layer++)
        tensor("a" layer, "gpu", value["A"] * MiB, "activations")
    for (layer = 0; layer < value["L"]; layer++) {
        reads = "w"
        if (layer > 0)
            reads = reads ",a" (layer - 1)
        work("forward", "forward layer=" layer, reads, "a" layer)
    }
    for (layer = value["L"] - 1; layer >= 0; layer--) {
        reads = "w,a" layer
        if (layer < value["L"] - 1)
            reads = reads ",g"
        work("backward", "backward layer=" layer, reads, "g")
    }
    work("update", "update", "w,g", "w")
}

# No layer lives on the device.  Parameters come up to two places there, p0 and p1, in turn; gradients go down from q0
# and q1; the host updates.  Before the first backwards the last two layers are still in their places.
function layer_stream(   layer, place, reads, state) {
    computer()
    for (place = 0; place < 2; place++) {
        tensor("p" place, "gpu", value["A"] * MiB, "work")
        tensor("q" place, "gpu", value["A"] * MiB, "gradients")
    }
    for (layer = 0; layer < value["L"]; layer++) {
        tensor("x" layer, "gpu", value["X"] * MiB, "activations")
        tensor("w" layer, "host", value["A"] * MiB, "parameters")
        tensor("h" layer, "host", value["A"] * MiB, "gradients keep")
        tensor("m" layer, "host", 2 * value["A"] * MiB, "optimizer")
    }
    for (layer = 0; layer < value["L"]; layer++) {
        print "copy up p" layer % 2 " w" layer " layer=" layer
        reads = "p" layer % 2
        if (layer > 0)
            reads = reads ",x" (layer - 1)
        work("forward", "forward layer=" layer, reads, "x" layer)
    }
    for (layer = value["L"] - 1; layer >= 0; layer--) {
        if (layer < value["L"] - 2)
            print "copy up p" layer % 2 " w" layer " layer=" layer
        reads = "p" layer % 2 ",x" layer
        if (layer < value["L"] - 1)
            reads = reads ",q" (layer + 1) % 2
        work("backward", "backward layer=" layer, reads, "q" layer % 2)
        print "copy down h" layer " q" layer % 2 " layer=" layer
        state = "w" layer ",m" layer
        task("update", "host.cpu", value["C"], "update layer=" layer, "h" layer "," state, state)
    }
}

# A step of t seconds; every K-th the parameters are stored, which takes d seconds, and nothing goes on meanwhile.
function storing() {
    computer()
    shared()
    tensor("stored", "gpu", 16 * MiB, "parameters")
    task("step", "gpu.compute", 1000 * value["t"], "backward", "w", "g")
    work("update", "update", "w,g", "w")
    print "copy store stored w lane=gpu.compute time=" value["d"] "s every=" value["K"]
}
