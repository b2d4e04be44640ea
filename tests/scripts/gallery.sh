#!/bin/sh
# gallery.sh - the schedules of data/gallery.
#
# This script checks that the committed step files are those that src/gallery/gallery.sh writes, that every list is
# proved, and that what is simulated agrees with the papers' formulas.
#
# To see it fail: change a number in data/gallery/gpipe.txt.
. tests/lib/helpers.sh

other_step_files() {
    mkdir "$TMP/lists" && src/gallery/gallery.sh write "$TMP/lists" || echo 'gallery.sh write fails'
    for file in "$TMP"/lists/*.txt data/gallery/*.txt; do
        cmp "$TMP/lists/${file##*/}" "data/gallery/${file##*/}"
    done
    return 0
}
finds_nothing 'the step files are what src/gallery/gallery.sh write makes' other_step_files

other_schedules() {
    for kind in Half Min; do
        python3 tests/scripts/v_schedules.py "$kind" 4 8 | cmp - "data/pytorch/V-$kind.4.8.csv"
    done
}
if command -v python3 >/dev/null; then
    finds_nothing 'the schedules of V-Half and V-Min are what tests/scripts/v_schedules.py prints' other_schedules
else
    skip 'v_schedules.py prints V-Half and V-Min' 'python3 is not installed'
fi

gallery_check() { # ENTRIES: how gallery.sh checks them; lines that are not "ok ..." go to $TMP/err
    ENTRIES=$1 src/gallery/gallery.sh check >"$TMP/check"
    code=$?
    grep -v '^ok ' "$TMP/check" >"$TMP/err"
    return $code
}
check 'each row of each entry agrees with its formula, and each list is proved' gallery_check data/gallery/entries
rows=$(grep -c '^  row ' data/gallery/entries)
agreeing=$(grep -c '^ok ' "$TMP/check")
check "no row is left out" [ "$agreeing" -ge "$rows" ]

sed 's/(m+p-1)/(m+p)/' data/gallery/entries >"$TMP/off-by-one"
NAMES=gpipe gallery_check "$TMP/off-by-one"
check 'a formula that is off by one is refused' [ $? -ne 0 ]
# The entry gpipe has m=8, p=4, F=1 and B=2: (m+p-1)*(F+B) is 33, and (m+p)*(F+B) is 36.
check 'a formula that is off by one is shown with what is simulated' grep -q ' = 36, simulated 33$' "$TMP/err"

awk -v seed="${SEED:-1}" -f tests/scripts/gallery_random.awk data/gallery/entries >"$TMP/random"
name="four pipelines in random sizes (SEED=${SEED:-1})"
check "$name obey their formulas" gallery_check "$TMP/random"
check "$name: there are 20" grep -q '^20 rows agree' "$TMP/err"
finish
