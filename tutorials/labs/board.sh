#!/bin/sh
# board.sh FILE... - a score board that needs no machine: who has the shortest simulated step within the budget?
#
# Each FILE is one entry: lines `option = value`, as for --config.  It may choose the mesh, the order of the pipeline,
# micro-batches and all techniques.  Model, batch, hardware and budget are given here.  Only a step that is proved, and
# that fits, counts.  BOARD="--model ..." gives another task.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.." || exit 2
BOARD=${BOARD:---model gpt2 --vocab 256 --batch 32 --hardware data/hardware/server.txt --device-mem 3G}
given='model|layers|heads|channels|seq-len|vocab|batch|hardware|profile|device-mem|host-mem|what-if|untied|list|clip'
if [ $# -eq 0 ]; then
    sed -n '2,6s/^# *//p' "$0"
    exit 2
fi

# Of each entry "MS NAME", or "- NAME refused: WHY"; then they are ranked.
for entry; do
    name=$(basename "$entry")
    if grep -qE "^ *($given) *=" "$entry"; then
        echo "- $name refused: the entry sets what is given"
    elif answer=$(timeout 300 ./yard plan --config "$entry" $BOARD --simulate --verify --json 2>&1); then
        echo "$answer" | tr ',{' '\n\n' | awk -v name="$name" '
            /"step_ms":/ {
                sub(/.*: */, "")
                printf "%.3f %s\n", $0, name
                exit
            }'
    else
        echo "- $name refused: $(echo "$answer" | sed -n 's/^yard: //p' | head -n 1)"
    fi
done | sort -n | awk '
    $1 == "-" {
        sub(/^- /, "")
        refused[++n_refused] = $0
        next
    }
    { printf "%3d. %12s ms  %s\n", ++rank, $1, $2 }
    END {
        for (i = 1; i <= n_refused; i++)
            print "     " refused[i]
    }'
