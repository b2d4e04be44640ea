# kernel_times.awk - of `yard trace summary --json`: kernels by kind, and the longest by name, beside the roofline.
#
#     awk -v flops=GFLOPS -v copy=GBYTES_PER_S -f tests/kernel_times.awk SUMMARY.json
#
# The roofline of a kernel is the longer of its FLOPs at the peak and its bytes at the speed of copies, both as
# `yard bench` measures them.  Without them (0 or empty) the table has no roofline.
function kind(name)
{
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

function head(what)
{
    printf "%-28s %8s %10s %6s %10s %8s %11s %10s\n", what, "per step", "ms/step", "share", "GFLOP/s", "GB/s",
        "roofline ms", "x roofline"
}

function line(name)
{
    shown_as = name ~ /^\(/ ? substr(name, 2, length(name) - 2) : name
    printf "%-28s %8.0f %10.3f %5.1f%% %10.1f %8.1f %11s %10s\n", shown_as, number[name], ms[name], 100 * ms[name] / total,
        work[name] / ms[name], bytes[name] / ms[name], roof[name] ? sprintf("%.3f", roof[name]) : "-",
        roof[name] ? sprintf("%.1f", ms[name] / roof[name]) : "-"
}

function add(name, n, t, f, b, r) { number[name] += n; ms[name] += t; work[name] += f; bytes[name] += b; roof[name] += r }

/"tasks": \[/ { inside = 1 }
/"broadcast": / { inside = 0 }
inside && /": / {
    gsub(/[",:]/, " ")
    value[$1] = $2
}
inside && $1 == "gbytes_per_s" && value["ms_per_step"] > 0 { # the last of a task's values
    name = value["name"]
    t = value["ms_per_step"]
    f = t * value["gflops"]
    b = t * value["gbytes_per_s"]
    r = !flops || !copy ? 0 : f / flops > b / copy ? f / flops : b / copy
    add(name, value["per_step"], t, f, b, r)
    of = "(" kind(name) ")" # a task may have the same name
    if (!(of in ms)) kinds[++n_kinds] = of
    add(of, value["per_step"], t, f, b, r)
    tasks[++n_tasks] = name
    total += t
}

END {
    if (!total) {
        print "no times of kernels: no training was traced"
        exit
    }
    peaks = flops && copy ? "at " flops " GFLOP/s and " copy " GB/s" : "not known, bench did not run"
    printf "times of kernels: %.3f ms a step; roofline %s\n\n", total, peaks
    head("kind")
    for (i = 1; i <= n_kinds; i++) { # the longest of those that are left
        longest = 0
        for (k = 1; k <= n_kinds; k++) if (!(k in shown) && (!longest || ms[kinds[k]] > ms[kinds[longest]])) longest = k
        shown[longest]
        line(kinds[longest])
    }
    print ""
    head("the 20 longest tasks")
    for (i = 1; i <= n_tasks && i <= 20; i++) line(tasks[i])
}
