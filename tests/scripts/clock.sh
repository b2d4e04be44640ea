#!/bin/sh
# clock.sh - a driver's clock that steps back.
#
# This script checks that a trace counts the times at which the clock has stepped back, and that its summary says how
# many they are.  According to such a clock, a command starts before the command before it on its queue has ended.
#
# A library that is loaded before OpenCL's moves every SHIM_BACKth start back by 0.3 ms, which is within the command's
# life (tests/support/shim_clock.c).
#
# To see it fail: in device_clock.c, let stepped_back be false.
. tests/lib/helpers.sh

build_shim shim_clock 'a clock that steps back'

trace() { # NAME=VALUE...: a traced run with that in its environment; its summary is in $TMP/out and $TMP/json
    env "$@" LD_PRELOAD="$TMP/shim.so" "$YARD" train --model tiny --steps 4 --sample-tokens 0 --val-batches 1 -d 0:0 \
        --trace "$TMP/trace" >"$TMP/out" 2>"$TMP/err" &&
        "$YARD" trace summary "$TMP/trace" >"$TMP/out" 2>"$TMP/err" &&
        "$YARD" trace summary --json "$TMP/trace" >"$TMP/json" 2>"$TMP/err"
}
summarized() { json_value "$TMP/json" "$1"; } # NAME: of the summary

name="this driver's clock"
check "$name: a traced run succeeds" trace SHIM_BACK=
same "$name: no time is approximate" "$(summarized approximate)" 0
same "$name: no time has stepped back" "$(summarized stepped_back)" 0
check "$name: the summary says nothing of it" lacks 'steps back' "$TMP/out"

name='a clock that steps back'
check "$name: a traced run succeeds" trace SHIM_BACK=5
back=$(summarized stepped_back)
check "$name: the times that have stepped back are counted" [ "$back" -gt 10 ]
same "$name: so many times are approximate" "$(summarized approximate)" "$back"
check "$name: the summary says how many" \
    grep -q "^         $back of these began, by the driver's clock, before the end of the task before them" "$TMP/out"

finish
