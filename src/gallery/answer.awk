# answer.awk - what `yard plan --simulate --verify --json` says of a list, in variables; and the functions of formulas.
#
#     awk -f answer.awk -f END_BLOCK ANSWER       ANSWER: the answer, with a newline for each "{", "}" and ","
#
# With such lines in it        at the END
#
#     "step_ms":27.0           period is 27
#     "busy":
#     "s0 compute":0.89        busy["s0 compute"] is 0.89
#
# gallery.sh tells what there is; its END_BLOCK computes a row from that.

# ---- functions -------------------------------------------------------------------------------------------------------

function abs(x) {
    return x < 0 ? -x : x
}

function max(x, y) {
    return x > y ? x : y
}

function round(x) {
    return int(x + 0.5)
}

# Is what was simulated what the formula gives, to 9 digits?  Has the formula the digits of `number`, which is "-" or
# the paper's?  1.5 has one digit behind the point, so 1.54 has its digits, and 1.56 has not.
function agree(formula, simulated, number,   point, digits) {
    if (abs(simulated - formula) > 1e-9 * abs(formula) + 1e-9)
        return 0
    if (number == "-")
        return 1
    point = index(number, ".")
    digits = point ? length(number) - point : 0
    return abs(formula - number) * 10 ^ digits < 0.500001
}

# revolve.awk has these two as well: what checks a list must not share the mistakes of what writes it.

function choose(n, k,   i, product) { # how many ways to choose k of n
    product = 1
    for (i = 1; i <= k; i++)
        product = product * (n - k + i) / i
    return product
}

function extra(steps, states,   repeats) { # Revolve: the fewest advances back through the steps, with states kept
    repeats = 0
    while (choose(states + repeats, states) < steps)
        repeats++
    return repeats * steps - choose(states + repeats, states + 1)
}

# ---- the answer, word by word ----------------------------------------------------------------------------------------

{
    split($0, part, "\"")
    key = part[2]
    value = $0
    sub(/.*": ?/, "", value)
    sub(/\].*/, "", value)
    gsub(/"/, "", value)
}

# Of a task; "bytes" stands behind its "flops", and elsewhere is of something else.
/^"lane":/ { lane = value }
/^"flops":/ { of_task = 1 }
/^"bytes":/ && of_task {
    moved[lane] += value / 2 # what was read and what was written
    of_task = 0
}

# Of a device's memory.
/^"memory":/ { in_memory = 1 }
/^"simulation":/ { in_memory = 0 }
in_memory && key == "device" { device = value }
in_memory && key == "parameters" { parameters[device] = value }
in_memory && key == "gradients" { gradients[device] = value }
in_memory && key == "optimizer" {
    optimizer[device] = value
    state[device] = parameters[device] + gradients[device] + value
}
in_memory && key == "activations" { activations[device] = value }
in_memory && key == "work" { work[device] = value }

# Of the simulation.
/^"step_ms":/ { period = value }
/^"busy":/ { in_busy = 1 }
/^"critical_path":/ { in_busy = 0 }
in_busy { busy[key] = value }
