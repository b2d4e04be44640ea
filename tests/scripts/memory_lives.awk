# memory_lives.awk - of which tensors does the memory map say another life than the list?
#
#     awk -f memory_lives.awk PLAN
#
# PLAN is what `yard plan --print` prints.  The list has two lines for each task: its number, and what it reads and
# writes.  The map has a tensor's first and last task in columns 6 and 7, and its name in the last.  Compared
# are activations whose name is used once.  For example
#
#     embed: tasks 3 to 17, but the map says 3 to 12
/^ *[0-9]+  [a-z]/ { task = $1 }
/ -> / && /^         / { # what the task reads and writes
    gsub(/->|,/, " ")
    gsub(/@[^ ]*/, "")
    for (i = 1; i <= NF; i++) {
        if (!($i in first))
            first[$i] = task
        last[$i] = task
    }
}
/^memory map/ { in_map = 1 }
in_map && $NF in first && $5 == "activations" {
    uses[$NF]++
    begin[$NF] = $6
    end[$NF] = $7
}
END {
    for (tensor in uses) {
        if (uses[tensor] > 1)
            continue
        n++
        if (begin[tensor] != first[tensor] || end[tensor] != last[tensor])
            print tensor ": tasks " first[tensor] " to " last[tensor] ", but the map says " begin[tensor] \
                " to " end[tensor]
    }
    if (n < 5)
        print "only " n " tensors could be compared"
}
