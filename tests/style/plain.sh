#!/bin/sh
# plain.sh - the C is plain: one statement does one thing.  tests/style/plain.py says what is counted, and has the
# limits.
#
# Lines are cheap, and a reader's time is dear.  So a folder has a limit of tokens a line, and where the two are at
# odds the number of lines gives way.  The trainer has one number more, since it is to be read in a week: its lines of
# code.
. tests/run/helpers.sh

# Why the limit of the trainer was raised, from the lines of code that it had before:
#
#     11,500    statements were taken apart
#     13,700    rows of options named their fields
#     14,100    an order of a pipeline could come from a file, and a list could say that one task waits for another
#     14,300    functions with seven parameters and more took a struct that names them
#     14,350    a list was permuted in one place, an operation's unit was said, and rows of presets had names
#     14,550    nothing was added: a string with /* in it had hidden 56 lines from the count
#     14,600    calls say by an enum's word what they said by true and false
#     14,650    a copy's two tensors and the arguments of adamw have names, and the comments' mends
#     14,700    a tensor's shape and the arguments of gemm() have names, and more files have headers of their own
#     15,000    a job has a kind, and tasks that are late, parked or wrapped have functions of their own
#     15,050    nothing was added: structs have words for names, so longer statements take a second line
#     15,100    the same in the files that labs patch, where functions with two ideas became two
#     15,160    an option has another value for a trial, and gets its own back (try_value())
#     15,180    nothing was added: names in place of letters wrap statements
trainer=15180

if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    python3 tests/style/plain.py src tests >"$TMP/err"
    code=$?
    sed 's/^/# /' "$TMP/err"
    result $code 'statements do one thing each, and lines are not dense'
else
    skip 'statements do one thing each' 'python3 is not installed'
fi

finds_nothing 'functions that stand below a file of the name in a header are in that file' \
    awk -f tests/style/headings.awk src/*/*/*.[ch]

shared_names() {
    find src -name '*.c' | sed 's|.*/||' | sort >"$TMP/names"
    enough 200 "$TMP/names" 'files of C'
    uniq -d "$TMP/names"
}
finds_nothing 'no two files have one name, so that a debugger knows which is meant' shared_names

finds_nothing 'names that comments mention exist' awk -f tests/style/comments.awk -f tests/style/comment_names.awk \
    src/*.c src/*/*/*.[ch] cl/*.cl cl/*.h tests/support/*.[ch] tests/unit/*/*.c

lines=$(awk -f tests/style/comments.awk -f tests/pages/code_lines.awk src/trainer/*/*.[ch])
echo "the trainer has $lines lines of code" >"$TMP/err"
[ "$lines" -gt 0 ] && [ "$lines" -le "$trainer" ]
result $? "the trainer has at most $trainer lines of code: $lines"

finish
