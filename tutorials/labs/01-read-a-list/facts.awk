# facts.awk - reads `plan --json` of a list, and says what lab 1 asks of it:
#
#     lane KIND TASKS
#     peak BYTES TASK,...                         most bytes on the gpu, and the tasks at which they are held
#     wait TASK PRODUCER['] data|reuse TENSOR:WHY,...    tasks with one such wait; WHY: raw, war, waw, bytes
#     life TENSOR TASK TENSOR,...                 its last task; then who gets some of its bytes next
#     work TASK                                   of a task that is not a copy
#
# For example
#
#     lane upload1 1
#     wait 2 1 data batch:raw
#     life x0 4 d3
#
# A { begins a record: of a task, then of its waits, and of its accesses, each of a tensor that it reads or writes.

BEGIN { RS = "{" }

function value(key,   at, text) { # of the record
    at = index($0, "\"" key "\":")
    if (!at)
        return ""
    text = substr($0, at + length(key) + 3)
    sub(/^"/, "", text)
    sub(/[",}].*/, "", text)
    return text
}

function append(text, word) { # with a comma between
    return text (text == "" ? "" : ",") word
}

# ---- the records -----------------------------------------------------------------------------------------------------

/^"index"/ {
    task = value("index") + 0
    lane = value("lane")
    sub(/.* /, "", lane)
    tasks_of[lane]++
    lane_of[task] = lane
    first_access[task] = accesses + 1
    last_access[task] = accesses
}

/^"from"/ && value("wait") == "true" {
    waits++
    consumer[waits] = task
    producer[waits] = value("from") + 0
    kind[waits] = value("kind")
    mark[waits] = value("previous_step") == "true" ? "\047" : ""
    alike[task, mark[waits], kind[waits]]++
}

/^"tensor"/ {
    accesses++
    last_access[task] = accesses
    name = value("tensor")
    tensor[accesses] = name
    mode[accesses] = value("mode")
    begin[accesses] = value("address") + 0
    end[accesses] = begin[accesses] + value("bytes")
    place[accesses] = value("device")
    if (!(name in first_task)) {
        tensors++
        tensor_name[tensors] = name
        first_task[name] = task
        from[name] = begin[accesses]
        to[name] = end[accesses]
        home[name] = place[accesses]
    }
    last_task[name] = task
}

/^"device"/ && value("device") == "gpu" { in_gpu = 1 }
/"together"/ && in_gpu && !peak { peak = value("together") + 0 }

# ---- what follows from them ------------------------------------------------------------------------------------------

function is_kept(name) { # from step to step
    return name ~ /^(w|m)/
}

function print_peak(   i, k, name, held, at) {
    at = ""
    for (i = 0; i <= task; i++) {
        held = 0
        for (k = 1; k <= tensors; k++) {
            name = tensor_name[k]
            if (home[name] == "gpu" && (is_kept(name) || (first_task[name] <= i && i <= last_task[name])))
                held += to[name] - from[name]
        }
        if (held == peak)
            at = append(at, i)
    }
    print "peak", peak, at
}

function overlap(a, b) { # do two accesses touch the same bytes?
    return place[a] == place[b] && begin[a] < end[b] && begin[b] < end[a]
}

function why(wait, before, after) { # of accesses of producer and consumer, or ""
    if (kind[wait] == "reuse" || tensor[before] != tensor[after])
        return "bytes"
    if (mode[before] == "write")
        return mode[after] == "read" ? "raw" : "waw"
    return mode[after] == "write" ? "war" : ""
}

function reasons_of(wait,   before, after, reason, text) {
    text = ""
    for (before = first_access[producer[wait]]; before <= last_access[producer[wait]]; before++)
        for (after = first_access[consumer[wait]]; after <= last_access[consumer[wait]]; after++) {
            reason = ""
            if (overlap(before, after))
                reason = why(wait, before, after)
            if (reason != "")
                text = append(text, tensor[before] ":" reason)
        }
    return text
}

function is_next(name, other) { # does the other get some of its bytes, later?
    if (home[other] != "gpu" || is_kept(other) || first_task[other] <= last_task[name])
        return 0
    return from[other] < to[name] && from[name] < to[other]
}

function heirs_of(name,   k, other, soonest, heirs) {
    soonest = task + 1
    heirs = ""
    for (k = 1; k <= tensors; k++) {
        other = tensor_name[k]
        if (!is_next(name, other))
            continue
        if (first_task[other] < soonest) {
            soonest = first_task[other]
            heirs = ""
        }
        if (first_task[other] == soonest)
            heirs = append(heirs, other)
    }
    return heirs
}

END {
    for (lane in tasks_of)
        print "lane", lane, tasks_of[lane]
    print_peak()
    for (i = 0; i <= task; i++)
        if (lane_of[i] == "compute" || lane_of[i] == "cpu")
            print "work", i
    for (i = 1; i <= waits; i++)
        if (alike[consumer[i], mark[i], kind[i]] == 1)
            print "wait", consumer[i], producer[i] mark[i], kind[i], reasons_of(i)
    for (i = 1; i <= tensors; i++) {
        name = tensor_name[i]
        heirs = ""
        if (home[name] == "gpu" && !is_kept(name))
            heirs = heirs_of(name)
        if (heirs != "")
            print "life", name, last_task[name], heirs
    }
}
