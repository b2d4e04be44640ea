# values.awk - why does a list compute something else than the list without swap?
#
#     awk -f values.awk BARE MINE      prints the first reason, or nothing
#
# A computation is a task with its name, lane, time and options, and the values that it reads; its number is in
# number[].  It gives a tensor a value, such as "7.2": the second output of computation 7.  A tensor that nobody has
# written has its own name as its value, and a copy's target has the value of its source.

function fail(why) {
    print why
    has_failed = 1
    exit
}

function value(tensor) {
    if (tensor in holds)
        return holds[tensor]
    return tensor
}

function read_task(   i, n, tensor) { # sets name, key, and writes[1] to writes[n_writes]
    name = $2 " " $3 " " $4
    key = ""
    n_writes = 0
    for (i = 5; i <= NF; i++) {
        if ($i ~ /^reads=/) {
            n = split(substr($i, 7), tensor, ",")
            while (n > 0) {
                key = key "," value(tensor[n])
                n--
            }
        } else if ($i ~ /^writes=/)
            n_writes = split(substr($i, 8), writes, ",")
        else
            name = name " " $i
    }
    key = name key
}

FNR == 1 {
    file++ # 1: BARE, 2: MINE
    split("", holds)
}

file == 1 && $1 == "tensor" && ($4 == "parameters" || $4 == "optimizer") { is_state[$2] = 1 }

$1 == "copy" { holds[$3] = value($4) }

$1 == "task" {
    read_task()
    if (!(key in number)) {
        count++
        number[key] = count
    }
    computation = number[key]
    for (i = 1; i <= n_writes; i++)
        holds[writes[i]] = computation "." i
}

$1 == "task" && file == 1 { named[computation] = name }

$1 == "task" && file == 2 {
    if (!(computation in named))
        fail(name ": reads other values than in the list without swap")
    times[computation]++
    if (times[computation] > 1 && name !~ /role=forward/)
        fail(name ": is done twice")
}

file == 1 {
    for (tensor in is_state)
        last[tensor] = value(tensor)
}

END {
    if (has_failed)
        exit
    for (computation in named)
        if (!times[computation]) {
            print named[computation] ": is missing"
            exit
        }
    for (tensor in is_state)
        if (value(tensor) != last[tensor]) {
            print tensor ": has another value at the end"
            exit
        }
}
