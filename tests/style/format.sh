#!/bin/sh
# format.sh - the sources have the project's layout, as clang-format 14 makes it.  Others differ in details.
#
# It leaves comments as they are, since many have tables and pictures: so the width of lines is looked at here.
. tests/run/helpers.sh

case $(clang-format --version 2>/dev/null) in
*' 14.'*) ;;
*) skip_all 'layout' 'clang-format 14 is not installed' ;;
esac

awk 'length > 120 { print FILENAME ":" FNR ": more than 120 columns" }' \
    src/*.c src/*/*/*.[ch] tests/*/*.[ch] >"$TMP/wrong"
if ! make --no-print-directory format-check >"$TMP/out" 2>&1; then
    echo 'make format mends this:' >>"$TMP/wrong"
    cat "$TMP/out" >>"$TMP/wrong"
fi
no_complaints "$TMP/wrong" 'layout'
finish
