# walk.awk - does a list of the student's generator carry out a chain of steps?  Task by task: which step's state, tape
# and gradient lie where.
#
#     awk -v steps=STEPS -f walk.awk LIST      prints the first thing that is wrong, or else the number of advances
#
# State k is what step k begins with.  An `advance` makes state k + 1 of state k; a `forward` leaves the tape of step k,
# from which its `backward` makes the gradient g.

function wrong(why) {
    print "line " FNR ", " $2 " of step " layer ": " why
    failed = 1
    exit
}

function read_accesses(   i, j, n, word) { # of a task: from and to are states
    layer = from = to = ""
    reads_gradient = reads_tape = 0
    for (i = 5; i <= NF; i++) {
        if ($i ~ /^layer=/)
            layer = substr($i, 7) + 0
        if ($i ~ /^writes=/)
            to = substr($i, 8)
        n = $i ~ /^reads=/ ? split(substr($i, 7), word, ",") : 0
        for (j = 1; j <= n; j++)
            if (word[j] == "g")
                reads_gradient = 1
            else if (word[j] == "tape")
                reads_tape = 1
            else if (word[j] != "w")
                from = word[j]
    }
}

BEGIN { next_back = steps - 1 }
$1 == "copy" { wrong("no copy is needed") }
$1 != "task" || $2 == "update" { next }
{ read_accesses() }

$2 == "batch" {
    if (has_begun)
        wrong("is done twice")
    has_begun = 1
    state[to] = 0
    next
}

$2 == "advance" || $2 == "forward" {
    if (!(from in state))
        wrong("there is no state in " from)
    if (state[from] != layer)
        wrong("the state in " from " is that before step " state[from])
}

$2 == "advance" {
    if (to !~ /^(now|c[0-9]+)$/)
        wrong("writes " to)
    state[to] = layer + 1
    advances++
    next
}

$2 == "forward" {
    if (to != "tape")
        wrong("writes " to)
    tape = layer
    next
}

$2 == "backward" {
    if (layer != next_back)
        wrong("the next backward is that of step " next_back)
    if (!reads_tape || tape != layer)
        wrong("the tape is not that of this step")
    if (reads_gradient != (layer < steps - 1) || to != "g")
        wrong("gradients are not added up")
    next_back--
    next
}

{ wrong("there is no such task") }

END {
    if (failed)
        exit
    if (next_back >= 0)
        print "the backward of step " next_back " is missing"
    else
        print advances + 0
}
