#!/bin/sh
# gallery.sh - published formulas as lists: simulates each, and compares.
#
#     data/gallery/gallery.sh write [DIR]   writes the step files (to data/gallery)
#     data/gallery/gallery.sh check         a line per row of `entries`: what was simulated, and the formula
#     data/gallery/gallery.sh page DIR      DIR/index.html: that, below a picture of each list
#     NAMES="zb-h1 ..." ENTRIES=FILE        some entries only; another file of entries
#
# A row of an entry is
#
#     row WHAT: SIMULATED = FORMULA [= NUMBER] [with NAME=VALUE... OPTIONS...]
#
# SIMULATED and FORMULA are expressions of awk.  Both know the numbers of the line `make`, B = D + W where it has
# those, and the functions of answer.awk.  SIMULATED also knows what `yard plan --simulate --verify --json` says of the
# list:  period in ms; busy[LANE], from 0 to 1; moved[LANE], bytes, of a lane that only copies; and the most bytes of
# parameters[DEVICE], gradients[DEVICE], optimizer[DEVICE], state[DEVICE] (the three), activations[DEVICE] and
# work[DEVICE].  It must equal FORMULA, to 9 digits, and FORMULA has the digits of NUMBER, which is the paper's or
# known otherwise.  NAME=VALUE makes another list of the same kind; OPTIONS are those of `yard plan`.
#
#     picture WIDTH KEYS [with OPTIONS...]
#
# is the picture of a step: KEYS are `yard view --script`'s.  Exit code 1: a row disagrees, or a list is not proved.
#
# gallery.awk writes the step files, answer.awk reads what `yard plan` says of them, page.awk writes the page.
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
here=data/gallery
entries=${ENTRIES:-$here/entries}
TMP=${TMP:-$(mktemp -d)}
names=${NAMES:-$(awk '$1 == "entry" { print $2 }' "$entries")}
for name in $names; do
    grep -q "^entry $name " "$entries" && continue
    echo "gallery.sh: $entries has no entry $name" >&2
    exit 2
done

generate() { # NAME SETTINGS: a step file
    awk -v name="$1" -v set="$2" -f $here/gallery.awk "$entries"
}

# ---- rows -----------------------------------------------------------------------------------------------------------

rows() { # NAME: a line for each row of that entry: what, simulated, formula, number and settings, with tabs between
    awk -v name="$1" '
        $1 == "entry" { mine = $2 == name }
        mine && $1 == "row" {
            sub(/^ *row +/, "")
            with = ""
            if (match($0, / with ([A-Za-z]+=|--)/)) {
                with = substr($0, RSTART + 6)
                $0 = substr($0, 1, RSTART - 1)
            }
            what = $0
            sub(/: .*/, "", what)
            sub(/^[^:]*: /, "")
            split($0, part, " = ")
            number = part[3] == "" ? "-" : part[3]
            printf "%s\t%s\t%s\t%s\t%s\n", what, part[1], part[2], number, with
        }' "$entries"
}

split_settings() { # WORDS: those of the list to $own, those of `yard plan`, from the first -- on, to $options
    own=
    options=
    for word in $1; do
        case $options$word in
        -* | ' '*) options="$options $word" ;;
        *) own="$own $word" ;;
        esac
    done
}

simulate() { # LIST ANSWER: what `yard plan` says of the list, as answer.awk reads it
    "$YARD" plan --list "$1" --simulate --verify --json $options >"$TMP/json" 2>"$TMP/err" </dev/null &&
        tr '{},' '\n' <"$TMP/json" >"$2"
}

write_formula() { # LIST SIMULATED FORMULA NUMBER: an END block for answer.awk, with the values that the list has
    echo 'END { MiB = 1048576'
    echo "$(sed -n 's/^#  *made by [^ ]*//p' "$1") $own" | tr ' ' '\n' |
        sed -n 's/^\([A-Za-z]*\)=\([0-9.e]*\)$/\1 = \2/p'
    echo 'if (D + W) B = D + W'
    echo "formula = $3"
    echo "simulated = 0 + ($2)"
    echo "number = \"$4\""
    echo 'digits = number ~ /[.]/ ? length(number) - index(number, ".") : 0'
    echo 'same = abs(simulated - formula) <= 1e-9 * abs(formula) + 1e-9'
    echo 'same = same && (number == "-" || abs(formula - number) * 10 ^ digits < 0.500001)'
    echo 'print same ? "ok" : "no", formula, simulated }'
}

measure() { # NAME SIMULATED FORMULA NUMBER SETTINGS: prints "ok FORMULA SIMULATED", or "no ..."
    split_settings "$5"
    list=$TMP/$1$(echo "$own" | tr ' ' ,).txt
    answer=$list$(echo "$options" | tr ' /' ,,).json
    if [ ! -f "$list" ] && ! generate "$1" "$own" >"$list"; then
        echo 'no - - its list cannot be made'
        rm "$list"
        return
    fi
    if [ ! -f "$answer" ] && ! simulate "$list" "$answer"; then
        echo "no - - $(grep '^yard: ' "$TMP/err")"
        return
    fi
    write_formula "$list" "$2" "$3" "$4" >"$TMP/end.awk"
    awk -v OFMT=%.7g -f $here/answer.awk -f "$TMP/end.awk" "$answer"
}

measure_all() { # of each row a line: name, what, simulated, formula, number, settings, verdict, with tabs between
    tab=$(printf '\t')
    for name in $names; do
        rows "$name" | while IFS="$tab" read -r what simulated formula number with; do
            verdict=$(measure "$name" "$simulated" "$formula" "$number" "$with" </dev/null)
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$what" "$simulated" "$formula" "$number" "$with" "$verdict"
        done
    done
}

judge() { # lines of measure_all
    awk -F '\t' '
        {
            split($7, verdict, " ")
            formula = verdict[2]
            simulated = verdict[3]
            with = $6 == "" ? "" : ", with " $6
            printf "%s  %-15s %s: %s = %s, simulated %s%s\n", verdict[1], $1, $2, $4, formula, simulated, with
        }
        verdict[1] != "ok" {
            wrong++
            if (formula == "-")
                print "    " substr($7, 8) # why there is none
            else
                print "    must be equal: formula " formula ", simulated " simulated ($5 == "-" ? "" : ", number " $5)
        }
        END {
            print NR - wrong " rows agree, " wrong + 0 " do not"
            exit NR == 0 || wrong > 0
        }'
}

# ---- the page -------------------------------------------------------------------------------------------------------

draw() { # NAME DIR: a list there, and the picture of a step
    line=$(awk -v name="$1" '$1 == "entry" { mine = $2 == name } mine && $1 == "picture"' "$entries")
    size=$(echo "$line" | awk '{ print $2 }')
    keys=${line#*picture * }
    options=
    case $keys in
    *' with '*)
        options=${keys#* with }
        keys=${keys% with *} ;;
    esac
    generate "$1" '' >"$2/$1.txt" &&
        "$YARD" plan --list "$2/$1.txt" --simulate --trace "$TMP/trace" $options >"$TMP/out" 2>&1 &&
        "$YARD" view "$TMP/trace" --step 2 --script "$keys" --size "$size" --png "$2/$1.png" >"$TMP/out" 2>&1 && return
    cat "$TMP/out" >&2
    exit 1
}

make_page() { # DIR
    mkdir -p "$1" || exit 2
    measure_all >"$TMP/rows"
    for name in $names; do draw "$name" "$1"; done
    awk -f $here/page.awk "$TMP/rows" "$entries" >"$1/index.html"
    judge <"$TMP/rows"
}

usage() {
    sed -n '4,7s/^# *//p' "$0"
    exit 2
}

case ${1-} in
write)
    for name in $names; do
        generate "$name" '' >"${2:-$here}/$name.txt" || exit 1
    done ;;
check) measure_all | judge ;;
page)
    [ -n "${2-}" ] || exit 2
    make_page "$2" ;;
*) usage ;;
esac
