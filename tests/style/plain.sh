#!/bin/sh
# plain.sh - the style of the C sources.
#
# This script checks that the C and the kernels are plain: one statement does one thing.  tests/style/plain.py
# says what is counted, and has the limits.  The script also checks that no function is written twice, that tests of the
# trainer need nothing else, and that the trainer keeps its limit of lines.  names.sh looks at names.
#
# Lines cost less than a reader's time.  So a folder has a limit of tokens per line, and may have more lines to keep it.
# The trainer also has a limit of lines of code, since students read it in a week.
#
# To see it fail: write two statements with a comma between them.
. tests/lib/helpers.sh

# The most lines of code that the trainer may have.  It has exactly as many, so each line that is added must be won
# elsewhere, or be worth more to a reader than it costs: then write the new number here, and the gain into the commit.
trainer=16407

if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    finds_nothing 'functions of plain.py give what their examples say' python3 -B -m doctest tests/style/plain.py
    python3 tests/style/plain.py cl src tests >"$TMP/err"
    code=$?
    sed 's/^/# /' "$TMP/err"
    exit_code 'statements do one thing each, and lines are not dense' $code 0
else
    skip 'functions of plain.py give what their examples say' 'python3 is not installed'
    skip 'statements do one thing each' 'python3 is not installed'
fi

finds_nothing 'no static function stands in two files of src' awk -f tests/style/twice.awk src/*.c src/*/*/*.c

const_locals() { # const says that a table or a parameter does not change, and is no habit
    types='(unsigned )?(char|int)|bool|unsigned|float|double|size_t|u?int[0-9]+_t|enum [a-z_]+'
    ! grep -nE "^ +const ($types) [a-z_]+( =|,)" src/trainer/*/*.c
}
finds_nothing 'locals of the trainer that are numbers are not const' const_locals

# The compiler lists all headers that it reads, those too that a header of tests/support includes.  Tests that need more
# of src are in tests/unit/together.
includes_beyond_trainer() {
    for test in tests/unit/trainer/*.c; do
        ${CC:-cc} -I. -Isrc -D_GNU_SOURCE= -DCL_TARGET_OPENCL_VERSION=120 -MM "$test" |
            grep -o '[^ ]*\.h' >"$TMP/included"
        enough 2 "$TMP/included" "headers of $test"
        sed -nE "/^src.(planning|techniques|tools)/s|^|$test includes |p" "$TMP/included"
    done
}
finds_nothing 'tests of the trainer include no other folder of src' includes_beyond_trainer

lines=$(awk -f tests/style/comments.awk -f tests/pages/code_lines.awk src/trainer/*/*.[ch])
check "the trainer's lines of code are counted: $lines" [ "$lines" -gt 0 ]
too_many_lines() {
    [ "$lines" -gt "$trainer" ] || return 0
    cat <<END
src/trainer has $lines lines of code, $((lines - trainer)) more than its limit: a student reads all of it in a week.
Win as many lines elsewhere in the trainer: is something written twice, or no longer called?  What a training can do
without belongs in another folder of src.  Blank lines and comments do not count.
If a reader gains more by these lines than they cost, write trainer=$lines into tests/style/plain.sh, and say in the
commit what the gain is.
END
}
finds_nothing "the trainer has at most $trainer lines of code" too_many_lines

finish
