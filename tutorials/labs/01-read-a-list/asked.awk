# asked.awk - draws which tasks and which tensor the questions of lab 1 are about, from what facts.awk says of the list.
#
#     awk -v seed=N -f ../lib/draw.awk -f asked.awk FACTS
#
# prints one line,
#
#     # A: task 19, B: task 2, C: task 7, T: tensor y, D: task 16, E: task 12, F: task 14
#
# where A waits for data of this step, B for data of the step before, and C only because bytes are used again; T is any
# tensor; D, E and F are three tasks that are not copies.  If a list has no task for some letter, it prints nothing.

function one_of(set, n) { # of set[1..n]
    return set[draw(1, n)]
}

BEGIN {
    state = seed * 7919 + 1
    for (i = 0; i < 5; i++) # the first numbers of neighbouring seeds are alike
        draw(1, 1)
}

$1 == "wait" {
    is_of_step_before = $3 ~ /\047/ # a ' behind the producer's number
    if ($4 == "data" && !is_of_step_before)
        data[++n_data] = $2
    if ($4 == "data" && is_of_step_before)
        data_before[++n_data_before] = $2
    if ($4 == "reuse" && !is_of_step_before)
        reuse[++n_reuse] = $2
}
$1 == "life" { tensor[++n_tensors] = $2 }
$1 == "work" { work[++n_work] = $2 }

END {
    if (!n_data || !n_data_before || !n_reuse || !n_tensors)
        exit
    a = one_of(data, n_data)
    b = one_of(data_before, n_data_before)
    c = one_of(reuse, n_reuse)
    t = one_of(tensor, n_tensors)
    printf "# A: task %s, B: task %s, C: task %s, T: tensor %s", a, b, c, t
    for (i = 1; i <= 3; i++) {
        do
            task = one_of(work, n_work)
        while (task in taken)
        taken[task]
        printf ", %s: task %s", substr("DEF", i, 1), task
    }
    print ""
}
