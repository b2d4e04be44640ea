# judge.awk - says of each row whether formula and simulation agree; its exit code is 1 if one does not.
#
#     awk -F '\t' -f judge.awk ROWS
#
# ROWS are lines of gallery.sh's measure_all.  The one
#
#     gpipe   step   period   (m+p-1)*(F+D+W)   33   p=4   ok 33 33
#
# gives "ok  gpipe           step: (m+p-1)*(F+D+W) = 33, simulated 33, with p=4".  A row that could not be simulated has
# "no - - WHY" at its end.
{
    split($7, verdict, " ")
    formula = verdict[2]
    simulated = verdict[3]
    with = $6 == "" ? "" : ", with " $6
    printf "%s  %-15s %s: %s = %s, simulated %s%s\n", verdict[1], $1, $2, $4, formula, simulated, with
}

verdict[1] != "ok" {
    wrong++
    number = $5 == "-" ? "" : ", number " $5
    if (formula == "-")
        print "    " substr($7, length("no - - ") + 1)
    else
        print "    must be equal: formula " formula ", simulated " simulated number
}

END {
    print NR - wrong " rows agree, " wrong + 0 " do not"
    exit NR == 0 || wrong > 0
}
