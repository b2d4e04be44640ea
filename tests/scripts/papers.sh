#!/bin/sh
# papers.sh - the page of six papers.
#
# This script checks that its tables are what src/gallery/gallery.sh prints, that its lists are short, and that
# HARDWARE= gives the links of the machine that it names.  gallery.sh checks the formulas.
#
# To see it fail: in data/papers/shadow.txt, give a task another time.
. tests/lib/helpers.sh

page=tutorials/28-six-papers.md

long_lists() {
    for list in data/papers/*.txt; do
        lines=$(wc -l <"$list")
        [ "$lines" -le 40 ] || echo "$list has $lines lines"
    done
}
finds_nothing 'each list has at most 40 lines' long_lists

unused_lists() {
    for list in data/papers/*.txt; do
        grep -q "list=$list" data/gallery/entries || echo "no entry has $list"
        grep -q "${list##*/}" "$page" || echo "$page does not name $list"
    done
}
finds_nothing 'each list is in the gallery and on the page' unused_lists

# A list with another time.
sed 's/ 3ms / 5ms /' data/papers/shadow.txt >"$TMP/shadow.txt"
sed "s|data/papers/shadow.txt|$TMP/shadow.txt|" data/gallery/entries >"$TMP/entries"
ENTRIES=$TMP/entries NAMES=checkmate src/gallery/gallery.sh check >"$TMP/err"
check 'a list whose times were changed is refused' [ $? -ne 0 ]
check 'a list whose times were changed no longer agrees with its formula' \
    grep -q 'formula 8, simulated 10' "$TMP/err"

# A machine with the links of a point, without latency, is that point; of a profile both links are read.
printf 'link upload = 8e9\nlink download = 8e9 # no latency\n' >"$TMP/eight"
HARDWARE=$TMP/eight NAMES='megatrain checkmate' src/gallery/gallery.sh curves >"$TMP/err"
exit_code 'HARDWARE= with links of 8 GB/s is taken' $? 0
row_of() { # POINT: the rows of the curves at that point, without its name
    awk -v point="$1" '
        $1 == point {
            $1 = ""
            print
        }' "$TMP/err"
}
row_of 8 >"$TMP/rows-of-8"
row_of yours >"$TMP/rows-of-yours"
same 'HARDWARE= has a row in both curves' "$(wc -l <"$TMP/rows-of-yours")" 2
check 'HARDWARE= with links of 8 GB/s gives the steps of 8 GB/s' cmp "$TMP/rows-of-8" "$TMP/rows-of-yours"

HARDWARE=tests/data/profile.txt NAMES=checkmate src/gallery/gallery.sh curves >"$TMP/err"
exit_code 'HARDWARE= takes a profile' $? 0
check 'HARDWARE= says what the links of a profile are' grep -q 'yours: 1 up, 2 down$' "$TMP/err"
check 'HARDWARE= takes each link of a profile in its direction' grep -q '^ *yours  *8.0  *32.0 ' "$TMP/err"

no_curves() { # WHAT TEXT CODE: in place of curves one sentence with that text, and that exit code
    NAMES=checkmate src/gallery/gallery.sh curves >"$TMP/out" 2>"$TMP/err"
    code=$?
    exit_code "$1: the exit code is $3" $code "$3"
    check "$1: it says '$2'" grep -q "$2" "$TMP/err"
    same "$1: it says one sentence" "$(wc -l <"$TMP/err")" 1
    check "$1: there are no curves" [ ! -s "$TMP/out" ]
}

HARDWARE=$TMP/nowhere no_curves 'HARDWARE= that is not there is refused' 'there is no file' 2
echo 'units = 8' >"$TMP/none"
HARDWARE=$TMP/none no_curves 'HARDWARE= without links is refused' 'has no lines "link upload' 2
sed 's/upload = 8e9/upload = nan/' "$TMP/eight" >"$TMP/nan"
HARDWARE=$TMP/nan no_curves 'HARDWARE= with a rate that is no number is refused' 'has no lines "link upload' 2
sed 's/download = 8e9/download = 1e300/' "$TMP/eight" >"$TMP/huge"
HARDWARE=$TMP/huge no_curves 'a rate that no list may have is not taken for a budget' \
    'expected a rate in bytes per second' 1
ENTRIES=$TMP/nowhere no_curves 'ENTRIES= that is not there is refused' 'there is no file' 2
sed "s|data/papers/shadow.txt|$TMP/nowhere|" data/gallery/entries >"$TMP/entries"
ENTRIES=$TMP/entries no_curves 'a list that is not there is not taken for a budget' 'no step file' 1
head -c 300 data/papers/shadow.txt >"$TMP/shadow.txt"
sed "s|data/papers/shadow.txt|$TMP/shadow.txt|" data/gallery/entries >"$TMP/entries"
ENTRIES=$TMP/entries no_curves 'a damaged list is not taken for a budget' 'line [0-9]*: ' 1

# The least budget of this list is 64 MiB.
sed 's/--device-mem 160M/--device-mem 60M/' data/gallery/entries >"$TMP/entries"
ENTRIES=$TMP/entries NAMES=megatrain-options src/gallery/gallery.sh curves >"$TMP/err" 2>&1
exit_code 'curves with a budget that is refused are drawn' $? 0
same 'a budget that is refused is a -, at each of 8 points' "$(grep -c ' -$' "$TMP/err")" 8

# The copy has a 7 in place of each digit of the tables, so that the tables cannot agree unless they are filled.
sed '/^<!-- curves: /,/^```$/!{/^ *[0-9][0-9]*  /s/[0-9]/7/g;}' $page >"$TMP/page"
check 'the copy of the page has other tables' differ $page "$TMP/page"
src/gallery/gallery.sh fill "$TMP/page" >"$TMP/err" 2>&1
exit_code 'src/gallery/gallery.sh fill fills the tables of the copy' $? 0
finds_nothing "the tables of the page are what is simulated: src/gallery/gallery.sh fill $page" diff $page "$TMP/page"

NAMES=checkmate src/gallery/gallery.sh papers "$TMP/site" >"$TMP/err"
exit_code 'the page of pictures is written' $? 0
same 'the page of pictures has the three curves' "$(grep -c '<polyline' "$TMP/site/index.html")" 3
check 'the page of pictures has the picture' [ -s "$TMP/site/checkmate.png" ]
finish
