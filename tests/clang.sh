#!/bin/sh
# clang.sh - clang compiles the program too, with all warnings as errors where ours are (WERROR=1).
set -u
if ! command -v clang >/dev/null; then
    echo "ok 1 - clang # SKIP it is not installed"
    exit 0
fi
make --no-print-directory CC=clang BUILD=build/clang YARD=build/yard-clang build/yard-clang || { echo "not ok 1 - clang"; exit 1; }
echo "ok 1 - clang"
