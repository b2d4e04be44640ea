#!/bin/sh
# labs.sh - the labs' patches still apply to this tree, and their graders are shell.  `make labs-check` builds and grades.
set -u
LC_ALL=C
export LC_ALL
TMP=${TMP:-$(mktemp -d)}
tree=$TMP/tree number=0 failed=0
if ! command -v patch >/dev/null; then
    echo "ok 1 - the labs' patches apply # SKIP patch is not installed; make deps does it"
    exit 0
fi
mkdir -p "$tree"
cp -Rp Makefile README.md cl data src tutorials tests "$tree"

change() { # PATCH [OPTIONS]
    sed '1{/^loses:/d;}' "$1" | (cd "$tree" && patch -s -p1 --no-backup-if-mismatch $2) >"$TMP/out" 2>&1 ||
        { echo "$1 $2 does not apply: make it anew"; sed 's/^/  /' "$TMP/out"; }
}

for lab in tutorials/labs/[0-9]*; do
    {
        sh -n "$lab/grade" 2>&1
        [ -f "$lab/README.md" ] || echo "$lab has no README.md"
        points=$(sed -n 's/^part \([0-9]*\) .*/\1/p' "$lab/grade" | awk '{ n += $1 } END { print n }')
        grep -q "^\*\*Time:\*\* .* \*\*Points:\*\* $points\." "$lab/README.md" || echo "$lab/README.md: the grader gives $points points"
        change "$lab/starter.patch" ''
        hidden=$(sed -n '2s/^hides: //p' "$lab/starter.patch") # what would tell the answer, elsewhere in the sources
        [ -z "$hidden" ] || grep -rn "$hidden" "$tree"/src/*/*/$(sed -n 's|^+++ b/.*/||p' "$lab/starter.patch" | head -n 1)
        for patch in "$lab"/starter.patch "$lab"/wrong/*.patch; do
            sed -n '1p' "$patch" | grep -q '^loses: [(0-9]' || echo "$patch: its first line does not say what it loses"
        done
        if [ -f "$lab/solution.patch" ]; then change "$lab/solution.patch" ''; else change "$lab/starter.patch" -R; fi
        for wrong in "$lab"/wrong/*.patch; do
            change "$wrong" ''
            change "$wrong" -R
        done
        [ ! -f "$lab/solution.patch" ] || { change "$lab/solution.patch" -R; change "$lab/starter.patch" -R; }
    } >"$TMP/wrong"
    number=$((number + 1))
    if [ -s "$TMP/wrong" ]; then
        failed=1
        echo "not ok $number - $lab"
        sed 's/^/#   /' "$TMP/wrong"
    else
        echo "ok $number - $lab"
    fi
done
for item in cl data src tests; do diff -r "$item" "$tree/$item"; done | sed "s/^/# left behind: /"
echo "1..$number"
exit $failed
