# marks.awk - puts the marks of a file beside a page into the page.
#
#     awk -v wrong=WRONG -f tests/pages/marks.awk tests/pages/marks/README.marks README.md
#
# MARKS has marks, and below them                     a line of the page begins so, and the marks are put above it
#
#     <!-- numbers: compute 'log(256)' -->                <!-- numbers: compute 'log(256)' -->
#     The *loss* says                                     The *loss* says how badly the model predicts the next byte.
#
# WRONG gets a complaint where no line of the page begins so, or several do.

FILENAME == ARGV[1] && (gathering || /^<!-- /) {
    marks = marks $0 "\n"
    gathering = !/-->$/
    next
}
FILENAME == ARGV[1] {
    beginning[++n] = $0
    marks_of[n] = marks
    marks = ""
    next
}
{
    for (i = 1; i <= n; i++) {
        if (index($0, beginning[i]) == 1) {
            printf "%s", marks_of[i]
            found[i]++
        }
    }
    print
}
END {
    if (marks != "")
        print "marks without a line below them: " marks >>wrong
    for (i = 1; i <= n; i++)
        if (found[i] != 1)
            print "marks of a line that the page has " found[i] + 0 " times: " beginning[i] >>wrong
}
