#!/bin/sh
# gallery.sh - published formulas as lists: simulates each, and compares.
#
#     src/gallery/gallery.sh write [DIR]            writes the step files (to data/gallery)
#     src/gallery/gallery.sh list NAME "p=8 m=32"   prints the step file of an entry, with other numbers
#     src/gallery/gallery.sh check                  a line per row of `entries`: what was simulated, and the formula
#     src/gallery/gallery.sh page DIR               DIR/index.html: that, below a picture of each list
#     src/gallery/gallery.sh curves                 the curves of `entries`: what comes of other links to the host
#     src/gallery/gallery.sh papers DIR             DIR/index.html: the page of the entries that have curves, with these
#     src/gallery/gallery.sh fill PAGE              puts them into a page: below each <!-- curves: NAME -->
#     NAMES="zb-h1 ..." ENTRIES=FILE                some entries only; another file of entries
#     HARDWARE=FILE                                 curves have a point more, of the links and the disk of that machine
#
# For example:
#
#     $ NAMES=gpipe src/gallery/gallery.sh check
#     ok  gpipe           step: (m+p-1)*(F+B) = 33, simulated 33
#     ...
#     5 rows agree, 0 do not
#
# A row of an entry is
#
#     row WHAT: SIMULATED = FORMULA [= NUMBER] [with NAME=VALUE... OPTIONS...]
#     row step: period = (m+p-1)*(F+B) = 66 with F=2 D=3 W=1
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
#     curve WHAT: SIMULATED [with NAME=VALUE... OPTIONS...]
#
# is a row without a formula, for each `rate` of $rates.
#
# The folder data/gallery has a table, `entries`, which says what there is, and step files *.txt, which `write` makes of
# it.  The programs here begin with examples:
#
#     gallery.awk, generators/    write a step file
#     rows.awk                    reads `entries`
#     answer.awk, judge.awk       read what `yard plan` says of a list, and what comes of all rows
#     hardware.awk                reads the machine HARDWARE
#     curves.awk, fill.awk, page.awk      write curves as text, put them into a page, and write the gallery's page
set -u
LC_ALL=C
YARD=${YARD:-./yard}
export LC_ALL YARD
programs=src/gallery
lists=data/gallery
entries=${ENTRIES:-$lists/entries}
rates='1e9 2e9 4e9 8e9 16e9 32e9 64e9 450e9' # bytes per second, each way; the last is that of a superchip
tab=$(printf '\t')
writer="-f $programs/gallery.awk" # words of awk: what writes a step file
for generator in "$programs"/generators/*.awk; do
    writer="$writer -f $generator"
done
TMP=$(mktemp -d "${TMP:-${TMPDIR:-/tmp}}/gallery.XXXXXX") || exit 2
trap 'rm -rf "$TMP"' EXIT

die() { # SENTENCE
    echo "gallery.sh: $1" >&2
    exit 2
}

generate() { # NAME SETTINGS: prints a step file; SETTINGS are words such as "p=8 m=32"
    # shellcheck disable=SC2086 # words of awk
    awk -v name="$1" -v set="$2" $writer "$entries"
}

# ---- rows ------------------------------------------------------------------------------------------------------------

rows() { # NAME row|curve: prints a line for each, as rows.awk does
    awk -v name="$1" -v kind="$2" -f $programs/rows.awk "$entries"
}

# SETTINGS such as "rate=1e9 p=8 --clip 0" have two parts: " rate=1e9 p=8" is for the list, " --clip 0" for `yard plan`.
for_list() { # SETTINGS: prints the words up to the first option
    for word in $1; do
        case $word in
        -*) return ;;
        esac
        printf ' %s' "$word"
    done
}

for_plan() { # SETTINGS: prints the first option and all after it
    settings=" $1"
    case $settings in
    *' -'*) printf ' -%s' "${settings#* -}" ;;
    esac
}

# What `yard plan` says of the list, a field a line, as answer.awk reads it:  {"step_ms":27.0,"busy":{"s0 compute":0.89}
# gives the lines  "step_ms":27.0  and  "busy":  and  "s0 compute":0.89.  No name and no value has {, } or , in it.
simulate() { # LIST ANSWER OPTIONS
    # shellcheck disable=SC2086 # the options that the entry has
    "$YARD" plan --list "$1" --simulate --verify --json $3 >"$TMP/json" 2>"$TMP/err" </dev/null &&
        tr '{},' '[\n*]' <"$TMP/json" >"$2"
}

# The list's line "#   made by ring n=2 S=80 order=1f1b" gives "n = 2" and "S = 80", and so do WORDS.
values_of() { # LIST WORDS
    made_by=$(sed -n 's/^#  *made by [^ ]*//p' "$1")
    echo "$made_by $2" | tr ' ' '\n' | sed -n 's/^\([A-Za-z]*\)=\([0-9.e]*\)$/\1 = \2/p'
}

write_formula() { # VALUES SIMULATED FORMULA NUMBER: prints what follows answer.awk; VALUES are lines of values_of
    cat <<END_BLOCK
END {
$1
if (D + W)
    B = D + W
MiB = 1048576
formula = $3
simulated = 0 + ($2)
print agree(formula, simulated, "$4") ? "ok" : "no", formula, simulated
}
END_BLOCK
}

in_name() { # WORDS: prints " p=8 --clip 0" as a part of a file's name, ",p=8,--clip,0"
    echo "$1" | tr ' /' '[,*]'
}

# A list and its answer are kept in files that are named by their settings, since many rows have the same.
measure() { # NAME SIMULATED FORMULA NUMBER SETTINGS: prints "ok FORMULA SIMULATED", or "no ..."
    own=$(for_list "$5")
    options=$(for_plan "$5")
    list=$TMP/$1$(in_name "$own").txt
    answer=$list$(in_name "$options").json
    if [ ! -f "$list" ] && ! generate "$1" "$own" >"$list" 2>"$TMP/err"; then
        echo "no - - its list cannot be made: $(head -n 1 "$TMP/err")"
        rm "$list"
        return
    fi
    case $own in
    *rate=yours*) sed -f "$TMP/yours" "$list" >"$TMP/list" && cp "$TMP/list" "$list" ;;
    esac
    if [ ! -f "$answer" ] && ! simulate "$list" "$answer" "$options"; then
        echo "no - - $(grep '^yard: ' "$TMP/err")"
        return
    fi
    write_formula "$(values_of "$list" "$own")" "$2" "$3" "$4" >"$TMP/end.awk"
    awk -v OFMT=%.7g -f $programs/answer.awk -f "$TMP/end.awk" "$answer"
}

# Prints a line for each row: name, what, simulated, formula, number, settings, verdict, with tabs between.
measure_all() {
    for name in $names; do
        rows "$name" row | while IFS="$tab" read -r what simulated formula number with; do
            verdict=$(measure "$name" "$simulated" "$formula" "$number" "$with" </dev/null)
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$what" "$simulated" "$formula" "$number" "$with" "$verdict"
        done
    done
}

judge() { # reads lines of measure_all, and prints what they say for people; it fails if a row disagrees
    awk -F '\t' -f $programs/judge.awk
}

# ---- curves ----------------------------------------------------------------------------------------------------------

with_curves() { # prints the names of entries that have curves
    awk '
        $1 == "entry" { name = $2 }
        $1 == "curve" && !named[name]++ { print name }' "$entries"
}

# $HARDWARE is a machine: a description, or a profile of `yard profile`.  $TMP/yours is for sed, which puts the links
# and the disk of that machine into a step file; $TMP/rates is for people.
read_hardware() {
    [ -f "$HARDWARE" ] || die "there is no file $HARDWARE: HARDWARE= names one like data/hardware/laptop.txt"
    awk -v rates="$TMP/rates" -f $programs/hardware.awk "$HARDWARE" >"$TMP/yours" ||
        die "$HARDWARE has no lines \"link upload = RATE LATENCY\" and \"link download = ...\", in bytes per second"
}

# A step that does not fit is a point without a value.  What else is wrong is told on stderr, and is in $TMP/wrong.
# Prints a line for each point: name, what, rate in GB/s or "yours", what was simulated, with tabs between.
measure_curves() {
    : >"$TMP/wrong"
    for name in $names; do
        rows "$name" curve | while IFS="$tab" read -r what simulated formula number with; do
            for rate in $rates ${HARDWARE:+yours}; do
                verdict=$(measure "$name" "$simulated" 0 - "rate=$rate $with" </dev/null)
                case $verdict in
                'no - - '*'; enough would be '*) ;;
                'no - - '*) echo "gallery.sh: $name, $what, with rate=$rate: ${verdict#no - - }" >>"$TMP/wrong" ;;
                esac
                printf '%s\t%s\t%s\t%s\n' "$name" "$what" "$rate" "$(echo "$verdict" | cut -d ' ' -f 3)"
            done
        done
    done
    head -n 1 "$TMP/wrong" >&2
}

show_curves() { # FILE, with lines of measure_curves: prints them as text
    awk -v yours="$(cat "$TMP/rates" 2>/dev/null)" -f $programs/curves.awk "$1"
}

fill() { # PAGE: prints it, with the curves of NAME below each line <!-- curves: NAME --> and a ```
    awk -v command="\"$0\" curves" -f $programs/fill.awk "$1"
}

# ---- the page --------------------------------------------------------------------------------------------------------

# An entry's line "picture 1280 k k m with --clip 0" has the size 1280, the keys "k k m" and the options "--clip 0".
draw() { # NAME DIR: a list there, and the picture of a step
    line=$(awk -v name="$1" '$1 == "entry" { mine = $2 == name } mine && $1 == "picture"' "$entries")
    words=${line#*picture }
    size=${words%% *}
    keys=${words#* }
    drawn_with=
    case $keys in
    *' with '*)
        drawn_with=${keys#* with }
        keys=${keys% with *} ;;
    esac
    # shellcheck disable=SC2086 # the options that the list is drawn with
    generate "$1" '' >"$2/$1.txt" &&
        "$YARD" plan --list "$2/$1.txt" --simulate --trace "$TMP/trace" $drawn_with >"$TMP/out" 2>&1 &&
        "$YARD" view "$TMP/trace" --step 2 --script "$keys" --size "$size" --png "$2/$1.png" >"$TMP/out" 2>&1 && return
    cat "$TMP/out" >&2
    exit 1
}

make_page() { # DIR TITLE: with the curves that are in $TMP/curves
    mkdir -p "$1" || exit 2
    measure_all >"$TMP/rows"
    for entry in $names; do draw "$entry" "$1"; done
    awk -v title="$2" -v yours="$(cat "$TMP/rates" 2>/dev/null)" -f $programs/page.awk \
        kind=row "$TMP/rows" kind=curve "$TMP/curves" kind=entry "$entries" >"$1/index.html"
    judge <"$TMP/rows"
}

usage() {
    sed -n '4,13s/^# *//p' "$0"
    exit 2
}

is_written_by_hand() { # NAME: its list is a file elsewhere
    awk -v name="$1" '
        $1 == "entry" { mine = $2 == name }
        mine && $1 == "make" { found = $2 == "step_file" }
        END { exit !found }' "$entries"
}

# ---- what was asked --------------------------------------------------------------------------------------------------

[ -f "$entries" ] || die "there is no file $entries: ENTRIES= names one like $lists/entries"
names=${NAMES:-$(awk '$1 == "entry" { print $2 }' "$entries")}
[ -n "$names" ] || die "$entries has no entries: ENTRIES= names a file like $lists/entries"
for wanted in $names; do
    grep -q "^entry $wanted " "$entries" || die "$entries has no entry $wanted"
done
[ "${1-}" = write ] || command -v "$YARD" >/dev/null || die "there is no program $YARD: \`make\` builds it"
if [ -n "${HARDWARE-}" ]; then
    read_hardware
fi
case ${1-} in
write)
    for written in $names; do
        is_written_by_hand "$written" && continue
        generate "$written" '' >"${2:-$lists}/$written.txt" || exit 1
    done ;;
list) generate "${2:?which entry?}" "${3-}" ;;
check) measure_all | judge ;;
page)
    [ -n "${2-}" ] || usage
    : >"$TMP/curves"
    make_page "$2" 'A gallery of papers' ;;
curves)
    measure_curves >"$TMP/curves"
    if [ -s "$TMP/wrong" ]; then
        exit 1
    fi
    show_curves "$TMP/curves" ;;
papers)
    [ -n "${2-}" ] || usage
    names=${NAMES:-$(with_curves)}
    measure_curves >"$TMP/curves"
    if [ -s "$TMP/wrong" ]; then
        exit 1
    fi
    show_curves "$TMP/curves"
    make_page "$2" 'Six papers' ;;
fill)
    [ -f "${2-}" ] || usage
    fill "$2" >"$TMP/page" && cp "$TMP/page" "$2" ;;
*) usage ;;
esac
