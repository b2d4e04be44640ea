# copies_under_kernels.awk - of the time in which copies ran, the share in which a kernel ran too.
#
#     awk -v device=P:D -f tests/machines/copies_under_kernels.awk TRACE.json
#
# TRACE.json is what `yard trace export --chrome` writes, an event a line.  Kernels of a device do not overlap.
#
# With kernels from 0 to 10 and from 12 to 20 µs, and a copy from 5 to 15, it prints
#
#     1 copies, 0.010 ms, 80.0 % of it under kernels
#
# and ends with exit code 1 where there is nothing under kernels.

function text_of(name,   pattern) { # the value of "name":"..." in this line
    pattern = "\"" name "\":\""
    if (!match($0, pattern "[^\"]*"))
        return ""
    return substr($0, RSTART + length(pattern), RLENGTH - length(pattern))
}

function number_of(name,   pattern) { # the value of "name":... in this line
    pattern = "\"" name "\":"
    match($0, pattern "[-+.0-9e]*")
    return substr($0, RSTART + length(pattern), RLENGTH - length(pattern)) + 0
}

# ---- events ----------------------------------------------------------------------------------------------------------

/"thread_name"/ { # of a lane, which is named "P:D compute", "P:D upload" and so on
    lane = number_of("tid")
    sub(/.*"args":/, "")
    split(text_of("name"), part, " ")
    if (part[1] == device)
        kind[lane] = part[2] ~ /^compute/ ? "kernel" : "copy"
}
/"ph":"X"/ { # a task of a lane, in microseconds
    lane = number_of("tid")
    from = number_of("ts")
    to = from + number_of("dur")
    if (kind[lane] == "kernel") {
        kernels++
        kernel_from[kernels] = from
        kernel_to[kernels] = to
    }
    if (kind[lane] == "copy") {
        copies++
        copy_from[copies] = from
        copy_to[copies] = to
    }
}

# ---- what they share -------------------------------------------------------------------------------------------------

function shared(i, k,   from, to) { # the time that copy i and kernel k share
    from = copy_from[i] > kernel_from[k] ? copy_from[i] : kernel_from[k]
    to = copy_to[i] < kernel_to[k] ? copy_to[i] : kernel_to[k]
    return to > from ? to - from : 0
}

END {
    for (i = 1; i <= copies; i++) {
        all += copy_to[i] - copy_from[i]
        for (k = 1; k <= kernels; k++)
            under += shared(i, k)
    }
    share = all > 0 ? 100 * under / all : 0
    printf "%d copies, %.3f ms, %.1f %% of it under kernels\n", copies, all / 1e3, share
    exit !(under > 0)
}
