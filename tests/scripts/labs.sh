#!/bin/sh
# labs.sh - the parts that each lab is made of.
#
# This script checks that the labs' patches still apply to this tree and leave valid C, that their graders are valid
# shell, and that each lab has a card, questions to predict that differ by seed, a report, and the JSON of autograders.
# `make labs-check` also builds and grades.
#
#     ok 2 - tutorials/labs/02-edges: its patches apply, and its grader is shell
#     not ok 3 - tutorials/labs/03-clock: its patches apply, and its grader is shell
#     #   tutorials/labs/03-clock/wrong/late.patch  does not apply: make it anew
#
# Each lab has two checks: one of what it is made of, one of its card and its questions.  Functions look_at_... print a
# line for each mistake.  Then lab 4, whose copy has nothing to compile, goes through all that a student does.  Each
# group is a function; the end of this file calls them.  A new lab needs nothing here: it is found by its folder's
# number.
#
# To see it fail: in a lab's starter.patch, change a line that begins with a blank.
. tests/lib/helpers.sh
. tests/lib/copy.sh
. tutorials/labs/lib/copies.sh

tree=$TMP/tree # to which patches are applied, one after another
copy=$TMP/copy # a student's copy of lab 4
flags=$(cat "${BUILD:-build}/flags")

# ---- patches and graders ---------------------------------------------------------------------------------------------

change() { # PATCH [OPTION]: changes the tree
    # shellcheck disable=SC2086 # no word, or one
    if without_marks "$1" | (cd "$tree" && patch -s -p1 --no-backup-if-mismatch ${2-}) >"$TMP/out" 2>&1; then
        return
    fi
    echo "$1 ${2-} does not apply: make it anew"
    sed 's/^/  /' "$TMP/out"
}

# With the flags that the build has written down; warnings do not count.
compile() { # PATCH: the files of src that it has changed are C
    # shellcheck disable=SC2013 # a path in each line
    for file in $(sed -n 's|^+++ b/\(src/.*\.c\)$|\1|p' "$1"); do
        if (cd "$tree" && $flags -w -fsyntax-only "$file") >"$TMP/out" 2>&1; then
            continue
        fi
        echo "$1: $file does not compile: make the patch anew"
        sed 's/^/  /' "$TMP/out" | head -n 5
    done
}

# The line  part 3 'edges within the step' ...  of a grader gives 3 points, and predicting gives 1.
points_of() { # GRADER
    awk '
        $1 == "part" { points += $2 }
        END { print points + 1 }' "$1"
}

look_at_grader() { # LAB
    sh -n "$1/grade" 2>&1
    [ -f "$1/README.md" ] || echo "$1 has no README.md"
    points=$(points_of "$1/grade")
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

look_at_patches() { # LAB: starter, solution, what is wrong with that; and back to the tree as it was
    change "$1/starter.patch"
    compile "$1/starter.patch"
    look_for_answer "$1"
    if [ -f "$1/solution.patch" ]; then
        change "$1/solution.patch"
        compile "$1/solution.patch"
    else
        change "$1/starter.patch" -R
    fi
    for wrong in "$1"/wrong/*.patch; do
        change "$wrong"
        compile "$wrong"
        change "$wrong" -R
    done
    [ -f "$1/solution.patch" ] || return
    change "$1/solution.patch" -R
    change "$1/starter.patch" -R
}

left_behind() { # what patches that were taken back have left in the tree
    for item in cl data src tests; do
        diff -r "$item" "$tree/$item"
    done
    return 0
}

patches_and_graders() {
    for lab in tutorials/labs/[0-9]*; do
        look_at_grader "$lab" >"$TMP/wrong"
        look_at_patches "$lab" >>"$TMP/wrong"
        no_complaints "$TMP/wrong" "$lab: its patches apply, and its grader is shell"
    done
    finds_nothing 'all patches can be taken back' left_behind
}

# ---- the lecturer's card, and what is predicted ----------------------------------------------------------------------

look_at_card() { # LAB: an answer for each question of "Think"; three wrong answers that are patches
    if [ ! -f "$1/lecturer.md" ]; then
        echo "$1 has no lecturer.md"
        return
    fi
    look_at_answers "$1"
    look_at_wrong_answers "$1"
    grep -q '^\*\*Afterwards you can\*\* ' "$1/README.md" || echo "$1/README.md does not say what is learnt"
}

look_at_answers() { # LAB: each has points
    card=$1/lecturer.md
    asked=$(sed -n '/^## Think/,$s/^[0-9]*\. .*/x/p' "$1/README.md" | wc -l)
    answered=$(sed -n '/^## The questions/,/^## The commonest/s/^[0-9]*\. .*/x/p' "$card" | wc -l)
    with_points=$(grep -c '^   \*Points: ' "$card")
    [ "$asked" -gt 0 ] && [ "$asked" -eq "$answered" ] || echo "$1: $asked questions to think about, $answered answers"
    [ "$with_points" -ge "$asked" ] || echo "$card: an answer without points"
}

# A row  | one-reader.patch | Only the last reader counts. | `within the step: FAIL` |  names wrong/one-reader.patch.
look_at_wrong_answers() { # LAB
    card=$1/lecturer.md
    sed -n 's/^| \([a-z0-9-]*\.patch\) | .* | `.*` |$/\1/p' "$card" >"$TMP/named"
    [ "$(sort -u "$TMP/named" | wc -l)" -eq 3 ] || echo "$card does not name three wrong answers"
    while read -r patch; do
        [ -f "$1/wrong/$patch" ] || echo "$card: there is no wrong/$patch"
    done <"$TMP/named"
}

look_at_questions() { # LAB NUMBER: two at least; a seed asks the same twice, and four seeds ask three ways at least
    sh -n "$1/predict" 2>&1
    for seed in 1 1 2 3 4; do # a line of $TMP/sums each
        SEED=$seed tutorials/labs/lab.sh questions "$2" >"$TMP/asked" 2>&1 || cat "$TMP/asked"
        sed '/^seed = /d' "$TMP/asked" | cksum
    done >"$TMP/sums"
    [ "$(grep -c '^[a-z_0-9]* =$' "$TMP/asked")" -ge 2 ] || echo "$1 asks for fewer than two numbers"
    [ "$(sed -n 1p "$TMP/sums")" = "$(sed -n 2p "$TMP/sums")" ] || echo "$1: one seed, other questions"
    [ "$(sort -u "$TMP/sums" | wc -l)" -ge 3 ] || echo "$1: four seeds have hardly any different questions"
}

cards_and_questions() {
    for lab in tutorials/labs/[0-9]*; do
        look_at_card "$lab" >"$TMP/wrong"
        lab_name=${lab##*/}
        two_digits=${lab_name%%-*}
        look_at_questions "$lab" "${two_digits#0}" >>"$TMP/wrong"
        no_complaints "$TMP/wrong" "$lab: its card answers all questions, and its predictions differ by seed"
    done
}

# ---- usage -----------------------------------------------------------------------------------------------------------

shows_usage() { # PROGRAM: without arguments it prints the comment at its head, no line of shell behind that, and ends
    sh "tutorials/labs/$1" >"$TMP/err" 2>&1
    [ $? -eq 2 ] && grep -q "^${1#lib/} " "$TMP/err" && lacks '^set -u' "$TMP/err"
}

usage() {
    for program in lab.sh lib/board.sh lib/autograde.sh; do
        check "${program#lib/} without arguments shows its usage" shows_usage $program
    done
    tutorials/labs/lab.sh check 99 >"$TMP/err" 2>&1
    exit_code 'a lab that is not there is not proved' $? 2
    same 'a lab that is not there is refused in one sentence' "$(cut -d : -f 1-2 "$TMP/err")" 'lab: there is no lab 99'
}

# ---- a copy of lab 4: predictions ------------------------------------------------------------------------------------

make_copy() { # it has nothing to compile; the functions below change it, one after another
    mkdir -p "$copy/src" "$copy/data/gallery" "$copy/cl"
    cp "$YARD" "$copy/yard"
    printf 'all:\n' >"$copy/Makefile"
}

predictions() {
    SEED=5 tutorials/labs/lab.sh questions 4 | sed '/^measured_ms\|^device /,$d' >"$copy/predictions.txt"
    tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/blank" 2>&1
    check 'blank predictions are named' \
        grep -q 'predictions.txt has no number for: waits period_ms step_ms' "$TMP/blank"
    check 'blank predictions get no point' grep -qx 'Score: 0/13' "$TMP/blank"
    tutorials/labs/lab.sh report 4 "$copy" >"$TMP/err" 2>&1
    exit_code 'no report is written without predictions' $? 2
    check 'a report without predictions is refused with a sentence' grep -q '^lab: predict first: ' "$TMP/err"
    sed 's/ =$/ = no idea/' "$copy/predictions.txt" >"$TMP/words"
    cp "$copy/predictions.txt" "$TMP/blanks"
    cp "$TMP/words" "$copy/predictions.txt"
    tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/blank" 2>&1
    check 'predictions that are words get no point' grep -qx 'Score: 0/13' "$TMP/blank"
    sed 's/ =$/ = 7.5/' "$TMP/blanks" >"$copy/predictions.txt"
    tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/filled" 2>&1
    check 'a prediction gets its point though its number is wrong' grep -qx 'Score: 1/13' "$TMP/filled"
}

# ---- a copy of lab 4: the seed ---------------------------------------------------------------------------------------

right_parts() { # FILE: titles of the parts that got their points
    sed -n 's/: OK ([0-9.]*s)$//p' "$1"
}

# In one list of lab 4 nothing is lost, and that is another one for seed 5 than for seed 1.  So an answer that says so
# of every list gets the points of one list only, and which one tells the seed.
seeds_of_a_copy() {
    for list in 1 2 3 4 5 6 7 8; do
        printf 'list%d_consumer = none\nlist%d_producer = none\n' $list $list
    done >"$copy/answers.txt"
    for given in 1 5 ''; do
        SEED=$given tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/graded" 2>&1
        right_parts "$TMP/graded" >"$TMP/right$given"
    done
    check 'the hidden cases of lab 4 follow from the seed' differ "$TMP/right1" "$TMP/right5"
    same 'one list of lab 4 and predicting get their points' "$(wc -l <"$TMP/right5")" 2
    check 'without a seed, a lab that is drawn takes the seed of its copy' cmp "$TMP/right" "$TMP/right5"
    JSON=plain tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/graded" 2>&1
    right_parts "$TMP/graded" >"$TMP/right"
    check 'an autograder takes the seed of the copy too' cmp "$TMP/right" "$TMP/right5"
    rm "$copy/answers.txt"
    SEED=6 tutorials/labs/lab.sh grade 4 "$copy" >"$TMP/other" 2>&1
    check 'grading a copy with another seed than its own is noted' grep -q '^Note: .* SEED=5, .* SEED=6' "$TMP/other"
}

# ---- a copy of lab 4: the report -------------------------------------------------------------------------------------

report() {
    page=$TMP/report.html
    tutorials/labs/lab.sh report 4 "$copy" "$page" >"$TMP/err" 2>&1
    exit_code 'the report is written' $? 0
    same 'the report has a row for each question' "$(grep -c '^<tr><td>.*<td>7.5<td>' "$page")" 3
    digits='[0-9][0-9.]*'
    same 'the report: two numbers are simulated by both programs' \
        "$(grep -cE "<td>7.5<td>($digits)<td>\\1<td>\$" "$page")" 2
    same 'the report: one number is measured' "$(grep -cE "<td>7.5<td><td><td>$digits\$" "$page")" 1
    same 'the report says seed and versions' "$(grep -cE '^<p>Seed 5\. |sources [0-9]+-[0-9]+' "$page")" 2
    check 'the report has a picture' grep -q 'src="data:image/png;base64,iVBORw0KGgo' "$page"
}

# ---- the JSON of autograders -----------------------------------------------------------------------------------------

json() {
    JSON=gradescope tutorials/labs/lab.sh nothing 4 'a "quoted" \ word	tab
and a line' | tail -n 1 >"$TMP/gradescope.json"
    JSON=autolab tutorials/labs/lab.sh nothing 4 '' | tail -n 1 >"$TMP/autolab.json"
    JSON=gradescope tutorials/labs/lab.sh grade 4 "$copy" | tail -n 1 >"$TMP/graded.json"
    if command -v python3 >/dev/null; then
        finds_nothing "the JSON has Gradescope's and Autolab's form" \
            python3 -B tests/scripts/check_forms.py "$TMP/gradescope.json" "$TMP/autolab.json" "$TMP/graded.json"
    else
        skip "the JSON has Gradescope's and Autolab's form" 'python3 is not installed'
    fi
}

# ---- all of them -----------------------------------------------------------------------------------------------------

command -v patch >/dev/null || skip_all "the labs' patches apply" 'patch is not installed; make deps does it'
copy_files "$tree" Makefile README.md cl data src tutorials tests
patches_and_graders
cards_and_questions
usage
make_copy
predictions
seeds_of_a_copy
report
json
finish
