#!/bin/sh
# oclgrind.sh - a training step, an evaluation and a sampled token on oclgrind, a simulator that checks every access of
# every kernel; on one device and on two that share the layers' heads and words.  Sizes are odd and small: a kernel takes
# about a thousand times as long there.
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
export YARD_CACHE= # its binaries lack the source, which it quotes
n=0
for mesh in "--micro-batch 1" "--mesh tp=2 -d 0:0x2" "--attention flash"; do
    n=$((n + 1))
    # shellcheck disable=SC2086 # words
    oclgrind --data-races --max-errors 20 --log "$log" \
        "$YARD" train --layers 1 --heads 3 --channels 21 --seq-len 65 --batch 2 --steps 1 --val-batches 1 \
        --sample-tokens 1 --gemm own --serial $mesh || exit 1
    if [ ! -f "$log" ] || [ -s "$log" ]; then # no log at all: the kernels ran elsewhere
        cat "$log"
        echo "not ok $n - kernels are clean, $mesh"
        exit 1
    fi
    rm "$log"
    echo "ok $n - kernels are clean, $mesh"
done
