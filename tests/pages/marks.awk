# marks.awk - puts the marks of a file beside a page into the page.
#
#     awk -v wrong=WRONG -f tests/pages/marks.awk tests/pages/marks/README.marks README.md
#
# MARKS has marks, and below them one line or more    where lines of the page begin so, the marks are put above them
#
#     <!-- numbers: compute 'log(256)' -->                <!-- numbers: compute 'log(256)' -->
#     The *loss* says                                     The *loss* says how badly the model predicts the next byte.
#
# One line is enough where no other line of the page begins so.  WRONG gets a complaint where the page has no such
# lines, or has them twice.

# ---- the marks -------------------------------------------------------------------------------------------------------

FILENAME == ARGV[1] && (in_mark || /^<!-- /) {
    if (place[n] != "" || n == 0)
        n++
    marks[n] = marks[n] $0 "\n"
    in_mark = !/-->$/
    next
}
FILENAME == ARGV[1] && /^$/ { next }
FILENAME == ARGV[1] {
    place[n] = place[n] $0 "\n"
    next
}

# ---- the page --------------------------------------------------------------------------------------------------------

{ line[++n_lines] = $0 }

function is_place(i, at,    beginning, n, k) { # marks i belong above line `at`
    n = split(place[i], beginning, "\n") - 1
    for (k = 1; k <= n; k++)
        if (index(line[at + k - 1], beginning[k]) != 1)
            return 0
    return n > 0
}

END {
    for (at = 1; at <= n_lines; at++) {
        for (i = 1; i <= n; i++) {
            if (is_place(i, at)) {
                printf "%s", marks[i]
                found[i]++
            }
        }
        print line[at]
    }
    for (i = 1; i <= n; i++)
        if (found[i] != 1)
            print "marks of lines that the page has " found[i] + 0 " times: " place[i] >>wrong
}
