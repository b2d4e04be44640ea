#!/bin/sh
# lab.sh - prepares and grades the labs of this folder.
#
#     lab.sh prepare N               build/labs/N: a working copy with the lab's starter.patch and a git history
#     lab.sh grade N [TREE]          builds the copy (or TREE), runs the lab's grader, prints points and reasons
#     lab.sh report N [TREE [PAGE]]  writes build/report-N.html (or PAGE): numbers predicted, simulated and measured
#     lab.sh questions N             prints what the student is asked before any number is shown, for SEED
#     lab.sh check [N...]            proves the labs N, or all: does each starter, solution and wrong solution get the
#                                    points that it should?
#     lab.sh nothing N [WHY]         prints that no part has points: for autograders, where no grader comes to its end
#     lab.sh rebase COMMIT           makes the patches anew, which applied to that commit: they follow its files to HEAD
#     lab.sh                         prints this; so does any other word, and the exit code is 2
#
#     SEED=S                         other hidden cases (default 1; of a copy whose task follows from a seed, that one)
#     JSON=1                         a last line for autograders: {"scores": {"TITLE": POINTS, ...}, ...}
#     JSON=autolab, JSON=gradescope  the same line, as these two programs want it
#
# For example:
#
#     $ tutorials/labs/lab.sh prepare 2 && tutorials/labs/lab.sh grade 2
#     within the step: FAIL (0.2s)
#         build/case-1.txt in your copy is a list: --print, within:
#         got      task 3 use waits for: none
#         expected task 3 use waits for: 0
#     ...
#     Score: 1/13

# lib has what lab.sh reads, the programs of autograders and of the league, and the league's rules.  A lab is a folder
# NN-name:
#
#     README.md        the story, what to read, the task, hints; its table of points is the grader's
#     starter.patch    what is taken out of the tree, or broken in it, or an empty file to fill
#     grade            the grader: parts, in shell, by the functions of grading.sh
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
REFERENCE=$TOP/yard # with which copies are compared
SEED_SAID=${SEED:-} # the seed that the caller names, if any
SEED=${SEED:-1}
LIMIT=60 # seconds of a student's program
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

. "$LABS/lib/usage.sh"
. "$TOP/tests/lib/json.sh"
. "$TOP/tests/lib/copy.sh"
. "$LABS/lib/copies.sh"
. "$LABS/lib/grading.sh"
. "$LABS/lib/predict.sh"
. "$LABS/lib/proving.sh"

die() { # SENTENCE
    echo "lab: $*" >&2
    exit 2
}

# ---- which lab, which seed -------------------------------------------------------------------------------------------

all_labs() { # their numbers: the folder 02-edges gives 2
    for each in "$LABS"/[0-9]*-*; do
        lab_name=${each##*/}
        two_digits=${lab_name%%-*}
        echo "${two_digits#0}"
    done
}

folder_of() { # N: the lab's folder
    for folder in "$LABS/$(printf %02d "${1#0}" 2>/dev/null)"-*; do
        [ -d "$folder" ] || die "there is no lab $1: there are $(all_labs | paste -s -d ' ')"
        echo "$folder"
    done
}

is_drawn() { # LAB: the task itself follows from the seed, as in labs 1 and 4: a FILE.txt.sh draws what is given
    ls "$1"/*.txt.sh >/dev/null 2>&1
}

# Answers of a lab that is drawn are right for one seed only.  So the copy is graded with the seed in its
# predictions.txt, unless the caller names one.
take_seed_of_copy() { # LAB TREE
    is_drawn "$1" || return 0
    drawn_with=$(cd "$2" && predicted_for seed)
    case $drawn_with in '' | *[!0-9]*) return ;; esac
    [ -n "$SEED_SAID" ] || SEED=$drawn_with
    if [ "$SEED" = "$drawn_with" ]; then
        echo "Graded with SEED=$SEED, with which this copy was made."
    else
        echo "Note: this copy was made with SEED=$drawn_with, and is graded with SEED=$SEED: its list is another one."
    fi
}

# ---- the commands ----------------------------------------------------------------------------------------------------

build_reference() { # the tree's own program, where there is none yet
    [ -x "$REFERENCE" ] || (cd "$TOP" && make -j2 >&2) || die "there is no $REFERENCE, and it does not build"
}

prepare() { # N LAB
    copy=build/labs/$1
    made=$TOP/$copy
    command -v git >/dev/null || die "git is missing: install it, for the history of your copy"
    if [ -e "$made" ]; then
        die "$copy is there already: your work is in it.  Move it away to begin anew"
    fi
    build_reference
    copy_tree "$made"
    apply "$made" "$2/starter.patch"
    forget "$made" "$2/starter.patch"
    give "$2" "$made"
    ask_on_terminal "$made"
    begin_history "$made" "Lab $1" || die "git fails: your copy has no history"
    echo "$copy is your copy.  Read tutorials/labs/${2##*/}/README.md; \`make grade N=$1\` says how far you are."
    left=$(cd "$made" && blanks_of "$2")
    if [ -n "$left" ]; then
        echo "Predict first: fill in the blanks of $copy/predictions.txt before you run anything."
    fi
}

begin_history() { # TREE MESSAGE
    (cd "$1" && git init -q && git add -A && git -c user.name=lab -c user.email=lab@localhost commit -qm "$2")
}

find_lab() { # N, or nothing where the caller has named none; sets: lab_number, lab
    if [ -z "$1" ]; then
        echo "which lab?  Type N= and its number, such as make lab N=3" >&2
        exit 2
    fi
    lab_number=${1#0} # 07 is lab 7
    lab=$(folder_of "$lab_number") || exit
}

find_copy() { # N [TREE]: the student's copy; sets: tree
    tree=${2:-$TOP/build/labs/$1}
    if [ ! -d "$tree" ]; then
        case $TOP in
        */build/labs/*) die "this is your copy: type it in ${TOP%/build/labs/*}, with which the copy is compared" ;;
        esac
        die "there is no $tree: \`make lab N=$1\` makes it"
    fi
    tree=$(cd "$tree" && pwd)
    build_reference
}

ask_questions() { # LAB: what the student of this seed is asked, and the list that is given
    write_blanks "$1" "$TMP"
    cat "$TMP/predictions.txt"
    if [ -f "$TMP/predict.txt" ]; then
        cat "$TMP/predict.txt"
    fi
}

give_nothing() { # LAB WHY: for autograde.sh, where no grader came to its end
    : >"$record"
    all_lost "$1" "$2"
    give_result
}

prove_labs() { # N...
    build_reference
    failed=0
    for proved in "$@"; do
        prove_lab "$proved" || failed=1
    done
    return $failed
}

rebase_labs() { # COMMIT
    was=$(cd "$TOP" && git rev-parse "$1") || exit 2
    is=$(cd "$TOP" && git rev-parse HEAD) || exit 2
    git clone -q --shared "$TOP" "$TMP/both" || exit 1
    (cd "$TMP/both" && git config user.name lab && git config user.email lab@localhost)
    for rebased in "$LABS"/[0-9]*; do
        rebase "$rebased" "$was" "$is"
    done
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
prepare)
    find_lab "${1-}"
    prepare "$lab_number" "$lab" ;;
grade)
    find_lab "${1-}"
    find_copy "$lab_number" "${2-}"
    take_seed_of_copy "$lab" "$tree"
    grade "$lab" "$tree" ;;
report)
    find_lab "${1-}"
    find_copy "$lab_number" "${2-}"
    page=${3:-$TOP/build/report-$lab_number.html}
    case $page in
    /*) ;;
    *) page=$PWD/$page ;;
    esac
    report "$lab" "$tree" "$page" || exit
    echo "wrote ${page#"$TOP"/}: hand it in with your copy" ;;
questions)
    find_lab "${1-}"
    ask_questions "$lab" ;;
nothing)
    find_lab "${1-}"
    give_nothing "$lab" "${2-}" ;;
check)
    # shellcheck disable=SC2046 # a number in each line
    [ $# -gt 0 ] || set -- $(all_labs)
    prove_labs "$@" ;;
rebase) rebase_labs "${1:?which commit did the patches apply to?}" ;;
*) show_usage ;;
esac
