# report.sh - the report of a test that is a script (`. tests/report.sh`): TAP, see run.sh.  $TMP/err: what was said last.
number=0 failed=0

result() { # ok? name: one line of the report
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=$((failed + 1))
        echo "not ok $number - $2"
        sed 's/^/#   /' "$TMP/err" | head -n 8
    fi
}
