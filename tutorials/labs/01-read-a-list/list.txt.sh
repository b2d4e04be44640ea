#!/bin/sh
# list.txt.sh - prints the step file of lab 1, and in its first lines which tasks the questions are about.
#
#     SEED=S      another list (default 1)
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
try=$((${SEED:-1} * 100))
while [ ! -s "$work/asked" ]; do # until there is a task for each question
    try=$((try + 1))
    if [ $((try % 100)) -eq 0 ]; then
        echo "list: seed ${SEED:-1} has no list with an answer to all questions" >&2
        exit 1
    fi
    awk -v seed=$try -f "$here/../draw.awk" -f "$here/step.awk" >"$work/list"
    "$YARD" plan --list "$work/list" --json >"$work/json" </dev/null || exit 1
    awk -f "$here/facts.awk" "$work/json" >"$work/facts"
    awk -v seed=$try '
        function one(set, n) { # of the n words
            state = state * 16807 % 2147483647
            return set[1 + state % n]
        }
        BEGIN {
            state = seed * 7919 + 1
            for (i = 0; i < 5; i++)
                one(data, 1)
        }
        $1 == "wait" {
            is_of_step_before = $3 ~ /\047/
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
            printf "# A: task %s, B: task %s, C: task %s, T: tensor %s", one(data, n_data),
                one(data_before, n_data_before), one(reuse, n_reuse), one(tensor, n_tensors)
            for (i = 1; i <= 3; i++) {
                do
                    task = one(work, n_work)
                while (task in taken)
                taken[task]
                printf ", %s: task %s", substr("DEF", i, 1), task
            }
            print ""
        }' "$work/facts" >"$work/asked"
done
cat "$work/asked" "$work/list"
