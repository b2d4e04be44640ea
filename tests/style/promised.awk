# promised.awk - the programs that a page promises: "PROGRAM" for each of its first table, "PROGRAM WHO" of its second.
#
#     awk -F '|' -f promised.awk tutorials/reference-systems.md
#
# The tables are those below the title "## Programs".  A row has names of programs, in `...`, and the cell beside them
# says who needs them.  For example
#
#     | `gdb` | `tests/scripts/gdb.sh` |              gives  gdb `tests/scripts/gdb.sh`
/^## / { here = $0 == "## Programs" }
/^\| (package|program) / { # the head of a table
    column = $2 ~ /package/ ? 3 : 2 # where it has its programs
    names = ""
    next
}
here && /^\|/ {
    if ($column ~ /`/) # else they are those of the row above
        names = $column
    n = split(names, part, "`")
    for (i = 2; i <= n; i += 2)
        print part[i] (column == 2 ? $3 : "")
}
