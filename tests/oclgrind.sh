#!/bin/sh
# oclgrind.sh - a training step, an evaluation and a sampled token on oclgrind, a simulator that checks every access of
# every kernel.  Sizes are odd and small: a kernel takes about a thousand times as long there.
#
# Not --uninitialized: oclgrind 21.10 takes what was written at an offset of a buffer for uninitialised, which every
# tensor is.  Reads of memory that nothing has written are found by `--serial --audit`, which fills it with NaN.
#
# Oclgrind gives exit code 0 whatever it finds, so its log must be empty.  It bears one host thread only: --serial.
set -u
if ! command -v oclgrind >/dev/null; then
    echo "ok 1 - kernels are clean # SKIP oclgrind is not installed; make oclgrind does it"
    exit 0
fi
log=$TMP/oclgrind.log
oclgrind --data-races --max-errors 20 --log "$log" \
    "$YARD" train --layers 1 --heads 3 --channels 21 --seq-len 9 --batch 2 --micro-batch 1 --steps 1 --val-batches 1 \
    --sample-tokens 1 --gemm own --serial || exit 1
if [ ! -f "$log" ] || [ -s "$log" ]; then # no log at all: the kernels ran elsewhere
    cat "$log"
    echo "not ok 1 - kernels are clean"
    exit 1
fi
echo "ok 1 - kernels are clean"
