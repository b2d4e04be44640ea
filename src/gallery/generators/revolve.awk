# revolve.awk - Revolve (Griewank and Walther 2000): backward through many steps, with few states kept.
#
#     make revolve steps=10 slots=3 A=64 F=1 B=2 rate=1e9 memory=8G
#
# A state has A MiB.  `slots` states are kept, in c0, c1, ...; `now` is the state on the way to another; `tape` is what
# the forward of a step leaves for its backward.  A step that is made again, to come to a later state, is
#
#     task advance gpu.compute 1ms role=forward layer=0 reads=w,c0 writes=now
#
# It prints the device of one_device.awk, tensors and tasks.

function advance(from, to, slot, target,   step, source, result) { # slot has state `from`; target gets state `to`
    source = slot
    for (step = from; step < to; step++) {
        result = "now"
        if (step == to - 1)
            result = target
        work("advance", "forward layer=" step, "w," source, result)
        source = "now"
    }
}

function choose(n, k,   i, product) { # how many ways to choose k of n
    product = 1
    for (i = 1; i <= k; i++)
        product = product * (n - k + i) / i
    return product
}

# The fewest advances back through so many steps: Griewank and Walther's formula.
function extra(steps, slots,   repeats) {
    repeats = 0
    while (choose(slots + repeats, slots) < steps)
        repeats++
    return repeats * steps - choose(slots + repeats, slots + 1)
}

function cut(steps, slots,   step, best, cost, least) { # the step behind which the next state is kept
    for (step = 1; step < steps; step++) {
        cost = step + extra(steps - step, slots - 1) + extra(step, slots)
        if (step == 1 || cost < least) {
            best = step
            least = cost
        }
    }
    return best
}

function step_back(step, slot,   reads) { # slot has the state before the step
    work("forward", "forward layer=" step, "w," slot, "tape")
    reads = "w,tape"
    if (step < value["steps"] - 1)
        reads = reads ",g"
    work("backward", "backward layer=" step, reads, "g")
}

function reverse(from, to, free, slot,   step, middle, next_slot) { # steps from .. to - 1; slot has state `from`
    if (free > 1 && to - from > 1) {
        middle = from + cut(to - from, free)
        next_slot = "c" (value["slots"] - free + 1)
        advance(from, middle, slot, next_slot)
        reverse(middle, to, free - 1, next_slot)
        reverse(from, middle, free, slot)
        return
    }
    for (step = to - 1; step >= from; step--) {
        advance(from, step, slot, "now")
        step_back(step, step == from ? slot : "now")
    }
}

function revolve(   slot) {
    computer()
    shared()
    tensor("now", "gpu", value["A"] * MiB, "work")
    tensor("tape", "gpu", value["A"] * MiB, "work")
    for (slot = 0; slot < value["slots"]; slot++)
        tensor("c" slot, "gpu", value["A"] * MiB, "activations")
    task("batch", "gpu.compute", 0, "feed", "", "c0")
    reverse(0, value["steps"], value["slots"], "c0")
    work("update", "update", "w,g", "w")
}
