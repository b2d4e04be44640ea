# kernel_times.awk - of `yard trace summary --json`: kernels by kind, and the longest by name, beside the roofline.
#
#     awk -v flops=GFLOPS -v copy=GBYTES_PER_S -f tests/machines/kernel_times.awk SUMMARY.json
#
# The roofline of a kernel is the longer of its FLOPs at the peak and its bytes at the speed of copies, both as
# `yard bench` measures them.  Without them (0 or empty) the table has no roofline.
#
# A row of its tables:
#
#     kind                         per step    ms/step  share    GFLOP/s     GB/s roofline ms x roofline
#     attention                          12      0.058  12.3%       27.0     10.1       0.059        1.0
#
# Its numbers are kept by the name of a task or kind; a kind stands in brackets, since a task may have the same name:
#
#     count[name]     of tasks, in a step
#     ms[name]        their time, in a step
#     mflop[name]     what they compute, and mbytes[name] what they move: ms x GFLOP/s, and ms x GB/s
#     roof[name]      ms by the roofline

function kind(name) { # by the names that tasks of training have
    if (name ~ /^(batch|control|report|swap|eval)/) return "copies and host"
    if (name ~ /^head/) return "head, products"
    if (name ~ /(qkv|proj|fc)(\.dx|\.dw)?$/) return "linear layers, products"
    if (name ~ /\.(bias|db)$/) return "biases and their gradients"
    if (name ~ /softmax/) return "softmax"
    if (name ~ /ln\.dw$/) return "layernorm, parameters"
    if (name ~ /ln(\.dx)?$/) return "layernorm"
    if (name ~ /gelu/) return "gelu"
    if (name ~ /^attn\.(scores|mix|d|flash|lse)/) return "attention"
    if (name ~ /^loss/) return "loss"
    if (name ~ /^(adamw|norm)/) return "adamw, norm"
    return "embedding, residual, other"
}

# ---- the table -------------------------------------------------------------------------------------------------------

function head(what) {
    printf "%-28s %8s %10s %6s %10s %8s %11s %10s\n", what, "per step", "ms/step", "share", "GFLOP/s", "GB/s",
        "roofline ms", "x roofline"
}

function line(name,   shown_as, roofline, times) {
    shown_as = name
    if (name ~ /^\(/)
        shown_as = substr(name, 2, length(name) - 2)
    roofline = "-"
    times = "-"
    if (roof[name]) {
        roofline = sprintf("%.3f", roof[name])
        times = sprintf("%.1f", ms[name] / roof[name])
    }
    printf "%-28s %8.0f %10.3f %5.1f%% %10.1f %8.1f %11s %10s\n", shown_as, count[name], ms[name],
        100 * ms[name] / total, mflop[name] / ms[name], mbytes[name] / ms[name], roofline, times
}

function longest_kind(   k, longest) { # of those that were not shown yet
    for (k = 1; k <= n_kinds; k++)
        if (!(kinds[k] in shown) && (longest == "" || ms[kinds[k]] > ms[longest]))
            longest = kinds[k]
    return longest
}

# ---- the summary's tasks ---------------------------------------------------------------------------------------------

function roofline_of(compute, move) { # MFLOP and MB
    if (!flops || !copy)
        return 0
    if (compute / flops > move / copy)
        return compute / flops
    return move / copy
}

function add(name, n, time, compute, move) {
    count[name] += n
    ms[name] += time
    mflop[name] += compute
    mbytes[name] += move
    roof[name] += roofline_of(compute, move)
}

function add_task(   name, of, time, compute, move) { # whose values are in value[]
    name = value["name"]
    of = "(" kind(name) ")"
    if (!(of in ms))
        kinds[++n_kinds] = of
    time = value["ms_per_step"]
    compute = time * value["gflops"]
    move = time * value["gbytes_per_s"]
    add(name, value["per_step"], time, compute, move)
    add(of, value["per_step"], time, compute, move)
    tasks[++n_tasks] = name
    total += time
}

/"tasks": \[/ { inside = 1 }
/"broadcast": / { inside = 0 }
inside && /": / {
    gsub(/[",:]/, " ")
    value[$1] = $2
}
inside && $1 == "gbytes_per_s" && value["ms_per_step"] > 0 { add_task() } # the last of a task's values

END {
    if (!total) {
        print "no times of kernels: no training was traced"
        exit
    }
    peaks = "not known, bench did not run"
    if (flops && copy)
        peaks = "at " flops " GFLOP/s and " copy " GB/s"
    printf "times of kernels: %.3f ms a step; roofline %s\n\n", total, peaks
    head("kind")
    for (i = 1; i <= n_kinds; i++) {
        name = longest_kind()
        shown[name]
        line(name)
    }
    print ""
    head("the 20 longest tasks")
    for (i = 1; i <= n_tasks && i <= 20; i++)
        line(tasks[i])
}
