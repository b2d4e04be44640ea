#!/bin/sh
# faults.sh - a checkpoint is written again while the system lets one call fail after another.
#
# This script checks that the program notices each of these failures, and that no checkpoint is harmed.
#
# tests/unit/techniques/test_crash.c lets calls fail inside src/trainer/file/publish.c.  Here strace forges the kernel's
# answers, so no call can be forgotten.  Each call that touches the target fails once, with two errors.  Then yard must
# end with 4, say one sentence, and leave nothing behind, or all of the new checkpoint where only its folder was not
# synced.  The checkpoint that is read must stay sound.
#
# To see it fail: in publish.c, let sync_file() return 0 whatever fsync() returns.
. tests/lib/helpers.sh

strace -o "$TMP/log" true 2>/dev/null ||
    skip_all 'a save notices every call that fails' 'strace is not installed, or may not trace'

"$YARD" train --model tiny -d 0:0x2 --zero 1 --steps 1 --sample-tokens 0 --val-batches 1 --save "$TMP/run" \
    >"$TMP/out" 2>"$TMP/err"
exit_code 'a run on two devices saves a checkpoint' $? 0
top=$PWD
cd "$TMP" || exit 1
from=run/step-1

reshard() { # OPTIONS OF STRACE...
    strace -f -o log "$@" "$YARD" ckpt reshard $from to --mesh dp=4 --zero 1 >out 2>err
}

places() { # CALL: prints which of the calls of that name touch the target: "5 6 9"
    reshard -y -e trace="$1" || return
    awk -v call="$1" -v folder="$TMP" -f "$top/tests/scripts/faults_places.awk" log
    rm -r to
}

is_noticed() { # CALL ERROR N: yard says so when that call fails with this error, and nothing is harmed; sets: code
    reshard -e trace="$1" -e inject="$1:error=$2:when=$3"
    code=$?
    grep -q INJECTED log || return 1
    [ $code -eq 4 ] && [ "$(grep -c '^yard: ' err)" -eq 1 ] || return 1
    if grep -q 'to is written' err; then
        "$YARD" ckpt verify to >out 2>&1 && rm -r to
    fi
    [ -z "$(find . -maxdepth 1 -name 'to*')" ] && "$YARD" ckpt verify $from >out 2>&1
}

for call in openat write fsync rename mkdir; do
    tried=0
    : >wrong
    for place in $(places $call); do
        for error in EIO ENOSPC; do
            tried=$((tried + 1))
            is_noticed $call $error "$place" || echo "$error at call $place: exit code $code: $(tail -n 1 err)" >>wrong
            rm -rf to*
        done
    done
    [ $tried -gt 0 ] || echo 'no such call was found' >wrong
    no_complaints wrong "$call fails: $tried times, each is noticed"
done
finish
