# orders.awk - the order of a pipeline: which computation each device makes after which.
#
# It reads a schedule, that is a row for each device with a cell for each turn, in PyTorch's form: of a file, or of
# `yard plan --print-schedule` for the orders that `yard train --pipeline` knows.  Only orders that neither has are
# written out here.  It prints nothing: it fills turn[], from which pipelines.awk makes a list.
#
#     make pipeline order=1f1b p=4 m=8 ...        p devices, m micro-batches, in an order of yard
#     make pipeline csv=FILE p=4 m=8 ...          of a file
#
# A row                                           gives the turns of its device
#
#     0F0,0F1,0I0,(0F2;3B1)OVERLAP_F_B            "F 0 0"  "F 0 1"  "D 0 0"  "O 0 2 3 1"
#
# A turn is a computation, with its stage and micro-batch:
#
#     F   forward              D   the gradient of its input        W   those of its weights
#     B   D and W in one       O   F of one stage and B of another, overlapped
#
# Devices and stages count from 0.  Where a device has several stages, they are dealt round (stage k is on device
# k % p), or folded as a V (0 1 2 3 3 2 1 0).
#
#     p, m                    devices, and micro-batches that each stage gets
#     chain                   stages that a micro-batch passes
#     turn[device, i]         turn i, from 1 to turns[device]

function add_turn(device, words) {
    turns[device]++
    turn[device, turns[device]] = words
}

# ---- schedules -------------------------------------------------------------------------------------------------------

function read_schedule(command,   row, device) { # the command prints it
    device = 0
    while ((command | getline row) > 0) {
        read_row(device, row)
        device++
    }
    close(command)
    if (!device)
        refuse("schedule: " command)
}

function read_row(device, row,   cell, cells, i, computation) {
    cells = split(row, cell, ",")
    for (i = 1; i <= cells; i++) {
        computation = "O"
        if (match(cell[i], /^[0-9]+[FIWB]/))
            computation = substr(cell[i], RLENGTH, 1)
        if (computation == "I")
            computation = "D"
        gsub(/[^0-9]+/, " ", cell[i])
        sub(/^ /, "", cell[i])
        add_turn(device, computation " " cell[i])
    }
}

# The command that prints yard's schedule of that order, of the smallest model that has so many stages.
function yard_prints(order, devices, stages, micros,   model, mesh) {
    model = " plan --model tiny --layers " stages " --batch " micros " --micro-batch 1"
    mesh = " --mesh pp=" devices " -d " devices " --hardware data/hardware/server.txt"
    return ENVIRON["YARD"] model mesh " --pipeline " order " --print-schedule"
}

# ---- DualPipe --------------------------------------------------------------------------------------------------------

# DualPipe-V is an order of yard, in which an overlapped F and B stand one after the other.  Only the first B of the
# last device is not overlapped.
function dualpipe_v(devices,   device, i, last, words, may_overlap) {
    read_schedule(yard_prints("dualpipev", devices, 2 * devices, m))
    for (device = 0; device < devices; device++) {
        last = turns[device]
        turns[device] = 0
        may_overlap = device < devices - 1
        for (i = 1; i <= last; i++) {
            words = turn[device, i]
            if (words ~ /^F/ && turn[device, i + 1] ~ /^B/) {
                if (may_overlap) {
                    words = "O" substr(words, 2) substr(turn[device, i + 1], 2)
                    i++
                }
                may_overlap = 1
            }
            add_turn(device, words)
        }
    }
}

# DualPipe is twice DualPipe-V.  One is on the first half of the devices, and the other, mirrored, on the second half.
# Each folds its way back onto the stages of the other direction.
function dualpipe(   half, device, i, mirrored) {
    half = p / 2
    dualpipe_v(half)
    for (device = 0; device < half; device++)
        for (i = 1; i <= turns[device]; i++) {
            mirrored = p - 1 - device
            add_turn(mirrored, shift_stages(turn[device, i], 0, half - 1))
            turn[device, i] = shift_stages(turn[device, i], half, chain - 1)
        }
}

# Stages from `first` to `last` become those of the other direction.
function shift_stages(words, first, last,   part, parts, i) {
    parts = split(words, part, " ")
    words = part[1]
    for (i = 2; i <= parts; i++) {
        if (i % 2 == 0 && part[i] >= first && part[i] <= last) # every other number is a stage
            part[i] += chain
        words = words " " part[i]
    }
    return words
}

# ---- orders that are written out -------------------------------------------------------------------------------------

# Each stage takes its micro-batches in order, so take() is told only what is computed, and on which stage.
#
#     taken[computation, stage]     the micro-batches that the stage has had of F, D and W; a B counts as D and W
#     owed[device, i]               the stage of the i-th D without its W; owes[device] of them are there, and for
#     paid[device]                  of them the W was taken

function take(device, computation, stage) {
    if (computation == "B") {
        add_turn(device, "B " stage " " (taken["D", stage] + 0))
        taken["D", stage]++
        taken["W", stage]++
        return
    }
    add_turn(device, computation " " stage " " (taken[computation, stage] + 0))
    taken[computation, stage]++
    if (computation == "D") {
        owes[device]++
        owed[device, owes[device]] = stage
    }
}

function pay(device) { # the W that waits longest
    paid[device]++
    take(device, "W", owed[device, paid[device]])
}

# p micro-batches pass the first stage of each device, then the second, and so on.  Yard's `interleaved` has two stages
# a device; the entry has a row with three.
function interleaved(device, chunks,   i, all, ahead) {
    all = m * chunks
    ahead = 2 * (p - 1 - device) + (chunks - 1) * p
    for (i = -ahead; i < all; i++) {
        if (i + ahead < all)
            take(device, "F", int((i + ahead) / p) % chunks * p + device)
        if (i >= 0)
            take(device, "B", (chunks - 1 - int(i / p) % chunks) * p + device)
    }
}

function zb_v(device,   i, down, up) {
    down = device # its stage on the way down the V
    up = 2 * p - 1 - device
    for (i = 0; i < 2 * (p - device) - 1; i++)
        take(device, "F", down)
    for (i = 0; i < device; i++) {
        take(device, "F", up)
        take(device, "F", down)
    }
    for (i = 0; i < p - device; i++) {
        take(device, "F", up)
        take(device, "D", up)
        pay(device)
    }
    while (taken["F", up] < m) { # the steady part
        if (taken["F", down] < m)
            take(device, "F", down)
        take(device, "D", down)
        pay(device)
        take(device, "F", up)
        take(device, "D", up)
        pay(device)
    }
    for (i = 0; i < device; i++) {
        take(device, "D", down)
        take(device, "D", up)
    }
    for (i = 0; i < p - device; i++) {
        take(device, "D", down)
        pay(device)
    }
    while (paid[device] < owes[device])
        pay(device)
}

# ---- the order of an entry -------------------------------------------------------------------------------------------

function take_turns(order, chunks,   device) {
    if (value["csv"])
        read_schedule("cat " value["csv"])
    else if (order == "gpipe" || order == "1f1b")
        read_schedule(yard_prints(order, p, p, m))
    else if (order == "zb") # k=1 is ZB-H1, and k=2 is ZB-H2
        read_schedule(yard_prints("zbh" value["k"], p, p, m))
    else if (order == "interleaved")
        for (device = 0; device < p; device++)
            interleaved(device, chunks)
    else if (order == "zb-v")
        for (device = 0; device < p; device++)
            zb_v(device)
    else if (order == "dual" && chain == p)
        dualpipe()
    else if (order == "dual")
        dualpipe_v(p)
    else
        refuse("order=" order " in take_turns")
}
