#!/bin/sh
# format.sh - the sources have the project's layout, as clang-format 14 makes it.  Others differ in details.
set -u
case $(clang-format --version 2>/dev/null) in
*' 14.'*) ;;
*)
    echo "ok 1 - layout # SKIP clang-format 14 is not installed"
    exit 0
    ;;
esac
# It leaves comments as they are, since many have tables and pictures: so lines are looked at here.
wide=$(awk 'length > 120 { print "# " FILENAME ":" FNR ": more than 120 columns" }' src/*.c src/*/*/*.[ch] tests/*.[ch])
[ -z "$wide" ] || { echo "not ok 1 - layout"; echo "$wide"; exit 1; }
make --no-print-directory format-check || { echo "not ok 1 - layout: make format"; exit 1; }
echo "ok 1 - layout"
