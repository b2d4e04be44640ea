#!/bin/sh
# outside.sh - `make BUILD=... YARD=...` with folders outside writes nothing into the sources, which may be read-only.
. tests/run/helpers.sh

make -n WERROR=1 BUILD="$TMP/out" YARD="$TMP/yard" 2>"$TMP/err" >"$TMP/commands"
grep -q "$TMP/out/embedded.c" "$TMP/commands" && grep -q "o $TMP/yard " "$TMP/commands"
result $? 'a build outside has all its files there'
grep -E "(^|[ >=/])build/" "$TMP/commands" | grep -v "$TMP" >"$TMP/err"
[ ! -s "$TMP/err" ]
result $? 'a build outside has none of its files in the tree'
finish
