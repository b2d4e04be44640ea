# rows.awk - the rows, or the curves, of an entry: a line for each, with what, simulated, formula, number and settings.
#
#     awk -v name=ENTRY -v kind=row|curve -f rows.awk entries
#
#     row bubble: period - m*(F+B) = (p-1)*(F+B) = 42 with p=8 m=32
#
# becomes, with tabs for |,
#
#     bubble | period - m*(F+B) | (p-1)*(F+B) | 42 | p=8 m=32
#
# Where there is no formula or no number, a - stands for it, as the shell's `read` would lose an empty field.

function or_dash(text) {
    return text == "" ? "-" : text
}

$1 == "entry" { is_asked = $2 == name }

is_asked && $1 == kind {
    sub(/^ *[a-z]+ +/, "")
    settings = ""
    if (match($0, / with ([A-Za-z]+=|--)/)) {
        settings = substr($0, RSTART + 6)
        $0 = substr($0, 1, RSTART - 1)
    }
    what = $0
    sub(/: .*/, "", what)
    sub(/^[^:]*: /, "")
    split($0, part, " = ")
    printf "%s\t%s\t%s\t%s\t%s\n", what, part[1], or_dash(part[2]), or_dash(part[3]), settings
}
