# routes.awk - "FILE FUNCTION" for each function that a row of a table names behind a file.
#
#     awk -F '|' -f routes.awk tutorials/reference-code.md
#
# A row  | `src/x.c` | `read()` | 20 | `skip()` |, or with a technique's name before the file, has functions of that
# file; so have the rows below it, where the file's cell is empty.  This row gives "src/x.c read" and "src/x.c skip".
!/^\|/ { file = "" }
match($0, /^\|( [a-z]* ?\|)? `(src|cl)\/[a-z_\/]*\.(c|h|cl)`/) {
    file = substr($0, 1, RLENGTH - 1)
    sub(/.*`/, "", file)
}
file != "" {
    for (i = 3; i < NF; i++)
        while (match($i, /[A-Za-z_]+\(\)/)) {
            print file, substr($i, RSTART, RLENGTH - 2)
            $i = substr($i, RSTART + RLENGTH)
        }
}
