#!/bin/sh
# names.sh - the names in the sources.
#
# This script checks that no two files, structs or functions have one name, that what comments name is there, and that
# each test says how to see it fail.
#
# To see it fail: give a static function of src the name fail.
. tests/lib/helpers.sh

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

silent_tests() { # tests that do not say how to see them fail
    ls tests/scripts/*.sh tests/style/*.sh tests/pages/*.sh tests/unit/*/test_*.c >"$TMP/tests"
    enough 100 "$TMP/tests" 'tests'
    while read -r test; do
        grep -q '^\( \*\|#\) To see it fail: ' "$test" || echo "$test does not say how to see it fail"
    done <"$TMP/tests"
}
finds_nothing 'each test says how to see it fail' silent_tests

finish
