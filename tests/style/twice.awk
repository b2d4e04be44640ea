# twice.awk - which static functions stand in two files, with one name and one body?
#
#     awk -f tests/style/twice.awk FILE...
#
# A complaint is printed for each of more than three lines: "asks_for_help() stands in a.c:12 and b.c:30".  Bodies are
# compared without their comments and without the width of their margins.

/^static [^=;]*[ *][a-z_0-9]+\(/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    where = FILENAME ":" FNR
    head = $0
    body = ""
    n_lines = 0
}
/^\{/ {
    is_in_body = name != ""
    next
}
/^\}/ {
    if (is_in_body && n_lines > 3) {
        n_bodies++
        if ((name, body) in found)
            print name "() stands in " found[name, body] " and " where
        found[name, body] = where
    }
    is_in_body = 0
    name = ""
}
is_in_body {
    gsub(/\/\*.*\*\//, "")
    gsub(/^ +| +$/, "")
    body = body "\n" $0
    n_lines++
}
END {
    if (n_bodies < 500)
        print "only " n_bodies + 0 " static functions were found"
}
