#!/bin/sh
# periods.sh - the times that steps take, compared with those of an earlier program.
#
# This script simulates the cases of tests/data/periods.txt, each with --verify.  It checks that their periods are at
# most 0.6 % longer in the mean than those written there, and none more than 4 %.
#
#     tests/scripts/periods.sh                a row per case: name, period then and now in ms, by how much it is longer
#     tests/scripts/periods.sh record >FILE   the table with the periods of this program
#     TABLE=FILE tests/scripts/periods.sh     another table, such as some lines of it
#
#     gpt2-cpu               685.890   690.619    +0.69 %  (not judged)
#     gpt2-cpu-untied        686.404   691.082    +0.68 %
#     ...
#     101 cases, 98 judged: -0.425 % in the mean, at most +0.6; worst +3.45 %, at most +4
#     ok 1 - steps take no longer than in tests/data/periods.txt
#     1..1
#
# A line of the table is NAME MS ARGUMENTS, of `yard plan`.  A mark may stand behind MS:
#
#     !     the case is shown, and not judged
#     ~     it takes seconds and has others like it: `make check` (YARD_TESTS=check) leaves it to `make periods`
#
# In these arguments,
#
#     --list NAME         is data/steps/NAME.txt
#     --list NAME@BYTES   is that, on devices with so much memory
#     --list KIND#SEED    is a random list (lists.awk)
#     TMP/                is an empty folder
#
# To see it fail: in costs.c, let a copy of a step file take twice the time for its bytes.
. tests/lib/helpers.sh

table=${TABLE:-tests/data/periods.txt}
mode=${1:-compare}

write_list() { # NAME, NAME@BYTES or KIND#SEED: to $TMP/list.txt
    case $1 in
    *@*) sed "/^device/s/memory=[^ ]*/memory=${1#*@}/" "data/steps/${1%@*}.txt" >"$TMP/list.txt" ;;
    *'#'*) awk -v kind="${1%#*}" -v seed="${1#*#}" -f tests/data/lists.awk >"$TMP/list.txt" ;;
    *) cp "data/steps/$1.txt" "$TMP/list.txt" ;;
    esac
}

# ---- one case --------------------------------------------------------------------------------------------------------

# "--list swap@200M --trace TMP/a" becomes "--list $TMP/list.txt --trace $TMP/files/a", with swap@200M in that list.
plan() { # ARGUMENTS of a case: what `yard plan` prints goes to $TMP/out, and to $TMP/err why it fails
    list=$(echo "$*" | sed -n 's/.*--list \([^ ]*\).*/\1/p')
    if [ -n "$list" ]; then
        write_list "$list"
    fi
    rm -rf "$TMP/files"
    mkdir "$TMP/files"
    words=$(echo "$*" | sed "s|--list [^ ]*|--list $TMP/list.txt|; s|TMP/|$TMP/files/|g")
    # shellcheck disable=SC2086 # the arguments of a case
    "$YARD" plan $words --simulate --verify >"$TMP/out" 2>"$TMP/err" </dev/null
}

period() { # ARGUMENTS: prints ms, or "-" where there is no plan
    if plan "$@"; then
        sed -n 's/^simulated step: \([0-9.]*\) ms.*/\1/p' "$TMP/out"
    else
        echo -
    fi
}

show_case() { # NAME MS_BEFORE MARK ARGUMENTS: prints "NAME MS_BEFORE MS_NOW MARK", and why there is no plan
    shown="$1 $2" shown_mark=$3
    shift 3
    now=$(period "$@")
    echo "$shown $now $shown_mark"
    if [ "$now" = - ]; then
        sed 's/^/# /' "$TMP/err"
    fi
}

record_case() { # NAME MARK ARGUMENTS: prints the line of the table
    recorded=$1
    row=
    if [ "$2" != - ]; then
        row="$2 "
    fi
    shift 2
    printf '%-20s %9s  %s\n' "$recorded" "$(period "$@")" "$row$*"
}

# ---- all of them -----------------------------------------------------------------------------------------------------

# "swap-200M  38.389  --list ..." becomes "swap-200M  38.389  - --list ...".
with_marks() { # the table, with the mark - where a case has none
    awk '
        !/^#/ && NF > 2 && $3 !~ /^[!~]$/ { $3 = "- " $3 }
        { print }' "$table"
}

show_cases() { # those that this run has
    with_marks | grep -v -e '^#' -e '^$' | while read -r name before mark arguments; do
        if [ "$mark" = '~' ] && [ "${YARD_TESTS:-all}" = check ]; then
            continue
        fi
        # shellcheck disable=SC2086 # the words behind the mark
        show_case "$name" "$before" "$mark" $arguments
    done
}

compare() { # prints a row for each case, then how they do; fails where they are too long
    show_cases | awk -f tests/scripts/periods.awk
}

record() { # prints the table, with its comments
    with_marks | while read -r name before mark arguments; do
        # shellcheck disable=SC2086 # the words behind the mark
        case $name in
        '' | '#'*) echo "$name $before $mark $arguments" | sed 's/ *$//' ;;
        *) record_case "$name" "$mark" $arguments ;;
        esac
    done
}

case $mode in
record) record ;;
compare)
    check "steps take no longer than in $table" compare
    finish ;;
*)
    echo "periods.sh: unknown word $mode; it knows record" >&2
    exit 2 ;;
esac
