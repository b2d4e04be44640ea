#!/bin/sh
# outside.sh - `make BUILD=... YARD=...` with folders outside writes nothing into the sources, which may be read-only.
# `make -n` prints the commands, which are looked at and not run.
. tests/run/helpers.sh

make -n WERROR=1 BUILD="$TMP/out" YARD="$TMP/yard" 2>"$TMP/err" >"$TMP/commands"
check 'the files that a build outside makes are there' grep -q "$TMP/out/embedded.c" "$TMP/commands"
check 'the program of a build outside is there' grep -q "o $TMP/yard " "$TMP/commands"
files_in_the_tree() {
    grep -E '(^|[ >=/])build/' "$TMP/commands" | grep -v "$TMP"
    return 0
}
finds_nothing 'a build outside has none of its files in the tree' files_in_the_tree
finish
