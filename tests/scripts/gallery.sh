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

# The first row of an entry is its step.  W <= F and W <= D, where zero bubble's formulas hold.
awk -v seed="${SEED:-1}" '
    function draw(from, to) {
        return from + int(rand() * (to - from + 1))
    }
    BEGIN { srand(seed) }
    $1 == "entry" {
        mine = $2 ~ /^(gpipe|1f1b|zb-h1|zb-h2)$/
        rows = 0
    }
    mine && ($1 == "entry" || $1 == "make") { print }
    mine && $1 == "row" {
        rows++
        if (rows > 1)
            next
        options = ""
        if (/ with /)
            options = substr($0, index($0, " with ") + 6)
        sub(/ = [0-9.]+( with .*)?$/, "")
        for (i = 0; i < 5; i++) {
            p = draw(2, 8)
            m = draw(2 * p, 3 * p)
            W = draw(1, 4)
            F = draw(W, 6)
            D = draw(W, 6)
            print $0 " with p=" p " m=" m " F=" F " D=" D " W=" W " " options
        }
    }' data/gallery/entries >"$TMP/random"
ENTRIES=$TMP/random data/gallery/gallery.sh check >"$TMP/check"
grep -v '^ok ' "$TMP/check" >"$TMP/err"
grep -q '^20 rows agree' "$TMP/err"
result $? "four pipelines obey their formulas in 20 random sizes (SEED=${SEED:-1})"
finish
