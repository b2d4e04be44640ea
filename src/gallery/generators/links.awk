# links.awk - data on links: a ring and a chain of devices, and what ZeRO (zero.awk) needs of such a machine.
#
#     make ring n=4 S=8000000 rate=1e9                  n devices all-reduce S bytes of gradients
#     make chain_of_sends n=4 M=4 S=8000000 rate=1e9    the first sends S bytes of parameters to all, in M slices
#
# Each device has a link of its own that moves `rate` bytes per second each way.  These print the machine, tensors and
# tasks; a share that the ring passes on from device 0 to 1 becomes
#
#     copy send b1[0:2000000] g0[0:2000000] role=reduce micro=0
#     task add r1.compute 0ms role=reduce reads=b1[0:2000000],g1[0:2000000] writes=g1[0:2000000]

function machine(   rank) {
    devices = value["n"]
    for (rank = 0; rank < devices; rank++) {
        print "device r" rank " memory=8000G"
        print "link r" rank " up " value["rate"]
        print "link r" rank " down " value["rate"]
    }
}

function on(rank, name, role, reads, writes,   ms) { # a task on a device; forwards take F ms and backwards B ms
    ms = 0
    if (name == "forward")
        ms = value["F"]
    if (name == "backward")
        ms = value["B"]
    task(name, "r" rank ".compute", ms, role, reads, writes)
}

# Each sends a share to its neighbour, as often as there are neighbours, and adds what it gets: then each has the sum of
# one share.  The sums are sent on as often, and then all have all of them.
function ring(   rank, round, neighbours) {
    machine()
    neighbours = devices - 1
    for (rank = 0; rank < devices; rank++) {
        tensor("w" rank, "r" rank, value["S"], "parameters")
        tensor("g" rank, "r" rank, value["S"], "gradients")
        tensor("b" rank, "r" rank, value["S"], "work")
    }
    for (rank = 0; rank < devices; rank++)
        on(rank, "backward", "backward", "w" rank, "g" rank)
    for (round = 0; round < 2 * neighbours; round++)
        for (rank = 0; rank < devices; rank++)
            pass_share(rank, (rank - round + 2 * devices) % devices, round < neighbours)
    for (rank = 0; rank < devices; rank++)
        on(rank, "update", "update", "g" rank ",w" rank, "w" rank)
}

function pass_share(rank, which, adds,   next_rank, from, buffer, to) { # to the neighbour, which may add it
    next_rank = (rank + 1) % devices
    from = share("g" rank, which, devices, value["S"])
    buffer = share("b" next_rank, which, devices, value["S"])
    to = share("g" next_rank, which, devices, value["S"])
    printf "copy send %s %s role=reduce micro=%d\n", adds ? buffer : to, from, which
    if (adds)
        on(next_rank, "add", "reduce", buffer "," to, to)
}

# Each device passes a slice on as soon as it has it.
function chain_of_sends(   rank, slice, to, from) {
    machine()
    for (rank = 0; rank < devices; rank++) {
        tensor("w" rank, "r" rank, value["S"], "parameters")
        tensor("g" rank, "r" rank, 1024, "gradients")
    }
    for (rank = 0; rank < devices; rank++)
        on(rank, "backward", "backward", "w" rank, "g" rank)
    on(0, "update", "update", "g0,w0", "w0")
    for (slice = 0; slice < value["M"]; slice++)
        for (rank = 0; rank < devices - 1; rank++) {
            to = share("w" (rank + 1), slice, value["M"], value["S"])
            from = share("w" rank, slice, value["M"], value["S"])
            printf "copy send %s %s role=broadcast msg=%d micro=%d\n", to, from, slice + 1, slice
        }
}
