#!/bin/sh
# gallery.sh - published formulas as lists: simulates each, and compares.
#
#     data/gallery/gallery.sh write [DIR]   writes the step files (to data/gallery)
#     data/gallery/gallery.sh check         a line per row of `entries`: does what was simulated agree with the formula?
#     data/gallery/gallery.sh page DIR      that, and DIR/index.html with a picture of each list
#     ENTRIES=FILE, NAMES="zb-h1 ..."       another file of entries, some of them only
#
# A row of an entry is
#
#     row WHAT: SIMULATED = FORMULA = NUMBER [with NAME=VALUE... OPTIONS...]
#
# SIMULATED and FORMULA are expressions of awk.  Both know the numbers of the entry's `make`, B = D + W, and functions
# below.  SIMULATED also knows what `yard plan --simulate --verify --json` said of the list: period in ms, busy[LANE] from
# 0 to 1, moved[LANE] in bytes (of a lane that only copies), and the most bytes of parameters[DEVICE], gradients[DEVICE],
# optimizer[DEVICE], activations[DEVICE], work[DEVICE].  The two must agree to 9 digits, and the formula with the NUMBER
# to its digits.  NAME=VALUE makes another list of the same kind, OPTIONS are `yard plan`'s.  Exit code 1: a row disagrees.
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
here=data/gallery
entries=${ENTRIES:-$here/entries}
TMP=${TMP:-$(mktemp -d)}
names=${NAMES:-$(awk '$1 == "entry" { print $2 }' "$entries")}

generate() { # NAME SETTINGS: a step file
    awk -v name="$1" -v set="$2" -f $here/gallery.awk "$entries"
}

rows() { # NAME: what, simulated, formula, number and settings, with tabs between
    awk -v name="$1" '$1 == "entry" { mine = $2 == name }
        mine && $1 == "row" {
            sub(/^ *row +/, ""); with = ""
            if (match($0, / with ([A-Za-z]+=|--)/)) { with = substr($0, RSTART + 6); $0 = substr($0, 1, RSTART - 1) }
            what = $0; sub(/: .*/, "", what); sub(/^[^:]*: /, ""); split($0, part, " = ")
            printf "%s\t%s\t%s\t%s\t%s\n", what, part[1], part[2], part[3], with }' "$entries"
}

functions='
    function abs(x) { return x < 0 ? -x : x }
    function max(x, y) { return x > y ? x : y }
    function round(x) { return int(x + 0.5) }
    function choose(n, k,   i, c) { c = 1; for (i = 1; i <= k; i++) c = c * (n - k + i) / i; return round(c) }
    # words of the answer, one a line
    { value = $0; sub(/.*": ?/, "", value); sub(/\].*/, "", value); gsub(/"/, "", value); split($0, part, "\"") }
    /^"lane":/ { lane = value }
    /^"flops":/ { of_task = 1 }
    /^"bytes":/ && of_task { moved[lane] += value / 2; of_task = 0 } # what was read and what was written
    /^"memory":/ || (in_memory && /^"device":/) { in_memory = 1 }
    in_memory && part[2] == "device" { device = value }
    in_memory && part[2] == "parameters" { parameters[device] = value }
    in_memory && part[2] == "gradients" { gradients[device] = value }
    in_memory && part[2] == "optimizer" { optimizer[device] = value }
    in_memory && part[2] == "activations" { activations[device] = value }
    in_memory && part[2] == "work" { work[device] = value }
    /^"simulation":/ { in_memory = 0 }
    /^"step_ms":/ { period = value }
    /^"busy":/ { in_busy = 1 }
    /^"critical_path":/ { in_busy = 0 }
    in_busy { busy[part[2]] = value }'

measure() { # NAME SIMULATED FORMULA NUMBER SETTINGS: prints "ok FORMULA SIMULATED"
    own= options=
    for word in $5; do
        case "$options$word" in -*) options="$options $word" ;; *=*) own="$own $word" ;; *) options="$options $word" ;; esac
    done
    list=$TMP/$1$(echo "$own" | tr ' ' ,).txt
    answer=$list$(echo "$options" | tr ' /' ,,).json
    [ -f "$list" ] || generate "$1" "$own" >"$list" || return
    if [ ! -f "$answer" ]; then
        "$YARD" plan --list "$list" --simulate --verify --json $options >"$TMP/json" 2>"$TMP/err" </dev/null ||
            { echo "no - - $(grep '^yard: ' "$TMP/err")"; return; }
        tr '{},' '\n' <"$TMP/json" >"$answer"
    fi
    {
        echo "$functions"
        echo "END { MiB = 1048576"
        echo "$(sed -n 's/^#  *made by [^ ]*//p' "$list") $own" | tr ' ' '\n' |
            sed -n 's/^\([A-Za-z]*\)=\([0-9.e]*\)$/\1 = \2/p'
        echo "B = D + W; formula = $3; simulated = 0 + ($2)"
        echo "digits = length(\"$4\") - index(\"$4\", \".\"); if (\"$4\" !~ /[.]/) digits = 0"
        echo "same = abs(simulated - formula) <= 1e-9 * abs(formula) + 1e-9 && abs(formula - $4) * 10 ^ digits <= 0.5000001"
        echo 'print same ? "ok" : "no", formula, simulated }'
    } >"$TMP/program"
    awk -v OFMT=%.7g -f "$TMP/program" "$answer"
}

check() { # all rows: name, what, simulated, formula, number, settings, ok or no, and the two values, with tabs between
    tab=$(printf '\t')
    for name in $names; do
        rows "$name" | while IFS="$tab" read -r what simulated formula number with; do
            verdict=$(measure "$name" "$simulated" "$formula" "$number" "$with" </dev/null)
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$what" "$simulated" "$formula" "$number" "$with" "$verdict"
        done
    done
}

case ${1-} in
write)
    for name in $names; do generate "$name" '' >"${2:-$here}/$name.txt" || exit 1; done
    ;;
check)
    check | awk -F '\t' '{ split($7, v, " ")
        printf "%s  %-12s %-34s %s = %s, simulated %s%s\n", v[1], $1, $2, $4, v[2], v[3], $6 == "" ? "" : ", with " $6
        if (v[1] != "ok") { wrong++; print "    they and " $5 " differ: " $7 } }
        END { print NR - wrong " rows agree, " wrong + 0 " do not"; exit NR == 0 || wrong > 0 }'
    ;;
*)
    sed -n '2,7s/^# *//p' "$0"
    exit 2
    ;;
esac
