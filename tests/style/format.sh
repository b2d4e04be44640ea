#!/bin/sh
# format.sh - the C has the project's layout, as clang-format 14 makes it, whose other versions differ in details.  No
# line of C, shell or awk has more than 120 characters.
#
# clang-format leaves comments as they are, since many have tables and pictures: so the width is looked at here.
. tests/run/helpers.sh

# Characters, not bytes: the continuation bytes of UTF-8 do not count.
awk '
    { gsub(/[\200-\277]/, "") }
    length > 120 { print FILENAME ":" FNR ": more than 120 characters" }' \
    src/*.c src/*/*/*.[ch] tests/*/*.[ch] Makefile tests/*.mk tests/*/*.sh tests/*/*.awk src/*/*/*.awk \
    tutorials/labs/*.sh data/gallery/*.sh data/gallery/*.awk data/gallery/generators/*.awk >"$TMP/wrong"
no_complaints "$TMP/wrong" 'lines have at most 120 characters'

case $(clang-format --version 2>/dev/null) in
*' 14.'*) ;;
*) skip_all 'layout' 'clang-format 14 is not installed' ;;
esac

: >"$TMP/wrong"
if ! make --no-print-directory format-check >"$TMP/out" 2>&1; then
    echo 'make format mends this:' >>"$TMP/wrong"
    cat "$TMP/out" >>"$TMP/wrong"
fi
no_complaints "$TMP/wrong" 'layout'
finish
