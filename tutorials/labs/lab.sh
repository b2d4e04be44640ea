#!/bin/sh
# lab.sh - prepares and grades the labs of this folder.
#
#     lab.sh prepare N           build/labs/N: a working copy with the lab's starter.patch, and a git history of its own
#     lab.sh grade N [TREE]      builds the copy (or TREE), runs the lab's grader; points and reasons
#     lab.sh report N [TREE]     build/report-N.html: what was predicted, simulated and measured, on one page
#     lab.sh check [N...]        proves the labs: starters, solutions and wrong solutions get the points they should
#     lab.sh rebase COMMIT       makes the patches anew, which applied to that commit: they follow its files to HEAD
#
#     SEED=S      other hidden cases (default 1; of a copy whose task follows from its seed, that seed)
#     JSON=1      one more line, the last one, for autograders: {"scores": {"TITLE": POINTS, ...}, ...}
#     JSON=autolab|gradescope   the same line, as these two programs want it
#
# A lab is a folder NN-name:
#
#     README.md        the story, what to read, the task, hints; its table of points is the grader's
#     starter.patch    what is taken out of the tree, or broken in it, or an empty file to fill
#     grade            parts, in shell, by the functions below; $YARD is the student's program, $REFERENCE the tree's
#     solution.patch   from the starter to a solution, where that is not simply the tree itself
#     wrong/*.patch    from the solution to something wrong
#     FILE.sh          prints FILE, which the student is given: it follows from SEED
#     predict          what the student predicts before any number is shown: see predict.sh
#     lecturer.md      the lecturer's page: what is learnt, answers, wrong answers; no student's copy has it
#
# A student's copy has the README of each lab, and FILE of its own.  What else is in these folders stays here.
#
# A patch of starter or wrong begins with a line `loses: 1 3`: the parts that do not get their points with it.  In
# lecturer.md, a line `| FILE.patch | thought | words |` quotes words of the grader about that patch: `check` looks.
# A grader takes nothing on trust that the student's program says of itself, where the reference can say it.
set -u
LC_ALL=C
export LC_ALL
TOP=$(cd "$(dirname "$0")/../.." && pwd)
LABS=$TOP/tutorials/labs
SEED_SAID=${SEED:-} # the seed that the caller names, if any
SEED=${SEED:-1}
LIMIT=60 # seconds of a student's program

die() { echo "lab: $*" >&2; exit 2; }

folder_of() { # N: the lab's folder
    found=$(ls -d "$LABS/$(printf %02d "${1#0}" 2>/dev/null)"-* 2>/dev/null)
    [ -d "$found" ] || die "there is no lab $1: there are $(all_labs | tr '\n' ' ')"
    echo "$found"
}

all_labs() { # their numbers
    ls "$LABS" | sed -n 's/^0*\([0-9]*\)-.*/\1/p'
}

# ---- for graders ----------------------------------------------------------------------------------------------------

# Of the part that is graded: its points and title, when it began, and why it is wrong ("": it is right).  Of all so
# far:  how many parts, the score and the most that it could be, the numbers of those that were lost, and json, all in
# one.
part() { # POINTS TITLE: begins a part
    end_part
    points=$1
    title=$2
    began=$(now)
    wrong=
    parts=$((parts + 1))
    most=$((most + points))
}

now() { # in ns; where date knows only seconds, it leaves the N
    date +%s%N | sed 's/N$/000000000/'
}

end_part() {
    [ -n "${title-}" ] || return 0
    took=$(awk -v a="$began" -v b="$(now)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
    if [ -z "$wrong" ]; then
        got=$points
        echo "$title: OK (${took}s)"
    else
        got=0
        lost="$lost $parts"
        echo "$title: FAIL (${took}s)"
        echo "$wrong" | sed 's/^/    /'
    fi
    score=$((score + got))
    json="$json${json:+, }\"$title\": $got"
    test_of "$title" "$got" "$points" "$wrong"
    title=
}

test_of() { # TITLE GOT OF WHY: adds to $tests, the list of Gradescope's results.json
    tests="$tests${tests:+, }{\"name\": $(quoted "$1"), \"score\": $2, \"max_score\": $3, \"output\": $(quoted "$4")}"
}

quoted() { # TEXT: as a string of JSON
    printf '%s\n' "$1" | tr '\001-\010\013-\037' '[?*]' | tr -d '\177' | awk '
        {
            gsub(/\\/, "&&")
            gsub(/"/, "\\\"")
            gsub(/\t/, "\\t")
            text = text (NR > 1 ? "\\n" : "") $0
        }
        END { printf "\"%s\"", text }'
}

no() { # WHY: the part gets no points; the first reason counts
    [ -n "$wrong" ] || wrong=$*
}

same() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || no "$1:
got      $2
expected $3"
}

student() { # ARGUMENTS...: runs the student's program; its output is in $TMP/out and $TMP/err, $? is its code
    timeout -k 1 "$LIMIT" "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
    case $code in
    124 | 137) no "yard $*: did not end within $LIMIT s" ;; # timeout's own, and that of a program it had to kill
    esac
    [ $code -lt 128 ] || [ $code -eq 137 ] || no "yard $*: ended by signal $((code - 128)): $(head -n 1 "$TMP/err")"
    return $code
}

must_run() { # the same, where it is wrong to fail
    student "$@" || no "yard $*: exit code $code: $(cat "$TMP/err" "$TMP/out" | grep -E -m 3 '^yard: |error:|^FAILED')"
}

reference() { # ARGUMENTS...: the tree's own program
    (cd "$TOP" && "$REFERENCE" "$@" >"$TMP/reference.out" 2>"$TMP/reference.err" </dev/null)
}

field() { # FILE NAME: a number of one line of JSON, the first of that name
    [ -r "$1" ] && tr ',{' '\n\n' <"$1" | sed -n "s/^ *\"$2\": *\([-0-9.e+]*\).*/\1/p" | head -n 1
}

answer() { # NAME: what answers.txt of the student's tree says, in $given
    given=$(sed -n "s/^ *$1 *=\([^#]*\).*/\1/p" answers.txt 2>/dev/null | head -n 1 | tr -d ' \t\r')
    [ -n "$given" ] || no "answers.txt: $1 is empty"
}

draw() { # LOW HIGH: a whole number, in $drawn; they follow from SEED (Park and Miller 1988)
    state=$((state * 16807 % 2147483647))
    drawn=$(($1 + state % ($2 - $1 + 1)))
}

. "$LABS/predict.sh"

# ---- the commands ---------------------------------------------------------------------------------------------------

# Without what git ignores and what graders use; with objects newer than the sources, so that only changes are
# compiled.
copy_tree() { # TO
    rm -rf "$1"
    mkdir -p "$1/build"
    for item in "$TOP"/* "$TOP"/.clang-format "$TOP"/.gitignore; do
        case ${item##*/} in
        build | yard | yard-*) ;;
        *) cp -Rp "$item" "$1" ;;
        esac
    done
    find "$1"/tutorials/labs/[0-9]* -type f ! -name README.md -exec rm {} +
    find "$1"/tutorials/labs/[0-9]* -type d -empty -delete
    rm -f "$1/tests/scripts/labs.sh"
    for item in src embedded.c embedded.o packages flags; do
        [ ! -e "$TOP/build/$item" ] || cp -Rp "$TOP/build/$item" "$1/build"
    done
    (cd "$1" && make -s build/flags build/packages >/dev/null 2>&1)
    touch "$TMP/now" # one time for all: an object that is older than build/flags would be compiled again
    find "$1/build" -type f -exec touch -r "$TMP/now" {} +
}

apply() { # TREE PATCH
    command -v patch >/dev/null || die "patch is missing: make deps installs it"
    (cd "$1" && sed '1{/^loses:/d;}' "$2" | patch -s -p1 --no-backup-if-mismatch) ||
        die "$2 does not apply: the tree has changed; make it anew"
}

take_back() { # TREE PATCH
    (cd "$1" && sed '1{/^loses:/d;}' "$2" | patch -s -R -p1) || die "$2 does not go back"
}

give() { # LAB TREE: the files that a student is given
    for script in "$1"/*.*.sh; do
        [ ! -f "$script" ] || (cd "$TOP" && SEED=$SEED YARD=$TOP/yard sh "$script") >"$2/$(basename "$script" .sh)" ||
            die "$script fails"
    done
    write_blanks "$1" "$2"
}

forget() { # TREE PATCH: the objects of the sources that the patch changes, and the texts of all in ./yard
    rm -f "$1"/build/embedded.*
    for source in $(sed -n 's|^+++ b/\(src/.*\)\.c$|\1|p' "$2"); do
        rm -f "$1/build/$source.o"
    done
}

build() { # TREE: false, with the compiler's words in $TMP/make
    (cd "$1" && make -j2 >"$TMP/make" 2>&1)
}

# Where the task itself follows from the seed (labs 1 and 4), answers are right for one seed only.  So the copy is graded
# with the seed in its predictions.txt, unless the caller names one.
take_seed_of_copy() { # LAB TREE
    ls "$1"/*.*.sh >/dev/null 2>&1 || return 0
    drawn_with=$(cd "$2" && predicted_for seed)
    case $drawn_with in '' | *[!0-9]*) return ;; esac
    [ -n "$SEED_SAID" ] || SEED=$drawn_with
    if [ "$SEED" = "$drawn_with" ]; then
        echo "Graded with SEED=$SEED, with which this copy was made."
    else
        echo "Note: this copy was made with SEED=$drawn_with, and is graded with SEED=$SEED: its list is another one."
    fi
}

begin_scores() {
    score=0
    most=0
    parts=0
    lost=
    json=
    tests=
    title=
}

grade() { # LAB TREE: sets score, most, lost
    begin_scores
    state=$((SEED * 7919 + 17)) # of draw()
    YARD=$2/yard
    REFERENCE=$TOP/yard
    reference devices || die "OpenCL fails on this machine (it needs /proc and /sys): $(head -n 1 "$TMP/reference.err")"
    if ! build "$2"; then
        echo "build: FAIL"
        sed 's/^/    /' "$TMP/make" | grep -m 3 'error:' || tail -n 3 "$TMP/make"
        all_lost "$1" "your copy does not build: $(cat "$TMP/make")"
    else
        rm -f "$result"
        rm -rf "$TMP/grader"
        mkdir "$TMP/grader"
        ( # the grader's variables and files stay its own
            cd "$2" || exit 2
            TMP=$TMP/grader
            . "$1/grade"
            grade_predictions "$1"
            end_part
            give_result
        )
        [ -f "$result" ] || die "the grader of ${1##*/} has ended before its end"
        . "$result"
        return
    fi
    give_result
}

all_lost() { # LAB WHY: no part gets points
    parts_of "$1" >"$TMP/parts"
    while read -r points title; do
        parts=$((parts + 1))
        most=$((most + points))
        lost="$lost $parts"
        json="$json${json:+, }\"$title\": 0"
        test_of "$title" 0 "$points" "$2"
    done <"$TMP/parts"
    title=
}

parts_of() { # LAB: a line for each part, with its points and title
    sed -n 's/^part \([0-9]*\) "\([^"]*\)".*/\1 \2/p' "$1/grade"
    echo "1 $PREDICTED"
}

give_result() {
    echo "Score: $score/$most"
    case ${JSON-} in
    '') ;;
    autolab) printf '%s\n' "{\"scores\": {$json}}" ;;
    gradescope) printf '%s\n' "{\"score\": $score, \"tests\": [$tests]}" ;;
    *) printf '%s\n' "{\"scores\": {$json}, \"score\": $score, \"of\": $most}" ;;
    esac
    echo "score=$score most=$most lost='$lost'" >"$result"
}

check() { # N: prints "ok" or "not ok"
    lab=$(folder_of "$1")
    name=${lab##*/}
    tree=$TMP/tree$1
    bad= # yes: something gets other points than it should
    copy_tree "$tree"
    apply "$tree" "$lab/starter.patch"
    write_blanks "$lab" "$tree"
    fill_blanks "$tree"
    expect "the starter" "$(sed -n '1s/^loses://p' "$lab/starter.patch")"
    if [ -f "$lab/solution.patch" ]; then
        apply "$tree" "$lab/solution.patch"
    else
        take_back "$tree" "$lab/starter.patch"
    fi
    expect "the solution" ""
    for patch in "$lab"/wrong/*.patch; do
        apply "$tree" "$patch"
        expect "${patch##*/}" "$(sed -n '1s/^loses://p' "$patch")"
        look_up "${patch##*/}"
        take_back "$tree" "$patch"
    done
    rm -rf "$tree"
    [ -z "$bad" ]
}

# A patch becomes a commit on the old tree, git merges that into the new one, and the difference is the new patch.  The
# folder is $TMP/both, the trees to begin from are the commits $old and $new; what they become is $made_old, $made_new.
remake() { # PATCH
    (cd "$TMP/both" && git checkout -q "$old") || exit 1
    apply "$TMP/both" "$1"
    (cd "$TMP/both" && git add -A && git commit -q --allow-empty -m lab && git rev-parse HEAD >"$TMP/made-old" &&
        git checkout -q "$new" && git cherry-pick --allow-empty "$(cat "$TMP/made-old")" >"$TMP/out" 2>&1 &&
        git rev-parse HEAD >"$TMP/made-new") || die "$1: git cannot merge it; make it by hand: $(cat "$TMP/out")"
    made_old=$(cat "$TMP/made-old") made_new=$(cat "$TMP/made-new")
    sed '/^--- /,$d' "$1" >"$TMP/patch"
    (cd "$TMP/both" && git diff "$new" "$made_new") |
        grep -vE '^(diff --git|index|new file mode|deleted file mode) ' >>"$TMP/patch"
    cmp -s "$TMP/patch" "$1" || { cp "$TMP/patch" "$1" && echo "$1"; }
}

rebase() { # LAB OLD NEW
    old=$2 new=$3
    remake "$1/starter.patch"
    if [ -f "$1/solution.patch" ]; then
        old=$made_old new=$made_new
        remake "$1/solution.patch"
        old=$made_old new=$made_new
    fi
    for patch in "$1"/wrong/*.patch; do remake "$patch"; done
}

expect() { # WHAT PARTS: those that lose their points; one in brackets may, by this CPU's vectors or by the clock
    grade "$lab" "$tree" >"$TMP/grade"
    may=$(echo "$2" | tr ' ' '\n' | sed -n 's/^(\([0-9]*\))$/\1/p' | paste -s -d ' ')
    must=$(echo "$2" | sed 's/([0-9]*)//g')
    found=
    for part in $lost; do
        case " $may " in *" $part "*) ;; *) found="$found $part" ;; esac
    done
    if [ "$(echo $found)" = "$(echo $must)" ]; then
        echo "ok - lab $name: $1: $score/$most"
    else
        echo "not ok - lab $name: $1 loses parts '$(echo $lost)', should lose '$(echo $2)'"
        sed 's/^/#   /' "$TMP/grade"
        bad=yes
    fi
}

look_up() { # PATCH: does the grader say what lecturer.md quotes?
    says=$(sed -n "s/^| $1 |.*| \`\(.*\)\` |$/\1/p" "$lab/lecturer.md")
    [ -z "$says" ] || grep -qF -e "$says" "$TMP/grade" && return
    echo "not ok - lab $name: lecturer.md says of $1: '$says'; the grader does not"
    bad=yes
}

TMP=$(mktemp -d)
result=$TMP/result # what a grade has come to
trap 'rm -rf "$TMP"' EXIT
[ $# -ge 1 ] || set -- help
command=$1
shift
case $command in
prepare)
    lab=$(folder_of "${1:?which lab?}") || exit 2
    command -v git >/dev/null || die "git is missing: install it, for the history of your copy"
    tree=$TOP/build/labs/${1#0}
    [ ! -e "$tree" ] || die "build/labs/${1#0} is there already: your work is in it.  Move it away to begin anew"
    [ -x "$TOP/yard" ] || (cd "$TOP" && make -j2) || exit 1
    copy_tree "$tree"
    apply "$tree" "$lab/starter.patch"
    forget "$tree" "$lab/starter.patch"
    give "$lab" "$tree"
    ask_on_terminal "$tree"
    (cd "$tree" && git init -q && git add -A && git -c user.name=lab -c user.email=lab@localhost commit -qm "Lab $1") ||
        die "git fails: your copy has no history"
    echo "build/labs/${1#0} is your copy.  Read tutorials/labs/${lab##*/}/README.md;" \
        "'make grade N=${1#0}' says how far you are."
    left=$(cd "$tree" && blanks_of "$lab")
    [ -z "$left" ] ||
        echo "Predict first: fill in the blanks of build/labs/${1#0}/predictions.txt before you run anything."
    ;;
grade | report)
    lab=$(folder_of "${1:?which lab?}") || exit 2
    tree=${2:-$TOP/build/labs/${1#0}}
    if [ ! -d "$tree" ]; then
        case $TOP in
        */build/labs/*) die "this is your copy: type it in ${TOP%/build/labs/*}, with which the copy is compared" ;;
        esac
    fi
    [ -d "$tree" ] || die "there is no $tree: 'make lab N=${1#0}' makes it"
    tree=$(cd "$tree" && pwd)
    [ -x "$TOP/yard" ] || (cd "$TOP" && make -j2 >/dev/null) || die "the reference does not build"
    if [ $command = grade ]; then
        take_seed_of_copy "$lab" "$tree"
        grade "$lab" "$tree"
    else
        (report "$lab" "$tree" "$TOP/build/report-${1#0}.html") || exit
        echo "wrote build/report-${1#0}.html: hand it in with your copy"
    fi
    ;;
questions) # what the student of this seed is asked, and the list that is given
    lab=$(folder_of "${1:?which lab?}") || exit 2
    write_blanks "$lab" "$TMP"
    cat "$TMP/predictions.txt"
    [ ! -f "$TMP/predict.txt" ] || cat "$TMP/predict.txt"
    ;;
nothing) # for autograde.sh, where no grader came to its end
    lab=$(folder_of "${1:?which lab?}") || exit 2
    begin_scores
    all_lost "$lab" "${2-}"
    give_result
    ;;
check)
    failed=0
    for n in ${*:-$(all_labs)}; do
        check "$n" || failed=1
    done
    exit $failed
    ;;
rebase)
    was=$(cd "$TOP" && git rev-parse "${1:?which commit did the patches apply to?}") || exit 2
    is=$(cd "$TOP" && git rev-parse HEAD) || exit 2
    git clone -q --shared "$TOP" "$TMP/both" || exit 1
    (cd "$TMP/both" && git config user.name lab && git config user.email lab@localhost)
    for lab in "$LABS"/[0-9]*; do rebase "$lab" "$was" "$is"; done
    ;;
*)
    sed -n '3,8s/^# *//p' "$0"
    exit 2
    ;;
esac
