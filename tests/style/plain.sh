#!/bin/sh
# plain.sh - the C is plain: one statement does one thing.  tests/style/plain.py says what is counted, and has the
# limits.
#
# Lines are cheap, and a reader's time is dear.  So a folder has a limit of tokens a line, and where the two are at
# odds the number of lines gives way.  The trainer has one number more, since it is to be read in a week: its lines of
# code.
#
# TMP is an empty folder.  The report is TAP (see run.sh).
set -u
# 11,500 before its statements were taken apart; 13,700 before rows of options named their fields; 14,100 before an order
# of a pipeline could come from a file, and a list could say that one task waits for another (step/after.c); 14,300
# before functions with seven parameters and more took a struct that names them; 14,350 before a list was permuted in
# one place, an operation's unit was said, and rows of presets had names; 14,550 before calls said by an enum's word what
# true and false had said
trainer=14600
TMP=${TMP:-$(mktemp -d)}

. tests/run/report.sh

if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    python3 tests/style/plain.py src tests >"$TMP/err"
    code=$?
    sed 's/^/# /' "$TMP/err"
    result $code 'statements do one thing each, and lines are not dense'
else
    skip 'statements do one thing each' 'python3 is not installed'
fi

awk -f tests/style/headings.awk src/*/*/*.[ch] >"$TMP/wrong"
no_complaints "$TMP/wrong" 'functions that stand below a file of the name in a header are in that file'

find src -name '*.c' | sed 's|.*/||' | sort | uniq -d >"$TMP/wrong"
no_complaints "$TMP/wrong" 'no two files have one name, so that a debugger knows which is meant'

awk -f tests/style/comment_names.awk src/*.c src/*/*/*.[ch] cl/*.cl cl/*.h tests/*/*.[ch] >"$TMP/wrong"
no_complaints "$TMP/wrong" 'names that comments mention exist'

# Lines that are neither blank nor only comment.
lines=$(awk '
    function code_of(line,   code, mark, at) { # the line without its comments; in_comment: it begins within one
        code = ""
        while (line != "") {
            mark = in_comment ? "*/" : "/*"
            at = index(line, mark)
            if (at == 0)
                return in_comment ? code : code line
            if (!in_comment)
                code = code substr(line, 1, at - 1)
            in_comment = !in_comment
            line = substr(line, at + 2)
        }
        return code
    }
    code_of($0) ~ /[^ \t]/ { n++ }
    END { print n }' src/trainer/*/*.[ch])
echo "the trainer has $lines lines of code" >"$TMP/err"
[ "$lines" -le "$trainer" ]
result $? "the trainer has at most $trainer lines of code: $lines"

finish
