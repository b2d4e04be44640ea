#!/bin/sh
# format.sh - the layout of the sources, in three checks:
#
#     no line of C, OpenCL C, Python, shell or awk has more than 120 characters.  clang-format leaves comments as they
#         are, since many have tables and pictures, and kernels altogether: so the width is looked at here.
#     in strings no letter follows %s, since a name that is replaced in all files at once can leave "%shard".
#     the C is as clang-format 14 would write it.  Other versions differ in details, and are not asked.
#
# A mistake is printed as FILE:LINE with what is wrong there.
. tests/run/helpers.sh

# ---- width ----------------------------------------------------------------------------------------------------------

long_lines() { # FILE...: characters count, not bytes: the continuation bytes of UTF-8 are taken away
    awk '
        { gsub(/[\200-\277]/, "") }
        length > 120 { print FILENAME ":" FNR ": more than 120 characters" }' "$@"
}
finds_nothing 'lines have at most 120 characters' \
    long_lines src/*.c src/*/*/*.[ch] tests/support/*.[ch] tests/unit/*/*.c cl/*.cl cl/*.h src/*/*/*.py \
    tests/*/*.py tutorials/*/*.py data/*/*.py Makefile tests/*.mk tests/*/*.sh tests/*/*.awk src/make/* \
    tutorials/labs/*.sh data/gallery/*.sh data/gallery/*.awk data/gallery/generators/*.awk

# ---- letters behind %s ----------------------------------------------------------------------------------------------

# FILE WORD...: there what %s stands for ends with a space or a line's end, is empty, or is a number that its unit
# follows.
meant='
    details.c      %sstep
    devices.c      %sx
    progress.c     %sallocated
    test_import.c  %slm_head
    test_overlap.c %sis %sms
    test_lists.c   %sdevice
    test_simulate_times.c %stensor
    test_stories.c %stable
    test_swap.c    %sdevice
    test_swap_budgets.c %stask %stensor
    test_try.c     %sdevices %sordered
    tokens.c       %sor'
letters_behind_names() { # FILE...
    awk -v meant="$meant" '
        BEGIN {
            n = split(meant, word)
            for (i = 1; i <= n; i++)
                if (word[i] ~ /^%/)
                    is_meant[file, word[i]] = 1
                else
                    file = word[i]
        }
        FNR == 1 {
            file = FILENAME
            sub(/.*\//, "", file)
        }
        /"/ {
            rest = $0
            while (match(rest, /%s[A-Za-z_]+/)) {
                found = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (!((file, found) in is_meant))
                    print FILENAME ":" FNR ": " found
            }
        }' "$@"
}
finds_nothing 'no letter follows %s in strings' letters_behind_names src/*.c src/*/*/*.[ch] tests/support/*.[ch] \
    tests/unit/*/*.c

# ---- layout ---------------------------------------------------------------------------------------------------------

other_layout() {
    make --no-print-directory format-check >"$TMP/out" 2>&1 && return
    echo 'make format mends this:'
    cat "$TMP/out"
}
case $(clang-format --version 2>/dev/null) in
*' 14.'*) finds_nothing 'layout' other_layout ;;
*) skip 'layout' 'clang-format 14 is not installed' ;;
esac
finish
