#!/bin/sh
# format.sh - the C has the project's layout, as clang-format 14 makes it, whose other versions differ in details.  No
# line of C, shell or awk has more than 120 characters.
# In strings no letter follows %s, since a name that is replaced in all files at once can leave "%shard".
#
# clang-format leaves comments as they are, since many have tables and pictures: so the width is looked at here.
. tests/run/helpers.sh

# Characters, not bytes: the continuation bytes of UTF-8 do not count.
awk '
    { gsub(/[\200-\277]/, "") }
    length > 120 { print FILENAME ":" FNR ": more than 120 characters" }' \
    src/*.c src/*/*/*.[ch] tests/*/*.[ch] Makefile tests/*.mk tests/*/*.sh tests/*/*.awk src/make/* \
    tutorials/labs/*.sh data/gallery/*.sh data/gallery/*.awk data/gallery/generators/*.awk >"$TMP/wrong"
no_complaints "$TMP/wrong" 'lines have at most 120 characters'

# Here what %s stands for ends with a space or a line's end, is empty, or is a number that its unit follows.
meant='
    details.c      %sstep
    devices.c      %sx
    edit.c         %selementwise
    progress.c     %sallocated
    test_import.c  %slm_head
    test_overlap.c %sis %sms
    test_steps.c   %sdevice
    test_steps_times.c %stensor
    test_stories.c %stable
    test_swap.c    %sdevice %stask %stensor
    test_try.c     %sdevices %sordered
    tokens.c       %sor'
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
    }' src/*.c src/*/*/*.[ch] tests/*/*.[ch] >"$TMP/wrong"
no_complaints "$TMP/wrong" 'no letter follows %s in strings'

case $(clang-format --version 2>/dev/null) in
*' 14.'*) ;;
*) skip_all 'layout' 'clang-format 14 is not installed' ;;
esac

: >"$TMP/wrong"
if ! make --no-print-directory format-check >"$TMP/out" 2>&1; then
    echo 'make format mends this:' >>"$TMP/wrong"
    cat "$TMP/out" >>"$TMP/wrong"
fi
no_complaints "$TMP/wrong" 'layout'
finish
