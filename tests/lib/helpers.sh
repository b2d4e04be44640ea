# helpers.sh - what all tests that are scripts begin with, and what they report with.  A script reads it by
# `. tests/lib/helpers.sh`, at the project's top, as its first line behind the comment that says what it tests.
#
# So a script runs alone, where ./yard is built: type `tests/scripts/clock.sh`.  It finds, whoever started it:
#
#     YARD           the program, ./yard if the environment has none; with its whole path, as some checks go elsewhere
#     TMP            an empty folder, with its whole path; a new one if the environment has none
#     LC_ALL=C       so that sed and awk read bytes, and that messages are English
#
# It reports single checks, in TAP (see run.sh).  Each check has one of these forms:
#
#     check NAME WORDS...         it is well if the command WORDS succeeds
#     same NAME GOT EXPECTED      it is well if both are the same text, which a number is too
#     exit_code NAME GOT EXPECTED it is well if the last command, whose stderr is in $TMP/err, has ended with EXPECTED
#     finds_nothing NAME WORDS... it is well if the command WORDS, which looks for mistakes, succeeds and prints nothing
#     no_complaints FILE NAME     it is well if FILE, which lists what is wrong, is there and empty
#     skip NAME WHY               it cannot be made here
#
# Below a check that fails, some lines tell why.  For `same` they show both texts; for a `[`, its words.  For other
# WORDS they show what these wrote to $TMP/err; if they wrote nothing there, and their last word is a file in $TMP, as
# in `check NAME grep -q 'a word' "$TMP/out"`, they show that file.
#
# NAME is the fact that must hold.  WORDS are one simple command: where a fact takes several, they are a function with
# a name, or checks of their own, which begin with the same words, as in `check "$name: the exit code is 4" ...`.  These
# may stand in WORDS, where the shell's ! , && and > may not:
#
#     lacks PATTERN FILE          FILE is there, and none of its lines has PATTERN
#     differ FILE FILE            both files are there, and have not the same bytes
#     holds TEXT FILE             FILE has this text, and nothing else
#     is_empty FOLDER             FOLDER is there, and has no files
#
# More of a script's report:
#
#     enough N FILE WHAT          prints a complaint if FILE has fewer than N lines, each with a WHAT that was looked at
#     skip_all NAME WHY           none of the script's checks can: it ends
#     finish                      the script's last line: prints how many checks there were, ends with the exit code
#
# A check that looks for mistakes in nothing finds none.  So a script ends at once where TMP is no folder, a search that
# fails is a mistake, and a loop that a pattern feeds says by enough() that it had something to look at.
#
# A script of two checks, and what it prints where the second one fails
#
#     . tests/lib/helpers.sh                                      ok 1 - the version is printed
#     yard --version                                              not ok 2 - the version is one line
#     exit_code 'the version is printed' $? 0                     #   yard 1
#     check 'the version is one line' holds 'yard 1' "$TMP/out"   #   built without SDL2
#     finish                                                      1..2
#
# Some scripts need more:
#
#     yard WORDS...               runs yard WORDS; what it prints is in $TMP/out and $TMP/err
#     json_values, json_value     values of fields of JSON (see json.sh)
#     within SECONDS WORDS...     waits until the command WORDS succeeds.  It fails when the seconds are over, or before
#                                 that when the process $child ends, if there is one
#     build_shim FILE NAME        $TMP/shim.so, for LD_PRELOAD, of tests/support/FILE.c, which stands before OpenCL's
#                                 library; where it cannot be loaded, the script ends, with NAME as what is skipped
set -u
LC_ALL=C
YARD=$(realpath "${YARD:-./yard}")
TMP=${TMP:-$(mktemp -d)}
if [ ! -d "$TMP" ] || [ ! -w "$TMP" ]; then # else nothing could be written there, and no complaint would be found
    echo "TMP=$TMP is not a folder to write in: make it, or unset TMP" >&2
    exit 99
fi
TMP=$(realpath "$TMP")
export LC_ALL YARD TMP
. tests/lib/json.sh

# ---- the report ------------------------------------------------------------------------------------------------------

number=0 # of checks so far
failed=0

verdict() { # CODE NAME FILE LINES: so many lines of FILE say what is wrong; sets: number, failed
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=$((failed + 1))
        echo "not ok $number - $2"
        sed 's/^/#   /' "$3" | head -n "$4"
    fi
}

check() { # NAME WORDS...
    fact=$1
    shift
    cat "$TMP/err" >"$TMP/err.before" 2>/dev/null # so that tell() sees whether the words change that file
    if "$@"; then
        verdict 0 "$fact"
    else
        tell "$@" >"$TMP/failure"
        verdict 1 "$fact" "$TMP/failure" 8
    fi
}

tell() { # WORDS...: prints what tells why these words of a check have failed
    if [ "$1" = '[' ]; then
        echo "$*"
    elif [ -s "$TMP/err" ] && ! cmp -s "$TMP/err" "$TMP/err.before"; then
        cat "$TMP/err"
    else
        shift $(($# - 1))
        case $1 in
        "$TMP"/*) grep -I '' "$1" 2>/dev/null ;; # -I: no bytes that are no text
        esac
    fi
}

same() { # NAME GOT EXPECTED
    [ "$2" = "$3" ]
    equal=$?
    printf 'got      %s\nexpected %s\n' "$2" "$3" >"$TMP/failure"
    verdict $equal "$1" "$TMP/failure" 30
}

exit_code() { # NAME GOT EXPECTED
    [ "$2" -eq "$3" ]
    equal=$?
    echo "exit code $2, expected $3" >"$TMP/failure"
    [ ! -f "$TMP/err" ] || cat "$TMP/err" >>"$TMP/failure"
    verdict $equal "$1" "$TMP/failure" 9
}

lacks() { # PATTERN FILE
    [ -r "$2" ] && ! grep -q -e "$1" "$2"
}

differ() { # FILE FILE
    [ -r "$1" ] && [ -r "$2" ] && ! cmp -s "$1" "$2"
}

holds() { # TEXT FILE
    [ "$(cat "$2")" = "$1" ]
}

is_empty() { # FOLDER
    [ -d "$1" ] && [ -z "$(ls -A "$1")" ]
}

no_complaints() { # FILE NAME
    [ -f "$1" ] || echo 'nothing was looked at' >"$1"
    [ ! -s "$1" ]
    verdict $? "$2" "$1" 30
}

finds_nothing() { # NAME WORDS...: what goes wrong with the command itself is a complaint too
    fact=$1
    shift
    "$@" >"$TMP/wrong" 2>&1 || echo "$1: exit code $?" >>"$TMP/wrong"
    no_complaints "$TMP/wrong" "$fact"
}

enough() { # N FILE WHAT
    found=$(wc -l <"$2")
    [ "$found" -ge "$1" ] || echo "only $found were found: $3"
}

skip() { # NAME WHY; sets: number
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

skip_all() { # NAME WHY
    skip "$1" "$2"
    finish
}

finish() {
    echo "1..$number"
    [ "$failed" -eq 0 ] && [ "$number" -gt 0 ]
    exit $?
}

# ---- what some need --------------------------------------------------------------------------------------------------

yard() { # WORDS...
    "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
}

child= # a process in the background, which the script starts

within() { # SECONDS WORDS...
    tries=$(($1 * 100))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        [ -z "$child" ] || kill -0 "$child" 2>/dev/null || return 1
        sleep 0.01
    done
}

build_shim() { # FILE NAME
    yard --version
    exit_code 'the program starts without this library' $? 0
    # A sanitizer's runtime must be the first library: then the program does not start with this one before it.
    ${CC:-cc} -D_GNU_SOURCE -shared -fPIC -o "$TMP/shim.so" "tests/support/$1.c" -ldl 2>"$TMP/err" &&
        LD_PRELOAD=$TMP/shim.so "$YARD" --version >"$TMP/out" 2>"$TMP/err" && return
    skip_all "$2" "a library cannot be put before OpenCL's: $(head -n 1 "$TMP/err")"
}
