#!/bin/sh
# clang.sh - clang compiles the program too, with all warnings as errors where ours are (WERROR=1).
#
# TMP is an empty folder.  The report is TAP (see run.sh).
set -u
TMP=${TMP:-$(mktemp -d)}

. tests/run/report.sh

command -v clang >/dev/null || skip_all 'clang' 'it is not installed'
make --no-print-directory CC=clang BUILD=build/clang YARD=build/yard-clang build/yard-clang >"$TMP/out" 2>&1
code=$?
cat "$TMP/out"
grep -E 'error|warning' "$TMP/out" >"$TMP/err"
result $code 'clang'
finish
