#!/bin/sh
# outside.sh - `make BUILD=...  YARD=...` with folders outside the sources, which may be read-only.
#
# This script checks that such a build writes nothing into the sources.  It looks at the commands that `make -n` prints,
# and runs none of them.
#
# To see it fail: in the Makefile, write a file into the tree when something is compiled: -MF build/x.d.
. tests/lib/helpers.sh

make -n WERROR=1 BUILD="$TMP/out" YARD="$TMP/yard" 2>"$TMP/err" >"$TMP/commands"
check 'the files that a build outside makes are there' grep -q "$TMP/out/embedded.c" "$TMP/commands"
check 'the program of a build outside is there' grep -q "o $TMP/yard " "$TMP/commands"
files_in_the_tree() { # a command may write both outside and in the tree, so paths outside are taken out of it first
    sed "s|$TMP/[^ ]*||g" "$TMP/commands" >"$TMP/elsewhere"
    grep -E '(^|[ >=/])build/' "$TMP/elsewhere"
    return 0
}
finds_nothing 'a build outside has none of its files in the tree' files_in_the_tree
finish
