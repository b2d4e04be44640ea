#!/bin/sh
# periods.sh - does a step still take as long?  Simulates the cases of tests/data/periods.txt, each with --verify, and
# compares their periods with those written there: at most 0.6 % longer in the mean, and none more than 4 %.
#
#     tests/scripts/periods.sh                a row per case: name, period then and now in ms, by how much it is longer
#     tests/scripts/periods.sh record >FILE   the table with the periods of this program
#     TABLE=FILE tests/scripts/periods.sh     another table, such as some lines of it
#
# A line is NAME MS ARGUMENTS of `yard plan`; `!` behind MS: shown, and not judged.  Among the arguments
#
#     --list NAME         is data/steps/NAME.txt
#     --list NAME@BYTES   is that, on devices with so much memory
#     --list KIND#SEED    is a random list (lists.awk)
#     TMP/                is an empty folder
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
TMP=${TMP:-$(mktemp -d)}
table=${TABLE:-tests/data/periods.txt}
mode=${1:-compare}

write_list() { # NAME, NAME@BYTES or KIND#SEED: to $TMP/list.txt
    case $1 in
    *@*) sed "/^device/s/memory=[^ ]*/memory=${1#*@}/" "data/steps/${1%@*}.txt" >"$TMP/list.txt" ;;
    *'#'*) awk -v kind="${1%#*}" -v seed="${1#*#}" -f tests/data/lists.awk >"$TMP/list.txt" ;;
    *) cp "data/steps/$1.txt" "$TMP/list.txt" ;;
    esac
}

period() { # ARGUMENTS: prints ms; "-" where there is none, and why to $TMP/err
    list=$(echo "$*" | sed -n 's/.*--list \([^ ]*\).*/\1/p')
    [ -z "$list" ] || write_list "$list"
    rm -rf "$TMP/files" && mkdir "$TMP/files"
    words=$(echo "$*" | sed "s|--list [^ ]*|--list $TMP/list.txt|; s|TMP/|$TMP/files/|g")
    if "$YARD" plan $words --simulate --verify >"$TMP/out" 2>"$TMP/err" </dev/null; then
        sed -n 's/^simulated step: \([0-9.]*\) ms.*/\1/p' "$TMP/out"
    else
        echo -
    fi
}

run_cases() { # to compare: prints "NAME MS_THEN MS_NOW", and "!" behind it; to record: the table
    while read -r name old arguments; do
        case $name in
        '#'* | '') # a comment
            [ "$mode" = compare ] || echo "$name $old $arguments" | sed 's/ *$//'
            continue ;;
        esac
        judged= # or '! ', where it is not
        case $arguments in
        '! '*)
            judged='! '
            arguments=${arguments#! } ;;
        esac
        new=$(period $arguments)
        if [ "$mode" = record ]; then
            printf '%-20s %9s  %s\n' "$name" "$new" "$judged$arguments"
        else
            echo "$name $old $new $judged"
            [ "$new" != - ] || sed 's/^/# /' "$TMP/err"
        fi
    done <$table
}

compare() { # the lines of run_cases
    awk '
        /^# / {
            print
            next
        }
        {
            n++
            by = 1000 # per cent, where there is no period any more
            if ($3 != "-")
                by = 100 * ($3 / $2 - 1)
            remark = ""
            if ($4 == "!")
                remark = "  (not judged)"
            else if (by > 4)
                remark = "  too long"
            printf "%-20s %9s %9s %+8.2f %%%s\n", $1, $2, $3, by, remark
        }
        $4 != "!" {
            judged++
            sum += by
            if (by > worst)
                worst = by
            if (by > 4)
                wrong++
        }
        END {
            mean = judged ? sum / judged : 1000
            printf "%d cases, %d judged: %+.3f %% in the mean, at most +0.6; worst %+.2f %%, at most +4\n", n, judged,
                mean, worst
            exit wrong > 0 || mean > 0.6
        }'
}

if [ "$mode" = record ]; then
    run_cases
else
    run_cases | compare
fi
