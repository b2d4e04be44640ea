#!/bin/sh
# gallery.sh - data/gallery: the committed step files are those that its script writes; every list is proved; what is
# simulated is what the papers' formulas give.
. tests/run/helpers.sh

mkdir "$TMP/lists" && data/gallery/gallery.sh write "$TMP/lists" 2>"$TMP/err" &&
    for file in "$TMP"/lists/*.txt data/gallery/*.txt; do
        cmp "$TMP/lists/${file##*/}" "data/gallery/${file##*/}" || break
    done >"$TMP/err" 2>&1 && [ ! -s "$TMP/err" ]
result $? 'the step files are what data/gallery/gallery.sh write makes'

if command -v python3 >/dev/null; then
    for kind in Half Min; do
        python3 data/pytorch/v_schedules.py $kind 4 8 | cmp - data/pytorch/V-$kind.4.8.csv
    done >"$TMP/err" 2>&1 && [ ! -s "$TMP/err" ]
    result $? 'the schedules of V-Half and V-Min are what data/pytorch/v_schedules.py prints'
else
    skip 'v_schedules.py prints V-Half and V-Min' 'python3 is not installed'
fi

data/gallery/gallery.sh check >"$TMP/check"
code=$?
grep -v '^ok ' "$TMP/check" >"$TMP/err"
[ $code -eq 0 ] && [ "$(grep -c '^ok ' "$TMP/check")" -ge "$(grep -c '^  row ' data/gallery/entries)" ]
result $? 'each row of each entry agrees with its formula, and each list is proved'

sed 's/(m+p-1)/(m+p)/' data/gallery/entries >"$TMP/off-by-one"
! ENTRIES=$TMP/off-by-one NAMES=gpipe data/gallery/gallery.sh check >"$TMP/err" &&
    grep -q ' = 36, simulated 33$' "$TMP/err"
result $? 'a formula that is off by one is found'

awk -v seed="${SEED:-1}" -f tests/scripts/gallery_random.awk data/gallery/entries >"$TMP/random"
ENTRIES=$TMP/random data/gallery/gallery.sh check >"$TMP/check"
grep -v '^ok ' "$TMP/check" >"$TMP/err"
grep -q '^20 rows agree' "$TMP/err"
result $? "four pipelines obey their formulas in 20 random sizes (SEED=${SEED:-1})"
finish
