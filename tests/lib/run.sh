#!/bin/sh
# run.sh LOGS TEST... - runs every test, program or script, whatever the others do, and sums up.
#
# The contract of a test: exit code 0 when all is well.  It runs at the project's top and finds in the environment
#   YARD         the program under test
#   TMP          an empty folder of its own
#   YARD_TESTS   test: what `make test` runs; check: the rest, for `make check`; all
# It may report single checks in TAP, "ok 1 - name" and "not ok 2 - name", as cmocka does here and a script can with
# echo; "# SKIP why" after either marks a check that could not be made here.  A test that announces 1..N checks and
# reports fewer has failed: something in it ended the program.  LOGS/<test>.log keeps what it printed; verdict.awk reads
# what that comes to.
#
# When all of part "test" have passed, LOGS/passed is there; `make check` looks at it.
#
# As many tests run side by side as there are cores (JOBS).  Those that take longest start first.
# LOGS/seconds-PART keeps what each took, for the next run's order and its guess of the time left; before there is one,
# seconds-PART.txt beside this script serves.  (A test may have other checks in part "check", and take longer there.)
# The last line is 'N passed, N failed', in checks; the exit code is 0 when none failed.
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
export LSAN_OPTIONS="suppressions=tests/lib/leaks.supp:print_suppressions=0:use_tls=0"
# None takes 2 minutes on a free machine; on a busy one what is slow must not be taken for what hangs.
seconds_at_most=${TEST_TIMEOUT:-1200}
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
guesses=$logs/seconds-$YARD_TESTS
[ -s "$guesses" ] || guesses=tests/lib/seconds-$YARD_TESTS.txt
[ -s "$guesses" ] || guesses=tests/lib/seconds-check.txt # for part "all"

# What has happened so far.
begun=$(date +%s)
passed=0 # checks that are well
failed=0
skipped=0
finished=0  # tests that have ended
failures=   # names of tests that have failed
running=    # tests that run now
n_running=0 # how many these are
polls=0     # looks at those that run, since one ended

. tests/lib/progress.sh

# ---- one test --------------------------------------------------------------------------------------------------------

become() { # TEST: this process becomes the test, for $seconds_at_most where there is a program timeout
    if command -v timeout >/dev/null; then
        exec timeout -k 10 "$seconds_at_most" "$1"
    fi
    exec "$1"
}

run_one() { # TEST: when it has ended, LOGS/<name>.ended is there, with its exit code and seconds
    name=${1##*/}
    export TMP="$logs/$name.tmp"
    rm -rf "$TMP"
    mkdir -p "$TMP"
    start=$(date +%s)
    become "$1" >"$logs/$name.log" 2>&1 </dev/null 9>&- &
    test=$!
    trap 'kill $test 2>/dev/null' TERM # the test ends with this process
    wait $test
    echo $? $(($(date +%s) - start)) >"$logs/$name.code"
    mv "$logs/$name.code" "$logs/$name.ended" # at once with all that it has
}

# The result of a test that has ended is printed, unless it has no checks for this part, and counted.
report() { # TEST; sets: passed, failed, skipped, failures
    name=${1##*/}
    log=$logs/$name.log
    read -r code seconds <"$logs/$name.ended"
    rm "$logs/$name.ended"
    read -r ok bad left_out reason <<EOF
$(awk -v code="$code" -v seconds="$seconds_at_most" -f tests/lib/verdict.awk "$log")
EOF
    if [ "$bad" -gt 0 ]; then
        printf 'FAIL  %-28s %3d failed %4d s   %s; %s ends with:\n' "$name" "$bad" "$seconds" "$reason" "$log"
        tail -n 40 "$log" | sed 's/^/      | /'
        say_how_to_repeat "$1" "$log"
        failures="$failures $name"
    elif [ $((ok + left_out)) -gt 0 ]; then
        printf 'ok    %-28s %3d checks %4d s\n' "$name" "$ok" "$seconds"
        show_skipped "$log"
    fi
    [ "$bad" -gt 0 ] || rm -rf "$logs/$name.tmp"
    passed=$((passed + ok))
    failed=$((failed + bad))
    skipped=$((skipped + left_out))
    echo "$name $seconds" >>"$logs/seconds.new"
}

show_skipped() { # LOG: what could not be checked, and why; cmocka prints that in the line before
    awk -f tests/lib/skipped.awk "$1"
}

say_how_to_repeat() { # TEST LOG
    case $1 in
    *.sh) echo "      again: mkdir -p $logs/tmp; TMP=$logs/tmp YARD=$YARD YARD_TESTS=$YARD_TESTS $1" ;;
    *) sed -n 's/^not ok [0-9]* - \([A-Za-z0-9_]*\).*/\1/p' "$2" | head -n 3 | while read -r check; do
        echo "      alone, in gdb: mkdir -p $logs/tmp; TMP=$logs/tmp YARD=$YARD gdb -ex 'break _fail' --args $1 $check"
    done ;;
    esac
}

# ---- all of them -----------------------------------------------------------------------------------------------------

guess() { # TEST...: "SECONDS TEST" for each, by what it took the last time
    printf '%s\n' "$@" | awk -f tests/lib/guess.awk "$guesses" -
}

guess_left() { # TEST...: the seconds that all of them take, side by side
    guess "$@" | awk -v jobs="$jobs" '{ sum += $1 } END { printf "%d", sum / jobs + 1 }'
}

stop() {
    erase_line
    for test in $running; do
        kill "$(cat "$logs/${test##*/}.pid")" 2>/dev/null
    done
}

collect_ended() { # reports those of $running that have ended; sets: running, n_running, finished, polls
    still=
    for test in $running; do
        if [ -e "$logs/${test##*/}.ended" ]; then
            erase_line
            report "$test"
            finished=$((finished + 1))
            n_running=$((n_running - 1))
            polls=0
        else
            still="$still $test"
        fi
    done
    running=$still
}

run_all() { # TEST...: in this order, as many side by side as $jobs says; sets: running, n_running, polls
    all=$#
    while [ $finished -lt "$all" ]; do
        collect_ended
        while [ $# -gt 0 ] && [ $n_running -lt "$jobs" ]; do # the arguments are the tests that wait
            run_one "$1" &
            echo $! >"$logs/${1##*/}.pid"
            running="$running $1"
            n_running=$((n_running + 1))
            shift
        done
        if [ -t 1 ] && [ $((polls % 20)) -eq 0 ]; then
            # shellcheck disable=SC2086 # the tests that run
            show_progress $finished "$all" "$(guess_left $running "$@")" "$running"
        fi
        polls=$((polls + 1))
        sleep 0.1
    done
    erase_line
}

seconds_of() { # TEST...: "SECONDS TEST CHECK" for each check that says how long it took, and "SECONDS TEST" for scripts
    for test in "$@"; do
        name=${test##*/}
        awk -v name="$name" -f tests/lib/seconds.awk "$logs/$name.log"
        case $test in
        *.sh) sed -n "s/^$name \(.*\)/\1 $name/p" "$logs/seconds-$YARD_TESTS" ;;
        esac
    done
}

main() { # TEST...
    [ "$YARD_TESTS" != test ] || rm -f "$logs/passed"
    rm -f "$logs/seconds.new" "$logs"/*.ended
    # shellcheck disable=SC2046 # a path in each line
    set -- $(guess "$@" | sort -s -rn | awk '{ print $2 }')
    run_all "$@"
    mv "$logs/seconds.new" "$logs/seconds-$YARD_TESTS" 2>/dev/null

    echo
    echo "the ten slowest:"
    seconds_of "$@" | sort -rn | head -n 10 | awk '{ printf "%8.1f s  %s %s\n", $1, $2, $3 }'
    echo
    [ "$skipped" -eq 0 ] || echo "$skipped skipped"
    [ -z "$failures" ] || echo "failed:$failures"
    echo "$passed passed, $failed failed, in $(($(date +%s) - begun)) s"
    [ "$failed" -eq 0 ] || exit 1
    [ "$YARD_TESTS" != test ] || touch "$logs/passed"
}

trap 'stop; exit 130' INT TERM HUP QUIT PIPE
main "$@"
