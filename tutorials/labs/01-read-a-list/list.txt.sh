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
    [ $((try % 100)) -ne 0 ] || { echo "list: seed ${SEED:-1} has no list with an answer to all questions" >&2; exit 1; }
    awk -v seed=$try -f "$here/step.awk" >"$work/list"
    "$YARD" plan --list "$work/list" --json >"$work/json" </dev/null || exit 1
    awk -f "$here/facts.awk" "$work/json" >"$work/facts"
    awk -v seed=$try '
        function one(from, n) { state = state * 16807 % 2147483647; return from[1 + state % n] }
        BEGIN { state = seed * 7919 + 1; for (i = 0; i < 5; i++) one(w, 1) }
        $1 == "wait" && $3 !~ /\047/ && $4 == "data" { w[++a] = $2 }
        $1 == "wait" && $3 ~ /\047/ && $4 == "data" { b[++bs] = $2 }
        $1 == "wait" && $3 !~ /\047/ && $4 == "reuse" { c[++cs] = $2 }
        $1 == "life" { t[++ts] = $2 }
        $1 == "work" { d[++ds] = $2 }
        END {
            if (!a || !bs || !cs || !ts) exit
            printf "# A: task %s, B: task %s, C: task %s, T: tensor %s", one(w, a), one(b, bs), one(c, cs), one(t, ts)
            for (i = 1; i <= 3; i++) {
                while ((x = one(d, ds)) in taken) ;
                taken[x]; printf ", %s: task %s", substr("DEF", i, 1), x }
            print "" }' "$work/facts" >"$work/asked"
done
cat "$work/asked" "$work/list"
