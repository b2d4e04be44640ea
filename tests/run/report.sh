# report.sh - the report of a test that is a script, in TAP (see run.sh).  A script reads it with
# `. tests/run/report.sh`.
#
#     result CODE NAME            a check is well if CODE is 0; else $TMP/err tells what was said last
#     check NAME WORDS...         a check is well if the command WORDS succeeds; else the same
#     lacks PATTERN FILE          succeeds if no line of FILE has PATTERN, as the shell's ! may not stand in WORDS
#     no_complaints FILE NAME     a check is well if FILE, which lists what is wrong, is empty
#     skip NAME WHY               a check cannot be made here
#     skip_all NAME WHY           none of the script's checks can: it ends
#     finish                      the script's last line: prints how many checks there were, ends with the exit code
number=0 # of checks so far
failed=0

verdict() { # CODE NAME FILE LINES: so many lines of FILE say what is wrong
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=$((failed + 1))
        echo "not ok $number - $2"
        sed 's/^/#   /' "$3" | head -n "$4"
    fi
}

result() { verdict "$1" "$2" "$TMP/err" 8; }

check() {
    fact=$1
    shift
    "$@"
    result $? "$fact"
}

lacks() {
    [ -r "$2" ] && ! grep -q -e "$1" "$2"
}

no_complaints() {
    [ ! -s "$1" ]
    verdict $? "$2" "$1" 30
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

skip_all() {
    skip "$1" "$2"
    finish
}

finish() {
    echo "1..$number"
    [ "$failed" -eq 0 ] && [ "$number" -gt 0 ]
    exit
}
