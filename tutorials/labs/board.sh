#!/bin/sh
# board.sh ENTRY... - the league: who has the shortest simulated step within the budget?  It needs no GPU.
#
#     NAME.txt      a step file: the model's list, in another order, with copies of one's own
#     NAME.patch    a pass: one new folder in src/techniques, whose program hands over a step file
#     any other     options, as for --config
#
# league.md says what an entry may do.  The judge is this script and ./yard of its tree; no entry's program is believed.
#
#     SEED=S            the hardware of the judgement: DRAWS times $HARDWARE with other rates (default 1; DRAWS=3)
#     BOARD, BUDGET, HARDWARE   another task: options of the model, those of memory, the hardware that entries know
#     BITS=             does not train, so that the column "bits" stays empty
#     WORDS=1           shows on stderr what the programs of passes say, for those who wrote them
#
# It prints a row for each entry, with the mean over all draws, and "bits": has a short real training the bits that it
# has without techniques?
#
#     $ tutorials/labs/board.sh fast.options fast.patch
#       1.      410.123 ms  bits same   fast.options
#          fast.patch refused: its program hands over no list: ...
#
# An entry goes through judge_entry().  Options are carried out (judge_options).  A list is compared with the model's
# own and simulated (judge_list).  A pass is built and run in a sandbox, and its list is judged like any other
# (judge_pass).  A function that refuses an entry sets $why by refuse() and fails; so `must_be_new X && ...` goes on
# with what is left.  tests/scripts/league.sh has the attacks that must not score; a new one is a line there.
set -u
LC_ALL=C
export LC_ALL
here=$PWD
cd "$(dirname "$0")/../.." || exit 2
labs=tutorials/labs
. tests/run/json.sh
. tests/run/copy.sh
SEED=${SEED:-1}
DRAWS=${DRAWS:-3}
BOARD=${BOARD:---model gpt2 --vocab 256 --batch 32}
BUDGET=${BUDGET:---device-mem 3G}
HARDWARE=${HARDWARE:-data/hardware/server.txt}
BITS=${BITS-yes}
draws=$(awk -v n="$DRAWS" 'BEGIN { for (i = 1; i <= n; i++) print i }') # 1 2 3
most=8000000 # bytes of an entry, and of a list that a program hands over
base='mesh|zero|stages|pipeline|micro-batch' # what an entry may say of the model's own list
passes='recompute|swap|swap-what|overlap|broadcast-queues|broadcast-slices|broadcast-deal|broadcast-main'
if [ $# -eq 0 ]; then
    sed -n '2,16s/^# *//p' "$0"
    exit 2
fi
TMP=$(mktemp -d) || exit 2
trap 'rm -rf "$TMP"' EXIT
trap 'exit 130' HUP INT TERM
chmod 711 "$TMP" # the user of the sandbox finds its folders, and reads nothing else
mkdir -m 700 "$TMP/own" "$TMP/lists"
own=$TMP/own

refuse() { # WHY: the first reason counts
    [ -n "$why" ] || why=$*
    return 1
}

judge() { # ARGUMENTS...: the judge's own program, within limits
    (ulimit -t 120 && ulimit -v 8000000 && timeout 200 ./yard "$@") </dev/null
}

# "yard: /tmp/tmp.x/own/judged.txt, line 3: there is no tensor x" gives "line 3: there is no tensor x".
said() { # FILE: what the judge's program says is wrong, without its files
    sed -n "s|$TMP/[a-z/.-]*[,:] ||g; s/^yard: //p" "$1" | head -n 1
}

# ---- hardware -------------------------------------------------------------------------------------------------------

# Each rate and time is multiplied by a number from 0.8 to 1.25, which follows from SEED (Park and Miller 1988).  The
# line "link upload = 12e9 10us" may give "link upload = 1.31e+10 10us".
draw_hardware() { # NTH
    awk -v state=$(((SEED * 7919 + $1 * 104729) % 2147483646 + 1)) '
        function factor() {
            state = state * 16807 % 2147483647
            return exp((2 * state / 2147483647 - 1) * log(1.25))
        }
        BEGIN {
            for (i = 0; i < 5; i++)
                factor()
        }
        /^(flops|bandwidth|launch|host_bandwidth|host_launch|link [a-z]+) *=/ {
            value = $0
            sub(/^[^=]*= */, "", value)
            printf "%s= %.6g %s\n", substr($0, 1, index($0, "=") - 1), value * factor(), \
                value ~ /^[^ ]+ +[0-9]/ ? substr(value, index(value, " ") + 1) : ""
            next
        }
        { print }' "$HARDWARE"
}

# ---- options --------------------------------------------------------------------------------------------------------

# Lines `NAME = VALUE` of names that match; each is written anew, so that nothing else comes through.
take_options() { # FILE NAMES TO: false, with the sentence in $TMP/own/fault
    awk -v names="^($2)\$" '
        { sub(/#.*/, "") }
        NF == 0 { next }
        {
            at = index($0, "=")
            name = substr($0, 1, at - 1)
            value = substr($0, at + 1)
            gsub(/^[ \t]+|[ \t\r]+$/, "", name)
            gsub(/^[ \t]+|[ \t\r]+$/, "", value)
            fault = ""
            if (!at || name !~ names)
                fault = "line " NR " sets an option that is not an entry'\''s to say"
            else if (value !~ /^[A-Za-z0-9=,]+$/)
                fault = "line " NR ": the value of " name " has other characters than letters, digits, = and ,"
            if (fault != "") {
                print fault | "cat 1>&2"
                exit 1
            }
            print name " = " value
        }' "$1" >"$3" 2>"$own/fault" || refuse "$(cat "$own/fault")"
}

# Sets ms to the mean over all draws.  $nth in WORDS is the number of the draw.
mean() { # FUNCTION ARGUMENT...
    total=0
    for nth in $draws; do
        "$@" "$nth" || return 1
        step=$(json_value "$own/answer" step_ms)
        [ -n "$step" ] || refuse 'the judge has no simulated time' || return 1
        total=$(awk -v a="$total" -v b="$step" 'BEGIN { printf "%.6f", a + b }')
    done
    ms=$(awk -v a="$total" -v n="$DRAWS" 'BEGIN { printf "%.3f", a / n }')
}

simulate_options() { # OPTIONS NTH
    judge plan --config "$1" $BOARD $BUDGET --hardware "$own/hardware.$2" --simulate --verify --json \
        >"$own/answer" 2>"$own/said" || refuse "$(said "$own/said")"
}

devices_of() { # OPTIONS: how many the mesh has; "mesh = dp=2,pp=4" gives 8, no mesh nothing
    sed -n 's/^mesh = //p' "$1" | tail -n 1 | awk '{
        n = 1
        count = split($0, part, /[,=]/)
        for (i = 2; i <= count; i += 2)
            n *= part[i]
        print n
    }'
}

# A short real training of a small model, with the bits that it has without techniques?
compare_bits() { # OPTIONS
    bits=-
    [ -n "$BITS" ] || return 0
    devices=$(devices_of "$1")
    grep -E "^($base) =" "$1" >"$own/base.options"
    for options in "$own/base.options" "$1"; do
        rm -rf "$own/trained.${options##*/}"
        judge train --config "$options" --model tiny --layers 4 --batch 16 --data LICENSE --steps 2 --val-batches 1 \
            --sample-tokens 0 -d "0:0x${devices:-1}" --save "$own/trained.${options##*/}" >/dev/null 2>&1 || return 0
    done
    bits=other
    cmp -s "$own/trained.base.options/model.safetensors" "$own/trained.${1##*/}/model.safetensors" && bits=same
}

judge_options() { # ENTRY
    take_options "$1" "$base|$passes" "$own/entry.options" && mean simulate_options "$own/entry.options" &&
        compare_bits "$own/entry.options"
}

# ---- lists ----------------------------------------------------------------------------------------------------------

own_list() { # OPTIONS NTH [OPTION...]: prints the model's own list
    options=$1 hardware=$own/hardware.$2
    shift 2
    judge plan --config "$options" $BOARD --device-mem 1024G --hardware "$hardware" --print-list "$@"
}

# The model's own list, and the same with all updates on the host, which gives their times there: for the open hardware
# and for each draw.  Where no update can be on the host, the two are one.
make_models() { # OPTIONS: what the entry says of the model's list
    for nth in open $draws; do
        own_list "$1" "$nth" >"$own/model.$nth" 2>"$own/said" || refuse "$(said "$own/said")" || return 1
        own_list "$1" "$nth" --overlap all-cpu >"$own/host.$nth" 2>"$own/said" ||
            cp "$own/model.$nth" "$own/host.$nth"
    done
}

simulate_list() { # LIST NTH
    awk -f $labs/league.awk "$own/model.open" "$own/host.open" "$own/model.$2" "$own/host.$2" "$1" \
        >"$own/judged.txt" 2>"$own/fault" || refuse "$(head -n 1 "$own/fault")" || return 1
    if [ "$2" = 1 ]; then
        cp "$own/judged.txt" "$own/first"
    fi
    judge plan --list "$own/judged.txt" --like "$own/model.$2" --clip 0 $BUDGET --simulate --verify --json \
        >"$own/answer" 2>"$own/said" || refuse "$(said "$own/said")"
}

# A list counts once: a copy of one that was judged before gets nothing.
must_be_new() { # NAME
    for other in "$TMP"/lists/*; do
        [ ! -f "$other" ] || ! cmp -s "$own/first" "$other" ||
            refuse "it hands over the list of ${other##*/}" || return 1
    done
    cp "$own/first" "$TMP/lists/$1"
}

judge_list() { # ENTRY LIST NAME: the entry may begin with lines `#= NAME = VALUE` of the model's own list
    sed -n 's/^#= *//p' "$1" >"$own/said-of-model"
    bits=-
    take_options "$own/said-of-model" "$base" "$own/base.options" && make_models "$own/base.options" &&
        mean simulate_list "$2" && must_be_new "$3"
}

# ---- passes ---------------------------------------------------------------------------------------------------------

# A copy of the tree, built: without the labs' graders, and without what no build needs.
make_stage() {
    if [ -d "$TMP/stage" ]; then
        return 0
    fi
    copy_files "$TMP/stage" Makefile README.md cl data src tests tutorials/*.md tutorials/gdb
    copy_build "$TMP/stage"
    chmod -R a+rX "$TMP/stage"
}

judge_pass() { # ENTRY NAME
    [ -n "$sandbox" ] || refuse 'this machine has no sandbox (unprivileged namespaces), so no pass is judged' ||
        return 1
    rm -rf "$TMP/new" "$TMP/new.box"
    mkdir "$TMP/new"
    folder=$(awk -v to="$TMP/new" -f $labs/unpack.awk "$1" 2>"$own/fault")
    [ ! -s "$own/fault" ] || refuse "$(head -n 1 "$own/fault")" || return 1
    [ -n "$folder" ] || refuse 'there is no file in the patch' || return 1
    [ ! -e "src/techniques/$folder" ] || refuse "src/techniques/$folder is there already" || return 1
    make_stage
    run_pass "$1" >"$own/handed.txt"
    must_be_list "$own/handed.txt" && judge_list "$1" "$own/handed.txt" "$2"
}

# The patch's lines `#= NAME = VALUE` and `#+ NAME = VALUE` are options of the run.  Descriptor 3 carries the list past
# the pipe that cuts what the program says.  A list is cut too, but a byte later than allowed: must_be_list() sees that.
run_pass() { # ENTRY, whose files are in $TMP/new: prints the list that its program hands over
    mkdir -p "$TMP/stage/league"
    cp "$HARDWARE" "$TMP/stage/league/hardware.txt"
    sed -n 's/^#[=+] *//p' "$1" >"$TMP/stage/league/options"
    chmod -R a+rX "$TMP/new" "$TMP/stage/league"
    {
        sh $labs/sandbox.sh "$TMP/stage" "$TMP/new" $BOARD $BUDGET --hardware league/hardware.txt \
            --config league/options --print-list 2>&1 >&3 3>&- | head -c 100000 >"$own/words"
    } 3>&1 | head -c $((most + 1))
}

must_be_list() { # FILE
    show_words
    [ -s "$1" ] || refuse 'its program hands over no list: it does not build, fails, or is ended by a limit' || return 1
    [ "$(wc -c <"$1")" -le $most ] || refuse "its program hands over more than $most bytes"
}

show_words() { # of a program, without what a terminal obeys
    if [ -n "${WORDS-}" ]; then
        tail -n 20 "$own/words" | tr -cd ' -~\n' | cut -c 1-200 | sed 's/^/    | /' >&2
    fi
}

# ---- entries --------------------------------------------------------------------------------------------------------

judge_entry() { # ENTRY: prints "MS BITS NAME", or "- NAME refused: WHY"
    why=''
    ms=''
    bits=-
    # A name that a line of the table can hold.
    name=$(printf '%s' "${1##*/}" | tr -c 'A-Za-z0-9._-' '?' | cut -c 1-40)
    rm -rf "$own"/entry* "$own"/judged* "$own"/first
    must_be_readable "$1" && cat "$1" >"$own/entry" && judge_by_kind
    if [ -z "$why" ]; then
        echo "$ms $bits $name"
    else
        echo "- $name refused: $(printf '%s' "$why" | tr -cd ' -~' | cut -c 1-300)"
    fi
}

must_be_readable() { # ENTRY, whose name is $name
    if [ "$name" != "${1##*/}" ]; then
        refuse 'its name has other characters than letters, digits, . _ and -, or more than 40'
    elif [ -L "$1" ] || [ ! -f "$1" ]; then
        refuse 'it is a link, or no plain file'
    elif [ "$(wc -c <"$1")" -gt $most ]; then
        refuse "it has more than $most bytes"
    fi
}

judge_by_kind() { # the entry in $own/entry, by the ending of $name
    case $name in
    *.txt) judge_list "$own/entry" "$own/entry" "$name" ;;
    *.patch) judge_pass "$own/entry" "$name" ;;
    *) judge_options "$own/entry" ;;
    esac
}

judge_all() { # ENTRY...: a line for each
    for entry; do
        case $entry in
        /*) judge_entry "$entry" ;;
        *) judge_entry "$here/$entry" ;;
        esac
    done
}

# Lines "410.123 same fast.options" become rows, the shortest step first, and lines "- NAME refused: WHY" come last.
print_table() {
    sort -n | awk '
        $1 == "-" {
            sub(/^- /, "")
            refused[++n_refused] = $0
            next
        }
        { printf "%3d. %12s ms  bits %-5s  %s\n", ++rank, $1, $2, $3 }
        END {
            for (i = 1; i <= n_refused; i++)
                print "     " refused[i]
        }'
}

cp "$HARDWARE" "$own/hardware.open" || exit 2
for nth in $draws; do draw_hardware "$nth" >"$own/hardware.$nth"; done
sandbox=
sh $labs/sandbox.sh --works && sandbox=yes
judge_all "$@" >"$own/table"
print_table <"$own/table"
