#!/bin/sh
# gallery.sh - data/gallery: the committed step files are those that its script writes; every list is proved; what is
# simulated is what the papers' formulas give.
#
# YARD is the program, TMP an empty folder.  The report is TAP (see run.sh).
set -u
YARD=${YARD:-./yard}
TMP=${TMP:-$(mktemp -d)}
export YARD TMP

. tests/report.sh

mkdir "$TMP/lists" && data/gallery/gallery.sh write "$TMP/lists" 2>"$TMP/err" &&
    for file in "$TMP"/lists/*.txt data/gallery/*.txt; do
        cmp "$TMP/lists/${file##*/}" "data/gallery/${file##*/}" || break
    done >"$TMP/err" 2>&1 && [ ! -s "$TMP/err" ]
result $? 'the step files are what data/gallery/gallery.sh write makes'

data/gallery/gallery.sh check >"$TMP/check"
code=$?
grep -v '^ok ' "$TMP/check" >"$TMP/err"
[ $code -eq 0 ] && [ "$(grep -c '^ok ' "$TMP/check")" -ge "$(grep -c '^  row ' data/gallery/entries)" ]
result $? 'each row of each entry agrees with its formula, and each list is proved'

sed 's/(m+p-1)/(m+p)/' data/gallery/entries >"$TMP/off-by-one"
! ENTRIES=$TMP/off-by-one NAMES=gpipe data/gallery/gallery.sh check >"$TMP/err" && grep -q ' = 36, simulated 33$' "$TMP/err"
result $? 'a formula that is off by one is found'
[ "$failed" -eq 0 ]
