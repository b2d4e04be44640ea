#!/bin/sh
# list.txt.sh - prints the step file of lab 1, and in its first line which tasks the questions are about.
#
#     SEED=S      another list (default 1)
#
#     $ SEED=1 tutorials/labs/01-read-a-list/list.txt.sh
#     # A: task 19, B: task 2, C: task 7, T: tensor y, D: task 16, E: task 12, F: task 14
#     device gpu memory=1M share
#     ...
#
# Not every list has a task for each question.  So a seed has up to 99 lists (step.awk), and the first is taken of which
# asked.awk finds tasks for all.
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
SEED=${SEED:-1}
here=$(dirname "$0")
draw=$here/../lib/draw.awk
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

try=$((SEED * 100)) # the seed of a list
last=$((try + 99))
while [ ! -s "$work/asked" ]; do
    if [ $try -eq $last ]; then
        echo "list: seed $SEED has no list with an answer to all questions" >&2
        exit 1
    fi
    try=$((try + 1))
    awk -v seed=$try -f "$draw" -f "$here/step.awk" >"$work/list"
    "$YARD" plan --list "$work/list" --json >"$work/json" </dev/null || exit 1
    awk -f "$here/facts.awk" "$work/json" >"$work/facts"
    awk -v seed=$try -f "$draw" -f "$here/asked.awk" "$work/facts" >"$work/asked"
done
cat "$work/asked" "$work/list"
