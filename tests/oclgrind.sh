#!/bin/sh
# oclgrind.sh - one training step and one evaluation on oclgrind, a simulator that checks every access of every kernel.
#
# Oclgrind gives exit code 0 whatever it finds, so its log must be empty.  It bears one host thread only: --serial.
set -u
if ! command -v oclgrind >/dev/null; then
    echo "ok 1 - kernels are clean # SKIP oclgrind is not installed; make oclgrind does it"
    exit 0
fi
log=$TMP/oclgrind.log
oclgrind --data-races --uninitialized --max-errors 20 --log "$log" \
    "$YARD" train --model tiny --steps 1 --batch 2 --micro-batch 1 --val-batches 1 --gemm own --serial || exit 1
if [ ! -f "$log" ] || [ -s "$log" ]; then # no log at all: the kernels ran elsewhere
    cat "$log"
    echo "not ok 1 - kernels are clean"
    exit 1
fi
echo "ok 1 - kernels are clean"
