# progress.sh - the last line of the screen while tests run.  run.sh reads it with `. tests/lib/progress.sh`.
#
#     12 of 48 done, about 95 s left; running: test_swap walk.sh
#
#     erase_line                                     before anything else is printed
#     show_progress DONE ALL SECONDS_LEFT RUNNING    draws it anew
#
# Nothing is drawn where the output is not a screen.
erase_line() { [ ! -t 1 ] || printf '\r\033[K'; }

show_progress() {
    line="$1 of $2 done, about $3 s left; running:"
    for test in $4; do
        line="$line ${test##*/}"
    done
    erase_line
    printf '%s' "$line" | cut -c 1-"${COLUMNS:-79}" | tr -d '\n'
}
