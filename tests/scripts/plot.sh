#!/bin/sh
# plot.sh - the command `yard plot`, from outside.
#
# This script checks which losses it draws and tells with --from, --log and --smooth.  test_plot.c looks at pictures.
#
# To see it fail: in begin_at() of plot_values.c, let points of earlier steps stay.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

# Losses of three steps: 9, 3, 2.  The floor is 1.
printf '{"run":{},"floor":1}\n{"step":1,"loss":9}\n{"step":2,"loss":3}\n{"step":3,"loss":2}\n' >"$TMP/log.jsonl"
check 'plot --from draws' yard plot "$TMP/log.jsonl" --from 2
check 'plot --from leaves out the losses of earlier steps' lacks '^ *[4-9] |' "$TMP/out"
check 'plot --from tells the last and the lowest of the others' \
    grep -q 'train: last 2.0000, lowest 2.0000 at step 3' "$TMP/out"
refuse 2 'is beyond the last step' plot "$TMP/log.jsonl" --from 4
check 'plot --log --smooth draws' yard plot "$TMP/log.jsonl" --log --smooth 2
check 'plot --log draws what is above the floor, and says so' grep -q 'above the floor, logarithmic' "$TMP/out"
check 'plot --smooth draws the mean of steps, and says so' \
    grep -q 'train, mean of 2 steps: last 1.5000, lowest 1.5000 at step 2' "$TMP/out"
refuse 2 'which has 3 steps: take fewer' plot "$TMP/log.jsonl" --smooth 4

finish
