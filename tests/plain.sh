#!/bin/sh
# plain.sh - the C is plain: one statement does one thing.  tests/plain.py says what is counted, and has the limits.
#
# Lines are cheap, and a reader's time is dear.  So a folder has a limit of tokens a line, and where the two are at
# odds the number of lines gives way.  The trainer has one number more, since it is to be read in a week: its lines of
# code.
#
# TMP is an empty folder.  The report is TAP (see run.sh).
set -u
trainer=14050 # 11,500 before its statements were taken apart; 13,700 before rows of options named their fields
TMP=${TMP:-$(mktemp -d)}

. tests/report.sh

if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    python3 tests/plain.py src tests >"$TMP/err"
    code=$?
    sed 's/^/# /' "$TMP/err"
    result $code 'statements do one thing each, and lines are not dense'
else
    skip 'statements do one thing each' 'python3 is not installed'
fi

awk -f tests/headings.awk src/*/*/*.[ch] >"$TMP/wrong"
no_complaints "$TMP/wrong" 'functions that stand below a file of the name in a header are in that file'

# Lines that are neither blank nor only comment.
awk '
    {
        code = ""
        for (rest = $0; rest != ""; ) {
            mark = in_comment ? "*/" : "/*"
            at = index(rest, mark)
            if (!in_comment)
                code = code (at > 0 ? substr(rest, 1, at - 1) : rest)
            if (at > 0)
                in_comment = !in_comment
            rest = at > 0 ? substr(rest, at + 2) : ""
        }
        n += code ~ /[^ \t]/
    }
    END { print n }' src/trainer/*/*.[ch] >"$TMP/lines"
lines=$(cat "$TMP/lines")
echo "the trainer has $lines lines of code" >"$TMP/err"
[ "$lines" -le "$trainer" ]
result $? "the trainer has at most $trainer lines of code: $lines"

finish
