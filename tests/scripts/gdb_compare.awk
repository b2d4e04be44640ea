# gdb_compare.awk - which lines of a transcript has gdb not printed, in their order?
#
#     awk -f gdb_compare.awk out BLOCK
#
# `out` is what gdb printed, with a line "@ COMMAND" in front of what each command prints.  BLOCK is of gdb_split.awk.
# Numbers with a decimal point and addresses of calls may differ, and "..." at the end of a line stands for the rest of
# it.  A line "= Breakpoint 1 at ..." that is not there gives "not printed: Breakpoint 1 at ...".
function loosen(line) { # without what differs from run to run
    gsub(/-?[0-9]+\.[0-9]+(e[-+][0-9]+)?/, "#", line)
    sub(/0x[0-9a-f]+ in /, "", line)
    gsub(/ +/, " ", line)
    sub(/ $/, "", line)
    return line
}
function is_shown(line, as) {
    if (sub(/ ?\.\.\.$/, "", as)) # the line begins so
        return index(loosen(line), loosen(as)) == 1
    return loosen(line) == loosen(as)
}
function find(wanted,   i) { # the first such line behind the one found before it; 0: there is none
    for (i = at + 1; i <= n; i++)
        if (is_shown(out[i], wanted))
            return i
    return 0
}
FILENAME ~ /out$/ {
    n++
    out[n] = $0
    next
}
/^\$/ { next }
{
    wanted = substr($0, 3)
    if (/^>/)
        wanted = "@ " wanted
    found = find(wanted)
    if (found)
        at = found
    else
        print "not printed: " wanted
}
