# periods.awk - compares the periods of cases with those of an earlier program.
#
#     awk -f periods.awk CASES
#
# CASES are lines "NAME BEFORE NOW [!]", with periods in ms, or - for NOW where there is none, and remarks, which begin
# with # and are printed as they are.  A ! says that the case is not judged.  For example,
#
#     swap-auto 10.0 10.2
#
# becomes a row with "+2.00 %".  The exit code is 1 where one case is over 4 % longer, or the mean is over 0.6 %.
/^# / {
    print
    next
}
{
    name = $1
    before = $2
    now = $3
    is_judged = $4 != "!"
    longer = now == "-" ? 1000 : 100 * (now / before - 1) # by so many per cent
    remark = ""
    if (!is_judged)
        remark = "  (not judged)"
    else if (longer > 4)
        remark = "  too long"
    printf "%-20s %9s %9s %+8.2f %%%s\n", name, before, now, longer, remark
    cases++
}
is_judged {
    judged++
    sum += longer
    if (longer > worst)
        worst = longer
}
END {
    mean = judged ? sum / judged : 1000
    printf "%d cases, %d judged: %+.3f %% in the mean, at most +0.6; worst %+.2f %%, at most +4\n", cases,
        judged, mean, worst
    exit worst > 4 || mean > 0.6
}
