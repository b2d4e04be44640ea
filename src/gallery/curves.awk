# curves.awk - curves as text: for each entry a table, with a line for each link and a column for each curve.
#
#     awk [-v yours="22 up, 20 down"] -f curves.awk CURVES
#
# CURVES are lines of gallery.sh's measure_curves, with tabs between.  These four
#
#     zenflow   ZeRO-Offload   8e9     7055.3       give        zenflow, ms per step:
#     zenflow   ZeRO-Offload   yours   6542.8                     GB/s  ZeRO-Offload  ZenFlow
#     zenflow   ZenFlow        8e9     3805.3                        8        7055.3   3805.3
#     zenflow   ZenFlow        yours   -                         yours        6542.8        -
#                                                              yours: 22 up, 20 down
#
# A "-" is a step that the program refuses.

BEGIN { FS = "\t" }

function flush_table(   i, j, value) {
    if (!lines)
        return
    print name ", ms per step:"
    printf "  %5s", "GB/s"
    for (j = 1; j <= columns; j++)
        printf "  %*s", width[j], title[j]
    print ""
    for (i = 1; i <= lines; i++) {
        printf "  %5s", link[i]
        for (j = 1; j <= columns; j++) {
            value = at[i, j]
            if (value != "-")
                value = sprintf("%.1f", value)
            printf "  %*s", width[j], value
        }
        print ""
    }
    if (link[lines] == "yours")
        print "  yours: " yours
    lines = columns = 0
}

$1 != name {
    flush_table()
    name = $1
}
$2 != title[columns] || !columns {
    columns++
    title[columns] = $2
    width[columns] = length($2) > 7 ? length($2) : 7
    lines = 0
}
{
    lines++
    link[lines] = $3 == "yours" ? $3 : $3 / 1e9
    at[lines, columns] = $4
}
END { flush_table() }
