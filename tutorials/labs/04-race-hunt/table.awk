# table.awk - reads `yard plan --print` of a list, and prints it as a table of lab 4, perhaps without one of its waits.
#
#     awk -v list=N -v lose=1 -v seed=SEED -f ../lib/draw.awk -f table.awk PRINT
#
# SEED says which wait is lost; with lose=0 none is.  The two lines of a task in PRINT, such as
#
#     3  t4                         -     -  a compute1             0.00     0.002  2 (1 implied)
#          a4 -> a6
#
# become a row below the table's head:
#
#     list 1
#     task  lane       reads                             writes          waits for
#        3  compute1   a4                                a6              2

BEGIN { state = seed * 7919 + 1 }

/^memory map/ { exit } # to END

$1 ~ /^[0-9]+$/ && NF >= 8 { # a task; field 9 and those behind it are its waits, up to "(1 implied)"
    task = $1
    lane[task] = $6
    for (i = 9; i <= NF && $i !~ /\(/; i++) {
        sub(/,$/, "", $i)
        sub(/~/, "", $i)
        n_waits++
        producer[n_waits] = $i
        consumer[n_waits] = task
    }
    next
}
/ -> / && task != "" {
    split($0, side, " -> ")
    gsub(/ /, "", side[1])
    gsub(/ /, "", side[2])
    reads[task] = side[1]
    writes[task] = side[2]
}

function draw_lost() { # the number of the wait that is lost; 0: none
    if (!lose || !n_waits)
        return 0
    for (i = 0; i < 4; i++) # the first numbers of neighbouring seeds are alike
        draw(1, 1)
    return draw(1, n_waits)
}

function waits_of(task,   i, text) { # "2, 5", or "-"
    text = ""
    for (i = 1; i <= n_waits; i++)
        if (consumer[i] == task && i != lost)
            text = text (text == "" ? "" : ", ") producer[i]
    return text == "" ? "-" : text
}

END {
    lost = draw_lost()
    print "list " list
    printf "%4s  %-9s  %-32s  %-14s  %s\n", "task", "lane", "reads", "writes", "waits for"
    for (i = 0; i <= task; i++)
        printf "%4d  %-9s  %-32s  %-14s  %s\n", i, lane[i], reads[i], writes[i], waits_of(i)
    print ""
}
