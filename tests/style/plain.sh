#!/bin/sh
# plain.sh - the style of the C sources.
#
# This script checks that the C and the kernels are plain: one statement does one thing.  tests/style/plain.py
# says what is counted, and has the limits.
#
# Lines cost less than a reader's time.  So a folder has a limit of tokens per line, and may have more lines to keep it.
# The trainer also has a limit of lines of code, since students read it in a week.
#
# To see it fail: write two statements with a comma between them.
. tests/lib/helpers.sh

# The most lines of code that the trainer may have.  It has exactly as many, so each line that is added must be won
# elsewhere, or be worth more to a reader than it costs: then write the new number here, and the gain into the commit.
trainer=16412

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

finds_nothing 'functions that stand below a file of the name in a header are in that file' \
    awk -f tests/style/headings.awk src/*/*/*.[ch]

shared_names() {
    find src -name '*.c' | sed 's|.*/||' | sort >"$TMP/names"
    enough 200 "$TMP/names" 'files of C'
    uniq -d "$TMP/names"
}
finds_nothing 'no two files have one name, so that a debugger knows which is meant' shared_names

shared_structs() {
    cat src/*/*/*.[ch] | sed -n 's/^\(static const \)\{0,1\}struct \([a-z_0-9]*\) {.*/\2/p' | sort >"$TMP/names"
    enough 300 "$TMP/names" 'structs'
    uniq -d "$TMP/names"
}
finds_nothing 'no two structs have one name, so that a reader knows which is meant' shared_structs

functions_of() { # static FILE..., or public FILE...: "NAME FILE:LINE" of each such function
    of=$1
    shift
    awk -v of="$of" -f tests/style/function_names.awk "$@" | sort
}
shadows() { # 'PUBLIC...' FILE...: static functions of the files that have the name of a function in a file PUBLIC
    # shellcheck disable=SC2086 # paths of files
    functions_of public $1 >"$TMP/public"
    enough 1000 "$TMP/public" 'public functions'
    shift
    functions_of static "$@" >"$TMP/static"
    awk 'NR == FNR { public[$1] = $2; next } $1 in public { print "two functions have the name", $0, public[$1] }' \
        "$TMP/public" "$TMP/static"
}
finds_nothing 'no static function of src has the name of a public one' shadows 'src/*/*/*.[ch]' src/*/*/*.c
finds_nothing 'no static function of a test has the name of a public one of src or tests/support' \
    shadows 'src/*/*/*.[ch] tests/support/*.[ch]' tests/unit/*/*.c

finds_nothing 'no static function stands in two files of src' awk -f tests/style/twice.awk src/*.c src/*/*/*.c

finds_nothing 'names that comments mention exist' awk -f tests/style/comments.awk -f tests/style/comment_names.awk \
    src/*.c src/*/*/*.[ch] cl/*.cl cl/*.h tests/support/*.[ch] tests/unit/*/*.c

# leak:^find_newest$ is about a function of ours, and leak:libpocl about a library.
silent_leaks() { # prints the functions that leaks.supp names, and that are in no file
    sed -n 's/^leak:^\(.*\)\$$/\1/p' tests/lib/leaks.supp >"$TMP/names"
    enough 10 "$TMP/names" 'functions'
    while read -r name; do
        grep -rqw --include='*.c' "$name" src tests/unit tests/support || echo "tests/lib/leaks.supp: $name"
    done <"$TMP/names"
}
finds_nothing 'functions whose leaks are passed over exist' silent_leaks

files_not_there() { # "FOLDER/FILE.c" of the heads of tests
    awk -f tests/style/tested.awk tests/unit/*/*.c >"$TMP/tested"
    enough 20 "$TMP/tested" 'files that heads of tests name'
    while read -r tested; do
        [ -f "$tested" ] || echo "there is no $tested"
    done <"$TMP/tested"
}
finds_nothing 'files that the heads of tests name are in the folders that they name' files_not_there

# "To see it fail: in fill_levels() of levels.c, ..." gives "tests/... levels.c fill_levels": each function of such a
# paragraph must be in one of the files that it names.
faults_to_seed() { # "TEST FILES FUNCTION" for each function; FILES are joined by commas
    awk -f tests/style/faults.awk tests/unit/*/*.c
}
functions_elsewhere() {
    faults_to_seed >"$TMP/faults"
    enough 20 "$TMP/faults" 'functions in which tests say how to see them fail'
    while read -r test files function; do
        for file in $(echo "$files" | tr ',' ' '); do
            cat src/*/*/"$file" cl/"$file" tests/*/"$file" 2>/dev/null
        done | grep -Eq "(^|[^a-z_0-9])$function\(" || echo "$test: there is no $function() in $files"
    done <"$TMP/faults"
}
finds_nothing 'functions in which tests say how to see them fail are in the files that they name' functions_elsewhere

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
