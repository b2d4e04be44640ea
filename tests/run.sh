#!/bin/sh
# run.sh LOGS TEST... - runs every test, program or script, whatever the others do, and sums up.
#
# The contract of a test: exit code 0 when all is well.  It runs at the project's top and finds in the environment
#   YARD   the program under test       TMP    an empty folder of its own
# It may report single checks in TAP, "ok 1 - name" and "not ok 2 - name", as cmocka does here and a script can with
# echo; "# SKIP why" after either marks a check that could not be made here.  A test that announces 1..N checks and
# reports fewer has failed: something in it ended the program.  LOGS/<test>.log keeps what it printed.
# The last line is 'N passed, N failed', in checks; the exit code is 0 when none failed.
set -u
logs=$1
shift
mkdir -p "$logs"
passed=0 failed=0 skipped=0 failures=

export YARD="${YARD:-./yard}"
export YARD_CACHE="${YARD_CACHE-$(cd "$logs" && pwd)/kernels}" # saves PoCL's driver 0.2 s at each of many starts
[ -z "$YARD_CACHE" ] || mkdir -p "$YARD_CACHE"
export CMOCKA_MESSAGE_OUTPUT=TAP
# The leak checker reads the thread-local memory of every thread, and crashes when one is just ending.
export LSAN_OPTIONS="suppressions=tests/leaks.supp:print_suppressions=0:use_tls=0"
# None takes 2 minutes on a free machine; on a busy one what is slow must not be taken for what hangs.
seconds_at_most=${TEST_TIMEOUT:-1200} limit=
command -v timeout >/dev/null && limit="timeout $seconds_at_most"

for test in "$@"; do
    name=$(basename "$test")
    log=$logs/$name.log
    export TMP="$logs/$name.tmp"
    rm -rf "$TMP"
    mkdir -p "$TMP"

    start=$(date +%s)
    $limit "$test" >"$log" 2>&1 </dev/null
    code=$?
    seconds=$(($(date +%s) - start))

    counts=$(awk '/^1\.\.[0-9]+$/ { n += substr($0, 4) }
                  /ok [0-9]+.*# SKIP/ { s++; next }
                  /not ok [0-9]+/ { f++; next }
                  /ok [0-9]+/ { p++ }
                  END { print n + 0, p + 0, f + 0, s + 0 }' "$log")
    read -r n p f s <<EOF
$counts
EOF
    reason="exit code $code"
    [ "$code" -eq 124 ] && reason="took longer than $seconds_at_most s"
    if [ "$code" -eq 0 ] && [ $((p + f + s)) -lt "$n" ]; then
        code=1
        reason="ended after $((p + f + s)) of $n checks"
    fi
    [ "$code" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ "$code" -eq 0 ] && [ $((p + f + s)) -eq 0 ] && p=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))

    if [ "$f" -eq 0 ]; then
        printf 'ok    %-28s %3d checks %4d s\n' "$name" "$p" "$seconds"
        awk '/# SKIP/ { said = $0
                        sub(/.*ok [0-9]+ (- )?/, "", said) sub(/ # SKIP +/, ": ", said) sub(/ *# SKIP */, "", said)
                        print "      skipped: " said (before ~ /ok [0-9]|^#|^1\.\.|^$/ ? "" : ": " before) }
             { before = $0 }' "$log"
        rm -rf "$TMP"
    else
        printf 'FAIL  %-28s %3d failed %4d s   %s; %s ends with:\n' "$name" "$f" "$seconds" "$reason" "$log"
        tail -n 40 "$log" | sed 's/^/      | /'
        failures="$failures $name"
    fi
done

echo
[ "$skipped" -gt 0 ] && echo "$skipped skipped"
[ -n "$failures" ] && echo "failed:$failures"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
