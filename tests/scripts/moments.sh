#!/bin/sh
# moments.sh - folders that take part in one training at the same moments (src/trainer/train/hooks.h).
#
# This script checks that what a folder does at a moment does not depend on which other folders take part, and that they
# are asked in the right order.
#
# To see it fail: in pass_hooks.c, leave proof out of `.after`.
. tests/lib/helpers.sh
. tests/lib/background.sh

train() {
    "$YARD" train --model tiny --data LICENSE --val-batches 1 --sample-tokens 0 "$@" >"$TMP/out" 2>"$TMP/err"
}

# ---- the end of a run ------------------------------------------------------------------------------------------------

train --steps 6 --stop-after 3 --save "$TMP/saved" --snapshot "$TMP/a.snap" --restart --keep 2
check 'a run that is saved and stored goes on from what is saved' grep -qx \
    "it goes on with: $YARD train --resume $TMP/saved --save $TMP/saved --keep 2 --snapshot $TMP/a.snap --restart" \
    "$TMP/err"
train --resume "$TMP/saved" --steps 4
check 'a run that goes on and is not kept says so' \
    grep -qx "nothing that this run has trained is saved; with --save $TMP/saved it would have been" "$TMP/err"
check 'a run that goes on and is stored succeeds' train --resume "$TMP/saved" --steps 4 --snapshot "$TMP/b.snap"
check 'a run that goes on and is stored does not say that nothing is saved' lacks 'has trained is saved' "$TMP/err"
check 'a run with --restart goes on' train --steps 8 --snapshot "$TMP/a.snap" --restart --log "$TMP/log"
check 'a run with --restart is resumed from its snapshot, whatever the words say' \
    grep -q "\"resume\":\"$TMP/a.snap\"" "$TMP/log"
check 'a run that chooses in each step succeeds' \
    train --steps 30 --overlap local --clip 0 --snapshot "$TMP/c.snap"
tail -n 1 "$TMP/err" >"$TMP/last"
check 'what the step has chosen is told last, when all is stored' \
    grep -q '^overlap: the CPU was given [0-9]* of [0-9]* updates' "$TMP/last"

# ---- before it begins ------------------------------------------------------------------------------------------------

"$YARD" plan --model tiny --memory --overlap all-cpu >"$TMP/whole" 2>/dev/null
"$YARD" plan --model tiny --memory --overlap all-cpu --after overlap >"$TMP/after" 2>"$TMP/err"
check 'plan --memory takes no notice of --after' cmp -s "$TMP/whole" "$TMP/after"
same 'plan --memory says so once' "$(grep -c warning "$TMP/err")" 1
check 'a sweep takes an option that it sets itself' \
    yard bench --broadcast --model tiny -d 0:0x2 --broadcast-deal random
check 'a sweep does not say that an option that it sets itself has no effect' lacks 'no effect' "$TMP/err"

# Values get their hashes before passes rewrite the list; a restart has its process before a trial is run there, and the
# trial is watched; a trace knows whether the run is paced; the peaks of a list stand above what passes did, and these
# above the line on the run that goes on.
make -s modules | awk 'NR > 1 { print $1 }' >"$TMP/order"
place() { # FOLDER: its line in that order
    grep -nx "$1" "$TMP/order" | cut -d : -f 1
}
for pair in 'proof pass' 'restart predict' 'watch predict' 'pace trace' 'lists pass' 'pass checkpoint'; do
    first=${pair% *}
    second=${pair#* }
    check "$first is asked before $second" [ "$(place "$first")" -lt "$(place "$second")" ]
done
finish
