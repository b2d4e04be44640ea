#!/bin/sh
# run.sh LOGS TEST... - runs every test, program or script, whatever the others do, and sums up.
#
# The contract of a test: exit code 0 when all is well.  It runs at the project's top and finds in the environment
#   YARD         the program under test
#   TMP          an empty folder of its own
#   YARD_TESTS   test: what `make test` runs; check: the rest, for `make check`; all
# It may report single checks in TAP, "ok 1 - name" and "not ok 2 - name", as cmocka does here and a script can with
# echo; "# SKIP why" after either marks a check that could not be made here.  A test that announces 1..N checks and
# reports fewer has failed: something in it ended the program.  LOGS/<test>.log keeps what it printed.
#
# When all of part "test" have passed, LOGS/passed is there; `make check` looks at it.
#
# As many tests run side by side as there are cores (JOBS).  Those that take longest start first.
# LOGS/seconds-PART keeps what each took, for the next run's order and its guess of the time left; before there is one,
# tests/seconds.txt serves.  The last line is 'N passed, N failed', in checks; the exit code is 0 when none failed.
set -u
logs=$1
shift
mkdir -p "$logs"
exec 9>"$logs/lock" # one run at a time uses this folder
if command -v flock >/dev/null && ! flock -n 9; then
    echo "other tests are running in $logs: wait for them, or choose another folder with BUILD=" >&2
    exit 1
fi

# Makes in tests have no share in the cores that the outer one hands out.
MAKEFLAGS=$(echo "${MAKEFLAGS:-}" | sed 's/ *--jobserver[^ ]*//; s/ *-j[0-9]*//')
export MAKEFLAGS

export YARD="${YARD:-./yard}"
export YARD_TESTS="${YARD_TESTS:-all}"
export YARD_CACHE="${YARD_CACHE-$(cd "$logs" && pwd)/kernels}" # saves PoCL's driver 0.2 s at each of many starts
[ -z "$YARD_CACHE" ] || mkdir -p "$YARD_CACHE"
export CMOCKA_MESSAGE_OUTPUT=TAP
# The leak checker reads the thread-local memory of every thread, and crashes when one is just ending.
export LSAN_OPTIONS="suppressions=tests/leaks.supp:print_suppressions=0:use_tls=0"
# None takes 2 minutes on a free machine; on a busy one what is slow must not be taken for what hangs.
seconds_at_most=${TEST_TIMEOUT:-1200} limit=
command -v timeout >/dev/null && limit="timeout -k 10 $seconds_at_most"
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
screen=no
[ ! -t 1 ] || screen=yes

# ---- one test -------------------------------------------------------------------------------------------------------

run_one() { # TEST: in the background; its exit code and seconds go to LOGS/<name>.ended, and its name to the pipe
    name=$(basename "$1")
    export TMP="$logs/$name.tmp"
    rm -rf "$TMP"
    mkdir -p "$TMP"
    start=$(date +%s)
    $limit "$1" >"$logs/$name.log" 2>&1 </dev/null 3>&- 9>&- &
    test=$!
    trap 'kill $test 2>/dev/null' TERM # who ends this ends the test
    wait $test
    echo $? $(($(date +%s) - start)) >"$logs/$name.ended"
    echo "$1" >&3
}

count_checks() { # LOG: how many were $announced; how many of those that it reports are $ok, $bad and $left_out
    counts=$(awk '
        /^1\.\.[0-9]+$/ { announced += substr($0, 4) }
        /ok [0-9]+.*# SKIP/ {
            left_out++
            next
        }
        /not ok [0-9]+/ {
            bad++
            next
        }
        /ok [0-9]+/ { ok++ }
        END { print announced + 0, ok + 0, bad + 0, left_out + 0 }' "$1")
    read -r announced ok bad left_out <<EOF
$counts
EOF
}

# How a test ended says more than its checks: $bad is 1 at least if it did not end well, for that $reason; and $ok is 1
# if it ended well and reported nothing, since a script may be a check itself.
judge() { # LOG
    reported=$((ok + bad + left_out))
    reason="exit code $code"
    [ "$code" -ne 124 ] || reason="took longer than $seconds_at_most s"
    if [ "$code" -eq 0 ] && [ $reported -lt "$announced" ]; then
        code=1
        reason="ended after $reported of $announced checks"
    fi
    if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    if [ "$code" -eq 0 ] && [ $reported -eq 0 ] && ! grep -q '^1\.\.0$' "$1"; then
        ok=1
    fi
}

print_result() { # TEST LOG: nothing if the test has no checks for this part
    erase_line
    if [ "$bad" -gt 0 ]; then
        printf 'FAIL  %-28s %3d failed %4d s   %s; %s ends with:\n' "$name" "$bad" "$seconds" "$reason" "$2"
        tail -n 40 "$2" | sed 's/^/      | /'
        say_how_to_repeat "$1" "$2"
    elif [ $((ok + left_out)) -gt 0 ]; then
        printf 'ok    %-28s %3d checks %4d s\n' "$name" "$ok" "$seconds"
        show_skipped "$2"
    fi
}

report() { # TEST: it has ended; what it reported is printed and counted
    name=$(basename "$1")
    read -r code seconds <"$logs/$name.ended"
    rm "$logs/$name.ended"
    count_checks "$logs/$name.log"
    judge "$logs/$name.log"
    print_result "$1" "$logs/$name.log"
    passed=$((passed + ok))
    failed=$((failed + bad))
    skipped=$((skipped + left_out))
    echo "$name $seconds" >>"$logs/seconds.new"
    if [ "$bad" -eq 0 ]; then
        rm -rf "$logs/$name.tmp"
    else
        failures="$failures $name"
    fi
}

show_skipped() { # LOG: what could not be checked, and why; cmocka prints that in the line before
    awk '
        /# SKIP/ {
            said = $0
            sub(/.*ok [0-9]+ (- )?/, "", said)
            sub(/ # SKIP +/, ": ", said)
            sub(/ *# SKIP */, "", said)
            if (before !~ /ok [0-9]|^#|^1\.\.|^$/)
                said = said ": " before
            print "      skipped: " said
        }
        { before = $0 }' "$1"
}

say_how_to_repeat() { # TEST LOG
    case $1 in
    *.sh) echo "      again: mkdir -p $logs/tmp; TMP=$logs/tmp YARD=$YARD YARD_TESTS=$YARD_TESTS $1" ;;
    *) sed -n 's/^not ok [0-9]* - \([A-Za-z0-9_]*\).*/\1/p' "$2" | head -n 3 | while read -r check; do
        echo "      alone, in gdb: mkdir -p $logs/tmp; TMP=$logs/tmp YARD=$YARD gdb -ex 'break _fail' --args $1 $check"
    done ;;
    esac
}

# ---- the time left --------------------------------------------------------------------------------------------------

erase_line() { [ $screen = no ] || printf '\r\033[K'; }

# On a screen one line is redrawn: what runs, and for how long by what each test took the last time.
show_progress() {
    [ $screen = yes ] || return 0
    elapsed=$(($(date +%s) - begun))
    left=$(for test in $running $waiting; do basename "$test"; done |
        awk -v elapsed=$elapsed -v jobs="$jobs" '
            FILENAME == "-" {
                left += ($1 in took) ? took[$1] : 3
                next
            }
            { took[$1] = $2 }
            END { printf "%d", left / jobs + 1 }' "$guesses" -)
    printf '\r\033[K%d of %d done, about %d s left; running:%s' $finished "$all" "$left" \
        "$(for test in $running; do printf ' %s' "$(basename "$test")"; done)" | cut -c 1-"${COLUMNS:-79}" | tr -d '\n'
}

# ---- all of them ----------------------------------------------------------------------------------------------------

[ "$YARD_TESTS" != test ] || rm -f "$logs/passed"
guesses=$logs/seconds-$YARD_TESTS
[ -s "$guesses" ] || guesses=tests/seconds.txt
in_order=$(for test in "$@"; do echo "$test"; done |
    awk '
        FILENAME != "-" {
            took[$1] = $2
            next
        }
        {
            name = $1
            sub(/.*\//, "", name)
            print ((name in took) ? took[name] : 3), $1
        }' "$guesses" - |
    sort -s -rn | awk '{ print $2 }' | tr '\n' ' ')

# Tests that end write their names into a pipe, and so does the ticker, that the line is drawn anew.
pipe=$logs/ended.$$
rm -f "$logs/seconds.new"
mkfifo "$pipe" || exit 1
exec 3<>"$pipe"
rm "$pipe"

ticker=
if [ $screen = yes ]; then
    while sleep 2; do echo tick >&3; done 9>&- &
    ticker=$!
fi
stop() {
    erase_line
    kill $ticker $begun_jobs 2>/dev/null
}
begun_jobs=
trap 'stop; exit 130' INT TERM HUP QUIT PIPE

passed=0 failed=0 skipped=0 # checks
all=$# started=0 finished=0 # tests
waiting=${in_order% }       # their names, with blanks between
running=
failures=
begun=$(date +%s)
while [ "$finished" -lt "$all" ]; do
    while [ $((started - finished)) -lt "$jobs" ] && [ -n "$waiting" ]; do
        next=${waiting%% *}
        case $waiting in
        *' '*) waiting=${waiting#* } ;;
        *) waiting= ;;
        esac
        run_one "$next" &
        begun_jobs="$begun_jobs $!"
        running="$running $next"
        started=$((started + 1))
    done
    show_progress
    read -r test <&3
    [ "$test" != tick ] || continue
    running=$(echo "$running" | sed "s|  *$test\( \|\$\)|\1|")
    finished=$((finished + 1))
    report "$test"
done
[ -z "$ticker" ] || kill "$ticker"
erase_line
mv "$logs/seconds.new" "$logs/seconds-$YARD_TESTS" 2>/dev/null

echo
echo "the ten slowest:"
for test in "$@"; do
    name=$(basename "$test")
    awk -v name="$name" '
        /^# seconds: / { seconds = $3 + 0 }
        /ok [0-9]+ - / && seconds != "" {
            sub(/.*ok [0-9]+ - /, "")
            print seconds, name, $1
            seconds = ""
        }' "$logs/$name.log"
    case $test in
    *.sh) sed -n "s/^$name \(.*\)/\1 $name/p" "$logs/seconds-$YARD_TESTS" ;;
    esac
done | sort -rn | head -n 10 | awk '{ printf "%8.1f s  %s %s\n", $1, $2, $3 }'
echo
[ "$skipped" -eq 0 ] || echo "$skipped skipped"
[ -z "$failures" ] || echo "failed:$failures"
echo "$passed passed, $failed failed, in $(($(date +%s) - begun)) s"
[ "$failed" -eq 0 ] || exit 1
[ "$YARD_TESTS" != test ] || touch "$logs/passed"
