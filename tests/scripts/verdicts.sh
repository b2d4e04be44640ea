#!/bin/sh
# verdicts.sh - the verdicts of tests/lib/run.sh.
#
# This script checks that a test which fails is never taken for one that passed: first by what verdict.awk makes of
# reports, and then by tests that run.sh runs.
#
# To see it fail: in verdict.awk, count what is not ok as ok.
. tests/lib/helpers.sh

# ---- verdict.awk -----------------------------------------------------------------------------------------------------

# A verdict "1 0 2 exit code 0" is: 1 check is well, 0 have failed, 2 were skipped, and how the test ended.
verdict_of() { # VERDICT CODE LINE...: of a test that ended with that code, and has printed these lines
    wanted=$1
    code=$2
    shift 2
    printf '%s\n' "$@" >"$TMP/log"
    got=$(awk -v code="$code" -v seconds=60 -f tests/lib/verdict.awk "$TMP/log")
    [ "$got" = "$wanted" ] || echo "code $code, $*: the verdict is $got, not $wanted" >>"$TMP/wrong"
}

: >"$TMP/wrong"
verdict_of '2 0 0 exit code 0' 0 'ok 1 - a' 'ok 2 - b' 1..2
verdict_of '1 0 1 exit code 0' 0 1..2 'ok 1 - a' 'ok 2 - b # SKIP why'
verdict_of '0 0 1 exit code 0' 0 1..1 'not ok 1 - a # SKIP why'
verdict_of '1 0 0 exit code 0' 0 'a script may be a check itself'
verdict_of '1 0 0 exit code 0' 0 1..1 'a line without an end. ok 1 - a'
verdict_of '1 1 0 ended after 1 of 2 checks' 0 1..2 'ok 1 - a' 'the run took 5 s'
verdict_of '0 0 0 exit code 0' 0 1..0
no_complaints "$TMP/wrong" 'verdict.awk takes tests that are well for well'

: >"$TMP/wrong"
verdict_of '1 1 0 exit code 1' 1 1..2 'ok 1 - a' 'not ok 2 - b'
verdict_of '1 1 0 exit code 0' 0 1..2 'ok 1 - a' 'not ok 2 - b'
verdict_of '1 1 0 exit code 139' 139 1..1 'ok 1 - a'
verdict_of '0 1 0 exit code 3' 3 1..0
verdict_of '0 1 0 exit code 7' 7 'a script may be a check itself'
verdict_of '0 1 0 took longer than 60 s' 124 1..1
verdict_of '1 1 0 ended after 1 of 3 checks' 0 1..3 'ok 1 - a'
verdict_of '0 1 0 ended after 1 of 3 checks' 0 1..3 'not ok 1 - a'
verdict_of '1 1 0 ended after 1 of 2 checks' 0 1..1 'ok 1 - a' 1..1
no_complaints "$TMP/wrong" 'verdict.awk takes tests that are not well for failed'

# ---- run.sh ----------------------------------------------------------------------------------------------------------

test_file() { # NAME LINE...: a test that prints these lines
    name=$1
    shift
    printf 'echo "%s"\n' "$@" >>"$TMP/$name"
    chmod +x "$TMP/$name"
}

for written in well.sh crashes.sh hangs.sh; do
    echo '#!/bin/sh' >"$TMP/$written"
done
test_file well.sh 1..2 'ok 1 - a' 'ok 2 - b # SKIP why'
test_file crashes.sh 1..1 'ok 1 - a'
echo 'kill -SEGV $$' >>"$TMP/crashes.sh"
test_file hangs.sh 1..1
echo 'sleep 60' >>"$TMP/hangs.sh"

run_tests() { # TEST...: what run.sh says of them is in $TMP/err
    YARD_TESTS=test TEST_TIMEOUT=2 tests/lib/run.sh "$TMP/logs" "$@" >"$TMP/err" 2>&1
}

check 'a test that is well: run.sh succeeds' run_tests "$TMP/well.sh"
check 'a test that is well: LOGS/passed is there' [ -e "$TMP/logs/passed" ]
check 'a test that is well is counted' grep -q '^1 passed, 0 failed' "$TMP/err"
check 'a test that is well: what it skipped is told' grep -q 'skipped: b: why' "$TMP/err"
run_tests "$TMP/well.sh" "$TMP/crashes.sh"
check 'a test that crashes: run.sh fails' [ $? -ne 0 ]
check 'a test that crashes: LOGS/passed is not there' [ ! -e "$TMP/logs/passed" ]
check 'a test that crashes is counted' grep -q '^2 passed, 1 failed' "$TMP/err"
check 'a test that crashes: its exit code is told' grep -q '^FAIL  crashes.sh .* exit code 139' "$TMP/err"
if command -v timeout >/dev/null; then
    run_tests "$TMP/hangs.sh"
    check 'a test that hangs: run.sh fails' [ $? -ne 0 ]
    check 'a test that hangs is ended' grep -q '^FAIL  hangs.sh .* took longer than 2 s' "$TMP/err"
else
    skip 'a test that hangs is ended' 'there is no program timeout'
fi
env TMP="$TMP/logs" YARD="$TMP/crashes.sh" tests/scripts/clock.sh >"$TMP/err" 2>&1
check 'a yard that crashes: clock.sh fails, and does not skip all' [ $? -ne 0 ]

finish
