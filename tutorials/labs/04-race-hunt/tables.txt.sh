#!/bin/sh
# tables.txt.sh - prints the eight lists of lab 4, each but one without one of its waits.
#
#     SEED=S      other lists (default 1)
#     WHOLE=1     with all waits (for the grader)
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
labs=$(dirname "$0")/..
seed=${SEED:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
none=$((3 + seed * 16807 % 6)) # 3 to 8: nothing is missing there
i=0
for shape in "n=8 lanes=2 keep=0" "n=9 lanes=3 keep=30" "n=10 lanes=3 keep=50" "n=11 lanes=3 keep=30" \
    "n=9 lanes=3 keep=30 parts=1" "n=11 lanes=3 keep=50 parts=1" "n=13 lanes=4 keep=30" "n=13 lanes=4 keep=40 parts=1"; do
    i=$((i + 1))
    awk -v seed=$((seed * 8 + i)) $(echo " $shape" | sed 's/ / -v /g') \
        -f "$labs/draw.awk" -f "$labs/random.awk" >"$work/list"
    "$YARD" plan --list "$work/list" --clip 0 --print >"$work/print" </dev/null || exit 1
    keep=$([ $i -eq $none ] || [ -n "${WHOLE-}" ] && echo 1 || echo 0)
    awk -v list=$i -v keep="$keep" -v seed=$((seed * 8 + i)) '
        /^memory map/ { exit }
        $1 ~ /^[0-9]+$/ && NF >= 8 {
            n = $1; lane[n] = $6
            for (k = 9; k <= NF && $k !~ /\(/; k++) {
                sub(/,$/, "", $k); sub(/~/, "", $k)
                wait[++waits] = $k; of[waits] = n }
            next }
        / -> / && n != "" { split($0, side, " -> "); gsub(/ /, "", side[1]); gsub(/ /, "", side[2])
            reads[n] = side[1]; writes[n] = side[2] }
        END {
            state = seed * 7919 + 1
            for (k = 0; k < 5; k++) state = state * 16807 % 2147483647
            out = keep || !waits ? 0 : 1 + state % waits
            printf "list %d\n%4s  %-9s  %-32s  %-14s  %s\n", list, "task", "lane", "reads", "writes", "waits for"
            for (t = 0; t <= n; t++) {
                text = ""
                for (k = 1; k <= waits; k++) if (of[k] == t && k != out) text = text (text == "" ? "" : ", ") wait[k]
                printf "%4d  %-9s  %-32s  %-14s  %s\n", t, lane[t], reads[t], writes[t], text == "" ? "-" : text }
            print "" }' "$work/print"
done
