# random.awk - random step files for graders.
#
#     awk -v seed=N [-v NAME=VALUE ...] -f tutorials/labs/lib/draw.awk -f tutorials/labs/lib/random.awk
#
#     n=TASKS     how many (default 21)
#     lanes=L     compute lanes of device a (3)
#     keep=PCT    tensors that are kept from step to step, of a hundred (30)
#     join=1      fork and join: every fifth task, and the last, comes after all before it; no wait crosses the end
#     parts=1     tasks touch parts of tensors
#     share=1     tensors may get the bytes of others
#     every=1     some tasks do not run in every step
#     copies=own|shared   a third of the tasks are copies; each lane of copies has links of its own, or shares them
#     latency=1   links have one
#
# With seed=5 and copies=own, for instance,
#
#     tensor h11 host 1417 parameters
#     task t3 a.compute 2.630ms reads=a5 writes=a1
#     copy c7 a1[0:103] h11[0:103] lane=a.upload
#
# Each tensor that is not kept is written before it is read.  The order of the draws below decides what a seed gives.
#
# Tensor i has: name[i], home[i] (device a or b, or h, the host), bytes[i], and whether it is written[i] so far.

function chance(percent) {
    return draw(1, 100) <= percent
}

function duration(   ms) {
    ms = draw(0, 2)
    return sprintf("%d.%03dms", ms, draw(1, 999))
}

function lane_name(k) { # of a compute lane of device a
    return "a.compute" (k > 0 ? k : "")
}

# ---- tasks on any tensors --------------------------------------------------------------------------------------------

function part(i,   from) { # of tensor i; all of it where it has to be written first
    if (!parts || !written[i] || chance(40))
        return name[i]
    from = draw(0, bytes[i] - 2)
    return name[i] "[" from ":" draw(from + 1, bytes[i]) "]"
}

function any(device, is_written,   i, tries) { # one of the device's tensors, or 0
    for (tries = 0; tries < 50; tries++) {
        i = draw(1, tensors)
        if (home[i] == device && (!is_written || written[i]))
            return i
    }
    return 0
}

function work(i,   lane, reads, target, source, last, k, is_late, time, writes, period) { # task i
    lane = draw(0, lanes - 1)
    for (k = draw(0, 2); k > 0; k--) {
        source = any("a", 1)
        if (source && source != last) {
            reads = reads "," part(source)
            last = source
        }
    }
    do
        target = any("a", 0)
    while (target == last)
    is_late = written[target]
    writes = part(target)
    written[target] = 1 # only now: its first write is to all of it
    time = duration()
    if (reads != "")
        reads = " reads=" substr(reads, 2)
    if (every && is_late && chance(60))
        period = " every=" draw(2, 3)
    printf "task t%d %s %s%s writes=%s%s\n", i, lane_name(lane), time, reads, writes, period
}

function copy(i,   from, to, source, target, size, lane) {
    do {
        from = substr("abh", draw(1, 3), 1)
        to = substr("abh", draw(1, 3), 1)
    } while (from == to || (copies == "own" && from != "h" && to != "h"))
    source = any(from, 1)
    target = any(to, 1)
    if (!source || !target)
        return
    size = bytes[source] < bytes[target] ? bytes[source] : bytes[target]
    size = draw(1, size)
    lane = from == "h" ? to ".upload" : from ".download"
    if (copies == "shared" && chance(50))
        lane = lane "1"
    printf "copy c%d %s[0:%d] %s[0:%d] lane=%s\n", i, name[target], size, name[source], size, lane
}

# ---- fork and join ---------------------------------------------------------------------------------------------------

# Task 1, and every fifth one, is on the first lane and reads what others have written since; they read what it wrote.
# Tensor f is for that, and lK is written by the tasks of lane K; those that were are in has_written.
function fork_or_join(i,   lane, k, reads, writes) {
    if (i % 5 == 1) {
        lane = 0
        writes = "f"
        for (k = 0; k < lanes; k++)
            if (k in has_written)
                reads = reads ",l" k
        split("", has_written) # none
    } else {
        lane = draw(0, lanes - 1)
        writes = "l" lane
        reads = ",f"
        has_written[lane]
    }
    if (reads != "")
        reads = " reads=" substr(reads, 2)
    printf "task t%d %s %s%s writes=%s\n", i, lane_name(lane), duration(), reads, writes
}

# ---- the machine -----------------------------------------------------------------------------------------------------

function link(devices, way,   rate) {
    rate = 1000 * draw(200, 2000)
    printf "link %s %s %d%s\n", devices, way, rate, latency ? " " draw(50, 900) "us" : ""
}

function machine(   i) {
    print "device a memory=1M" (share ? " share" : "")
    for (i = 1; i < lanes; i++)
        print "lane a.compute" i
    if (copies)
        print "device b memory=1M"
    if (copies == "own") {
        link("a", "up")
        link("a", "down")
        link("b", "up")
        link("b", "down")
    }
    if (copies == "shared") {
        print "lane a.upload1"
        link("a,b", "up")
        print "lane a.download1"
        link("a,b", "down")
        print "lane b.upload1"
        print "lane b.download1"
    }
}

function make_tensor(i,   where) {
    home[i] = "a"
    if (copies && i > 2)
        home[i] = substr("aabh", draw(1, 4), 1)
    name[i] = home[i] i
    bytes[i] = draw(100, 2000)
    written[i] = home[i] != "a" || chance(keep)
    where = home[i] == "h" ? "host" : home[i]
    printf "tensor %s %s %d %s\n", name[i], where, bytes[i], written[i] ? "parameters" : "activations"
}

BEGIN {
    state = seed * seed * 7919 + seed * 104729 + 1
    for (i = 0; i < 5; i++)
        draw(0, 1) # the first ones of small seeds are small
    n = n ? n : 21
    lanes = lanes ? lanes : 3
    keep = keep == "" ? 30 : keep
    tensors = int(n / 2) + 2
    if (join)
        n -= (n - 1) % 5
    machine()
    for (i = 1; i <= tensors; i++)
        make_tensor(i)
    if (join) {
        for (i = 0; i < lanes; i++)
            print "tensor l" i " a 100 activations"
        print "tensor f a 100 activations"
    }
    for (i = 1; i <= n; i++) {
        if (copies && i > 3 && chance(35))
            copy(i)
        else if (join)
            fork_or_join(i)
        else
            work(i)
    }
}
