#!/bin/sh
# oclgrind.sh - training on oclgrind, a simulator that checks every access of every kernel.
#
# This script checks that a training step, an evaluation and a sampled token have no invalid access, on one device and
# on two that share the layers' heads and words.  Sizes are odd and small, because a kernel takes about a thousand times
# as long there.
#
# The option --uninitialized is left out: oclgrind 21.10 takes what was written at an offset of a buffer for
# uninitialised, and every tensor is written so.  `--serial --audit` finds reads of memory that nothing has written, by
# filling it with NaN.
#
# Oclgrind knows buffers, and each of ours holds many tensors.  So it sees an access outside a slab, while `--audit`
# finds a write outside a tensor.
#
# Oclgrind gives exit code 0 whatever it finds, so its log must be empty.  It works with one host thread only, hence
# --serial.
#
# To see it fail: in gelu_forward() of gelu.cl, write far behind the end: out[n + (1 << 26)] = 0.
. tests/lib/helpers.sh

log=$TMP/oclgrind.log
export YARD_CACHE= # binaries that are kept lack the source, which oclgrind quotes

command -v oclgrind >/dev/null || skip_all 'kernels are clean' 'oclgrind is not installed; make oclgrind does it'
for mesh in "--micro-batch 1" "--mesh tp=2 -d 0:0x2" "--attention flash"; do
    rm -f "$log"
    # shellcheck disable=SC2086 # words
    oclgrind --data-races --max-errors 20 --log "$log" \
        "$YARD" train --layers 1 --heads 3 --channels 21 --seq-len 65 --batch 2 --steps 1 --val-batches 1 \
        --sample-tokens 1 --gemm own --serial $mesh >"$TMP/out" 2>&1
    code=$?
    if [ $code -ne 0 ]; then
        echo "the exit code is $code" | cat - "$TMP/out" >"$TMP/wrong"
    elif [ ! -f "$log" ]; then
        echo 'oclgrind has written no log: the kernels ran elsewhere' >"$TMP/wrong"
    else
        cp "$log" "$TMP/wrong"
    fi
    no_complaints "$TMP/wrong" "kernels are clean, $mesh"
done
finish
