#!/bin/sh
# clang.sh - another compiler.
#
# This script checks that clang compiles the program too, with all warnings as errors where ours are (WERROR=1).
#
# To see it fail: let a function of src have a parameter that it does not use, and build with WERROR=1.
. tests/lib/helpers.sh

command -v clang >/dev/null || skip_all 'clang compiles the program without a warning' 'clang is not installed'
make --no-print-directory CC=clang BUILD=build/clang YARD=build/yard-clang build/yard-clang >"$TMP/out" 2>&1
code=$?
cat "$TMP/out"
grep -E 'error|warning' "$TMP/out" >"$TMP/err"
exit_code 'clang compiles the program without a warning' $code 0
finish
