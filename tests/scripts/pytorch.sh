#!/bin/sh
# pytorch.sh - PyTorch's pipelines train an exported model by schedules of yard.
#
# This script checks that they have the losses of `yard train`.
#
# PYTHON is a Python that has torch.
#
# To see it fail: in train_pipeline.py, leave out the call of sum_tied_gradients().
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

python=${PYTHON:-python3}
GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 # processes of one host, and as many threads as processes
export GLOO_SOCKET_IFNAME OMP_NUM_THREADS

"$python" -c 'import torch.distributed.pipelining' 2>/dev/null ||
    skip_all 'PyTorch trains by schedules' "$python has no torch; PYTHON names another"

# What is computed is the same; sums have other orders.
other_losses() { # FILE FILE, of lines "LOSS NORM": the steps of which they do not agree
    paste "$1" "$2" | awk '
        function apart(a, b) {
            return (a > b ? a - b : b - a) / b
        }
        NF != 4 || apart($1, $3) > 1e-5 || apart($2, $4) > 1e-4 {
            print "step " NR ": " $0
        }
        END {
            if (NR != 5)
                print NR " steps"
        }'
}

# PyTorch's lines  "step 1  loss 5.432100  norm 1.25000"  give the lines  "5.432100 1.25000".
trains() { # NAME RANKS SCHEDULE.csv: a check that PyTorch has the losses of $TMP/ours
    "$python" -m torch.distributed.run --nproc-per-node "$2" tutorials/pytorch/train_pipeline.py "$TMP/$head-hf" "$3" \
        LICENSE --batch 8 >"$TMP/out" 2>"$TMP/err"
    sed -n 's/^step .* loss \([0-9.]*\)  norm \([0-9.]*\)$/\1 \2/p' "$TMP/out" >"$TMP/theirs"
    other_losses "$TMP/theirs" "$TMP/ours" >"$TMP/wrong"
    if [ -s "$TMP/wrong" ]; then
        tail -n 20 "$TMP/err" >>"$TMP/wrong"
    fi
    no_complaints "$TMP/wrong" "$1 has the losses of yard, $2 processes, $head head"
}

for head in tied untied; do
    untied=
    [ $head = tied ] || untied=--untied
    name="a model with $head head"
    check "$name is trained" yard train --model tiny $untied --layers 8 --data LICENSE --steps 20 --sample-tokens 0 \
        --save "$TMP/$head"
    check "$name is exported" yard ckpt export "$TMP/$head" "$TMP/$head-hf"
    check "$name goes on in yard" yard train --init "$TMP/$head-hf" --data LICENSE --order file --val-share 0 \
        --batch 8 --steps 5 --schedule constant --warmup 0 --sample-tokens 0 --log "$TMP/log"
    json_values "$TMP/log" loss >"$TMP/losses"
    json_values "$TMP/log" norm | paste -d ' ' "$TMP/losses" - >"$TMP/ours" # a line "LOSS NORM" for each step
    for ranks in 2 4; do
        for order in gpipe 1f1b interleaved zbh1 zbh2 dualpipev; do
            "$YARD" plan --init "$TMP/$head-hf" --batch 8 --micro-batch 1 -d 0:0x$ranks --mesh pp=$ranks \
                --pipeline $order --print-schedule >"$TMP/schedule.csv" 2>"$TMP/err" ||
                echo "$order is not printed" >>"$TMP/err"
            trains $order $ranks "$TMP/schedule.csv"
        done
    done
    for file in data/pytorch/*.4.8.csv; do
        trains "$(basename "$file")" 4 "$file"
    done
done
finish
