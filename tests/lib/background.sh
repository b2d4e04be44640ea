# background.sh - a run of yard in the background, and what is asked of it.  Scripts read it with
# `. tests/lib/background.sh`, after helpers.sh.
#
#     start WORDS...            removes $TMP/log, and runs yard WORDS in the background; what it prints is in $TMP/out
#                               and $TMP/err
#     start_command WORDS...    the same with the command WORDS, such as setsid "$YARD" ...
#     ended NAME CODE 'PART'    two checks of that run, for which this waits: its exit code, and a part of its sentence
#     has_trained               $TMP/log has step 9
#     has_stored                $TMP/log says that a snapshot is stored
#     said_times N PATTERN FILE exactly N lines of FILE have the pattern
#
#     train_by COMMAND OPTIONS...
#                               COMMAND with the words of a short training and these options, to which --steps belongs:
#                               `train_by yard --steps 3`, `train_by start --steps 100000000 --log "$TMP/log"`
#
# A script that has started a training with --log "$TMP/log" waits by `check "$name: it trains" within 600 has_trained`.
# When the script ends, so does the run.
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null' EXIT

train_by() { # COMMAND OPTIONS...
    trainer=$1
    shift
    "$trainer" train --model tiny --sample-tokens 0 --val-batches 1 "$@"
}

start() { # WORDS...
    start_command "$YARD" "$@"
}

start_command() { # WORDS...; sets: child
    # within() must not look at what the run before has left.
    : >"$TMP/out"
    rm -f "$TMP/log"
    "$@" >"$TMP/out" 2>"$TMP/err" </dev/null &
    child=$!
}

ended() { # NAME CODE PART; sets: code
    wait "$child"
    code=$?
    exit_code "$1: the exit code is $2" "$code" "$2"
    check "$1: it says '$3'" grep -qF -- "$3" "$TMP/err"
}

has_trained() {
    grep -q '"step":9,' "$TMP/log"
}

has_stored() {
    grep -q '^{"snapshot":' "$TMP/log"
}

said_times() { # N PATTERN FILE
    [ "$(grep -c -- "$2" "$3")" -eq "$1" ]
}
