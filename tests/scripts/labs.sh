#!/bin/sh
# labs.sh - the labs' patches still apply to this tree, and their graders are shell.  `make labs-check` builds and
# grades.
#
# TMP is an empty folder.  The report is TAP (see run.sh).
set -u
LC_ALL=C
export LC_ALL
TMP=${TMP:-$(mktemp -d)}
tree=$TMP/tree

. tests/run/report.sh

command -v patch >/dev/null || skip_all "the labs' patches apply" 'patch is not installed; make deps does it'
mkdir -p "$tree"
cp -Rp Makefile README.md cl data src tutorials tests "$tree"

change() { # PATCH [OPTION]: the tree, by a patch whose first line may be "loses: PARTS"
    sed '1{/^loses:/d;}' "$1" | (cd "$tree" && patch -s -p1 --no-backup-if-mismatch ${2-}) >"$TMP/out" 2>&1 && return
    echo "$1 ${2-} does not apply: make it anew"
    sed 's/^/  /' "$TMP/out"
}

look_at_grader() { # LAB
    sh -n "$1/grade" 2>&1
    [ -f "$1/README.md" ] || echo "$1 has no README.md"
    points=$(sed -n 's/^part \([0-9]*\) .*/\1/p' "$1/grade" | awk '{ n += $1 } END { print n }')
    grep -q "^\*\*Time:\*\* .* \*\*Points:\*\* $points\." "$1/README.md" ||
        echo "$1/README.md: the grader gives $points points"
    for patch in "$1"/starter.patch "$1"/wrong/*.patch; do
        sed -n '1p' "$patch" | grep -q '^loses: [(0-9]' || echo "$patch: its first line does not say what it loses"
    done
}

look_for_answer() { # LAB: the second line of a starter may name, as "hides: PATTERN", what would tell it elsewhere
    hidden=$(sed -n '2s/^hides: //p' "$1/starter.patch")
    [ -n "$hidden" ] || return
    file=$(sed -n 's|^+++ b/.*/||p' "$1/starter.patch" | head -n 1)
    grep -rn "$hidden" "$tree"/src/*/*/"$file"
}

apply_patches() { # LAB: starter, solution, what is wrong with that; and back to the tree as it was
    change "$1/starter.patch"
    look_for_answer "$1"
    if [ -f "$1/solution.patch" ]; then
        change "$1/solution.patch"
    else
        change "$1/starter.patch" -R
    fi
    for wrong in "$1"/wrong/*.patch; do
        change "$wrong"
        change "$wrong" -R
    done
    [ -f "$1/solution.patch" ] || return
    change "$1/solution.patch" -R
    change "$1/starter.patch" -R
}

for lab in tutorials/labs/[0-9]*; do
    look_at_grader "$lab" >"$TMP/wrong"
    apply_patches "$lab" >>"$TMP/wrong"
    no_complaints "$TMP/wrong" "$lab"
done
for item in cl data src tests; do diff -r "$item" "$tree/$item"; done | sed "s/^/# left behind: /"
finish
