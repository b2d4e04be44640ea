#!/bin/sh
# format.sh - the layout of the sources.
#
# This script makes three checks:
#
#     No line of C, OpenCL C, Python, shell or awk has more than 120 characters.  clang-format leaves comments as they
#         are, since many have tables and pictures, and all kernels: so this script looks at the width.
#     Titles of sections, such as "---- width ----", end at column 120.
#     The C is as clang-format 14 would write it.  Other versions differ in details, and are not asked.
#
# A mistake is printed as FILE:LINE with what is wrong there.
#
# To see it fail: write a line of 121 characters.
. tests/lib/helpers.sh

sources="src/*.c src/*/*/*.[ch] tests/support/*.[ch] tests/unit/*/*.c cl/*.cl cl/*.h src/*/*.py
    src/*/*/*.py tests/*/*.py tutorials/*/*.py Makefile tests/*.mk tests/*/*.sh tests/*/*.awk src/make/*
    tutorials/labs/*.sh tutorials/labs/lib/*.sh src/gallery/*.sh src/gallery/*.awk src/gallery/*/*.awk"

# ---- width -----------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # patterns of files
finds_nothing 'lines have at most 120 characters' awk -v most=120 -f tests/style/long_lines.awk $sources

# shellcheck disable=SC2086 # patterns of files
finds_nothing 'titles of sections end at column 120' awk -v margin=120 -f tests/style/banners.awk $sources

# ---- layout ----------------------------------------------------------------------------------------------------------

other_layout() {
    make --no-print-directory format-check >"$TMP/out" 2>&1 && return
    echo 'make format mends this:'
    cat "$TMP/out"
}
case $(clang-format --version 2>/dev/null) in
*' 14.'*) finds_nothing 'the C is as clang-format 14 writes it' other_layout ;;
*) skip 'the C is as clang-format 14 writes it' 'clang-format 14 is not installed' ;;
esac
finish
