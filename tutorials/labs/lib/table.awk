# table.awk - the table of the league, of lines that are sorted by number.
#
#     sort -n SCORES | awk -f table.awk
#
# A line "410.123 same fast.options" becomes a row with its rank; those that begin with - come last, without one:
#
#       1.      410.123 ms  bits same   fast.options
#          slow.patch refused: there is no file in the patch
$1 == "-" {
    sub(/^- /, "")
    refused[++n_refused] = $0
    next
}
{ printf "%3d. %12s ms  bits %-5s  %s\n", ++rank, $1, $2, $3 }
END {
    for (i = 1; i <= n_refused; i++)
        print "     " refused[i]
}
