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
# SIMULATED and FORMULA are expressions of awk.  Both know the numbers of the line `make`, B = D + W where it has those,
# and the functions below.  SIMULATED also knows what `yard plan --simulate --verify --json` says of the list: period in
# ms; busy[LANE], from 0 to 1; moved[LANE], bytes, of a lane that only copies; and the most bytes of parameters[DEVICE],
# gradients[DEVICE], optimizer[DEVICE], state[DEVICE] (the three), activations[DEVICE] and work[DEVICE].  It must equal
# FORMULA, to 9 digits, and FORMULA has the digits of NUMBER, which is the paper's or known otherwise.  NAME=VALUE makes
# another list of the same kind; OPTIONS are those of `yard plan`.
#
#     picture WIDTHxHEIGHT KEYS [with OPTIONS...]
#
# is the picture of a step: KEYS are `yard view --script`'s.  Exit code 1: a row disagrees, or a list is not proved.
set -u
LC_ALL=C
export LC_ALL
YARD=${YARD:-./yard}
here=data/gallery
entries=${ENTRIES:-$here/entries}
TMP=${TMP:-$(mktemp -d)}
names=${NAMES:-$(awk '$1 == "entry" { print $2 }' "$entries")}
for name in $names; do
    grep -q "^entry $name " "$entries" || { echo "gallery.sh: $entries has no entry $name" >&2; exit 2; }
done

generate() { # NAME SETTINGS: a step file
    awk -v name="$1" -v set="$2" -f $here/gallery.awk "$entries"
}

rows() { # NAME: what, simulated, formula, number and settings, with tabs between
    awk -v name="$1" '$1 == "entry" { mine = $2 == name }
        mine && $1 == "row" {
            sub(/^ *row +/, ""); with = ""
            if (match($0, / with ([A-Za-z]+=|--)/)) { with = substr($0, RSTART + 6); $0 = substr($0, 1, RSTART - 1) }
            what = $0; sub(/: .*/, "", what); sub(/^[^:]*: /, ""); split($0, part, " = ")
            printf "%s\t%s\t%s\t%s\t%s\n", what, part[1], part[2], part[3] == "" ? "-" : part[3], with }' "$entries"
}

functions='
    function abs(x) { return x < 0 ? -x : x }
    function max(x, y) { return x > y ? x : y }
    function round(x) { return int(x + 0.5) }
    function choose(n, k,   i, c) { c = 1; for (i = 1; i <= k; i++) c = c * (n - k + i) / i; return round(c) }
    function extra(l, s,   r) { while (choose(s + r, s) < l) r++; return r * l - choose(s + r, s + 1) } # Revolve
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
    in_memory && part[2] == "optimizer" { state[device] = parameters[device] + gradients[device] + value }
    in_memory && part[2] == "work" { work[device] = value }
    /^"simulation":/ { in_memory = 0 }
    /^"step_ms":/ { period = value }
    /^"busy":/ { in_busy = 1 }
    /^"critical_path":/ { in_busy = 0 }
    in_busy { busy[part[2]] = value }'

measure() { # NAME SIMULATED FORMULA NUMBER SETTINGS: prints "ok FORMULA SIMULATED"
    own= options=
    for word in $5; do
        case $options$word in -* | ' '*) options="$options $word" ;; *) own="$own $word" ;; esac
    done
    list=$TMP/$1$(echo "$own" | tr ' ' ,).txt
    answer=$list$(echo "$options" | tr ' /' ,,).json
    [ -f "$list" ] || generate "$1" "$own" >"$list" || { echo "no - - its list cannot be made"; rm "$list"; return; }
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
        echo "if (D + W) B = D + W; formula = $3; simulated = 0 + ($2)"
        echo "number = \"$4\"; digits = number ~ /[.]/ ? length(number) - index(number, \".\") : 0"
        echo "same = abs(simulated - formula) <= 1e-9 * abs(formula) + 1e-9"
        echo "same = same && (number == \"-\" || abs(formula - number) * 10 ^ digits < 0.500001)"
        echo 'print same ? "ok" : "no", formula, simulated }'
    } >"$TMP/program"
    awk -v OFMT=%.7g -f "$TMP/program" "$answer"
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
    awk -F '\t' '{ split($7, v, " ") # ok, formula, simulated
        printf "%s  %-15s %s: %s = %s, simulated %s%s\n", v[1], $1, $2, $4, v[2], v[3], $6 == "" ? "" : ", with " $6 }
        v[1] != "ok" { wrong++
            if (v[2] == "-") print "    " substr($7, 8)
            else print "    must be equal: formula " v[2] ", simulated " v[3] ($5 == "-" ? "" : ", number " $5) }
        END { print NR - wrong " rows agree, " wrong + 0 " do not"; exit NR == 0 || wrong > 0 }'
}

draw() { # NAME DIR: a list there, and the picture of a step
    line=$(awk -v name="$1" '$1 == "entry" { mine = $2 == name } mine && $1 == "picture"' "$entries")
    options= keys=${line#*picture * }
    case $keys in *' with '*) options=${keys#* with } keys=${keys% with *} ;; esac
    size=$(echo "$line" | awk '{ print $2 }')
    generate "$1" '' >"$2/$1.txt" &&
        "$YARD" plan --list "$2/$1.txt" --simulate --trace "$TMP/trace" $options >"$TMP/out" 2>&1 &&
        "$YARD" view "$TMP/trace" --step 2 --script "$keys" --size "$size" --png "$2/$1.png" >"$TMP/out" 2>&1 ||
        { cat "$TMP/out" >&2; exit 1; }
}

write_page() { # the lines of measure_all: the page
    awk -F '\t' '
        function html(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
        function code(s) { return "<code>" html(s) "</code>" }
        function flush() { if (text != "") print "<p>" text "</p>"; text = "" }
        function show_rows(   i, v) {
            print "<p><a href=\"" name ".txt\"><img src=\"" name ".png\" alt=\"" name "\"></a></p>"
            print "<table><tr><th><th>formula<th>gives<th>simulated<th>read from the simulation<th>with</tr>"
            for (i = 1; i <= n; i++) {
                split(row[name, i], part, "\t"); split(part[7], v, " ")
                print "<tr" (v[1] == "ok" ? "" : " class=wrong") "><td>" html(part[2]) "<td>" code(part[4]) \
                    "<td>" v[2] "<td>" v[3] "<td>" code(part[3]) "<td>" (part[6] == "" ? "" : code(part[6])) "</tr>" }
            print "</table>" }
        FNR == NR { count[$1]++; row[$1, count[$1]] = $0; next }
        FNR == 1 {
            print "<!DOCTYPE html><meta charset=utf-8><title>Trainyard: a gallery of papers</title>"
            print "<style>body { font: 16px/1.5 sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em }"
            print "img { max-width: 100% } td, th { text-align: left; padding: 0 1em 0 0; vertical-align: top }"
            print ".wrong { background: #fcc }</style><h1>A gallery of papers</h1>"
            print "<p>A picture is a simulated step, and leads to its list. Below it: the formula, the number it gives,"
            print "and the number simulated. A row whose numbers disagree is red.</p>" }
        /^entry / { name = $0; sub(/^entry /, "", name); title = name; sub(/ .*/, "", name); sub(/^[^ ]* /, "", title)
            n = count[name]; seen = 1; if (n) print "<h2 id=\"" name "\">" html(title) "</h2>"; next }
        !seen || !n { next }
        /^  make/ { flush(); show_rows(); next }
        /^  / { next }
        /^$/ { flush(); next }
        { n_parts = split(html($0), part, "`") # what is between two is code
          for (i = 1; i <= n_parts; i++) text = text (i % 2 ? part[i] : "<code>" part[i] "</code>")
          text = text "\n" }' "$1" "$entries"
}

case ${1-} in
write)
    for name in $names; do generate "$name" '' >"${2:-$here}/$name.txt" || exit 1; done
    ;;
check) measure_all | judge ;;
page)
    [ -n "${2-}" ] && mkdir -p "$2" || exit 2
    measure_all >"$TMP/rows"
    for name in $names; do draw "$name" "$2"; done
    write_page "$TMP/rows" >"$2/index.html"
    judge <"$TMP/rows"
    ;;
*)
    sed -n '4,7s/^# *//p' "$0"
    exit 2
    ;;
esac
