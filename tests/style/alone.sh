#!/bin/sh
# alone.sh - headers that need no others.
#
# This script checks that each header of src compiles alone, so that a file may include it first, and a reader finds in
# it where all its names come from.
#
# To see it fail: in ops.h, do not include cl/shared.h.
. tests/lib/helpers.sh

words='-I. -Isrc -D_GNU_SOURCE= -DCL_TARGET_OPENCL_VERSION=120 -std=c11'
needs_others() { # headers that do not compile alone
    ls src/*/*/*.h >"$TMP/headers"
    enough 50 "$TMP/headers" 'headers'
    while read -r header; do
        # shellcheck disable=SC2086 # options of a compiler
        ${CC:-cc} $words -fsyntax-only -x c "$header" >"$TMP/said" 2>&1 ||
            sed -n "s|.*error|$header alone: error|p" "$TMP/said"
    done <"$TMP/headers"
}
finds_nothing 'each header of src compiles alone' needs_others
finish
