#!/bin/sh
# papers.sh - the page of six papers: its tables are what data/gallery/gallery.sh prints, its lists are short, and
# HARDWARE= is the link of the machine that it names.  gallery.sh checks the formulas.
. tests/run/helpers.sh

page=tutorials/24-six-papers.md

wc -l data/papers/*.txt | awk '$2 != "total" && $1 > 40 { print $2 " has " $1 " lines" }' >"$TMP/wrong"
no_complaints "$TMP/wrong" 'a list has at most 40 lines'

ls data/papers/*.txt | while read -r list; do
    grep -q "list=$list" data/gallery/entries || echo "no entry has $list"
    grep -q "${list##*/}" $page || echo "$page does not name $list"
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'a list is in the gallery and on the page'

# A list with another time.
sed 's/ 3ms / 5ms /' data/papers/shadow.txt >"$TMP/shadow.txt"
sed "s|data/papers/shadow.txt|$TMP/shadow.txt|" data/gallery/entries >"$TMP/entries"
! ENTRIES=$TMP/entries NAMES=checkmate data/gallery/gallery.sh check >"$TMP/err" &&
    grep -q 'formula 8, simulated 10' "$TMP/err"
result $? 'a list that was changed is found'

# A machine with the links of a point, without latency, is that point; of a profile both links are read.
printf 'link upload = 8e9\nlink download = 8e9 # no latency\n' >"$TMP/eight"
HARDWARE=$TMP/eight NAMES='megatrain checkmate' data/gallery/gallery.sh curves >"$TMP/err" &&
    awk '
        $1 == 8 { $1 = ""; eight = $0 }
        $1 == "yours" { $1 = ""; same += $0 == eight }
        END { exit same != 2 }' "$TMP/err"
result $? 'HARDWARE= with links of 8 GB/s gives the steps of 8 GB/s'

HARDWARE=tests/data/profile.txt NAMES=checkmate data/gallery/gallery.sh curves >"$TMP/err" &&
    grep -q 'yours: 1 up, 2 down$' "$TMP/err" && grep -q '^ *yours  *8.0  *32.0 ' "$TMP/err"
result $? 'HARDWARE= takes a profile, and each link in its direction'

echo 'units = 8' >"$TMP/none"
HARDWARE=$TMP/none NAMES=checkmate data/gallery/gallery.sh curves >"$TMP/out" 2>"$TMP/err"
[ $? -eq 2 ] && grep -q 'has no lines "link upload' "$TMP/err"
result $? 'HARDWARE= without links is refused'

cp $page "$TMP/page" && data/gallery/gallery.sh fill "$TMP/page" >"$TMP/err" 2>&1
diff $page "$TMP/page" >"$TMP/wrong" 2>&1
no_complaints "$TMP/wrong" "tables of the page are what is simulated: data/gallery/gallery.sh fill $page"

NAMES=checkmate data/gallery/gallery.sh papers "$TMP/site" >"$TMP/err" &&
    [ "$(grep -c '<polyline' "$TMP/site/index.html")" -eq 3 ] &&
    [ -s "$TMP/site/checkmate.png" ]
result $? 'the page of pictures has the curves'
finish
