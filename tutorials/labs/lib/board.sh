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
#     $ tutorials/labs/lib/board.sh fast.options fast.patch
#       1.      410.123 ms  bits same   fast.options
#          fast.patch refused: its program hands over no list: ...

# An entry goes through judge_entry().  Options are carried out (judge_options).  A list is compared with the model's
# own and simulated (judge_list).  A pass is built and run in a sandbox, and its list is judged like any other
# (judge_pass).  A function that rejects an entry says why by reject(), and fails; so does each that has called it.
# tests/scripts/league.sh has the attacks that must not score; a new one is a line there.
#
# Functions leave files for each other in the folder $own, which no entry's program can see:
#
#     entry               the entry
#     why                 the sentence that rejects it; empty if none does
#     hardware.NTH        the hardware that entries know (NTH is `open`), and the draws (NTH is 1, 2 ...)
#     model.NTH           the model's own list for that hardware
#     host.NTH            the same with all updates on the host
#     judged.txt, first   an entry's list as the judge takes it for the present draw, and for the first one
#     answer, said        what ./yard has printed on stdout and on stderr
set -u
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/usage.sh"
[ $# -gt 0 ] || show_usage
here=$PWD # where the files of entries are looked for
cd "$(dirname "$0")/../../.." || exit 2
lib=tutorials/labs/lib
. tests/lib/json.sh
. tests/lib/copy.sh
SEED=${SEED:-1}
DRAWS=${DRAWS:-3}
BOARD=${BOARD:---model gpt2 --vocab 256 --batch 32}
BUDGET=${BUDGET:---device-mem 3G}
HARDWARE=${HARDWARE:-data/hardware/server.txt}
BITS=${BITS-yes}
draws=$(awk -v last="$DRAWS" 'BEGIN { for (nth = 1; nth <= last; nth++) print nth }') # 1 2 3
most=8000000 # bytes of an entry, and of a list that a program hands over
base='mesh|zero|stages|pipeline|micro-batch' # what an entry may say of the model's own list
passes='recompute|swap|swap-what|overlap|broadcast-queues|broadcast-slices|broadcast-deal|broadcast-main'
TMP=$(mktemp -d) || exit 2
trap 'rm -rf "$TMP"' EXIT
trap 'exit 130' HUP INT TERM
chmod 711 "$TMP" # the user of the sandbox finds its folders, and reads nothing else
mkdir -m 700 "$TMP/own" "$TMP/lists"
own=$TMP/own

reject() { # WHY: the first reason counts.  It fails
    [ -s "$own/why" ] || printf '%s\n' "$*" >"$own/why"
    return 1
}

judge() { # ARGUMENTS...: the judge's own program, within limits
    (ulimit -t 120 && ulimit -v 8000000 && timeout 200 ./yard "$@") </dev/null
}

# "yard: /tmp/tmp.x/own/judged.txt, line 3: there is no tensor x" gives "line 3: there is no tensor x".
said() { # FILE: what the judge's program says is wrong, without its files
    sed -n "s|$TMP/[a-z/.-]*[,:] ||g; s/^yard: //p" "$1" | head -n 1
}

# ---- options ---------------------------------------------------------------------------------------------------------

take_options() { # FILE NAMES: prints the file's options, or rejects the entry where it has others than those of NAMES
    awk -v names="$2" -f $lib/options.awk "$1" 2>"$own/fault" || reject "$(cat "$own/fault")"
}

# FUNCTION ARGUMENT... NTH simulates a step on the draw with that number, and leaves $own/answer.
mean() { # FUNCTION ARGUMENT...: prints the mean over all draws, in ms
    : >"$own/steps"
    for nth in $draws; do
        "$@" "$nth" || return 1
        json_value "$own/answer" step_ms >>"$own/steps"
    done
    if [ "$(grep -c '[0-9]' "$own/steps")" -ne "$DRAWS" ]; then
        reject 'the judge has no simulated time'
        return 1
    fi
    awk '
        { sum += $1 }
        END { printf "%.3f\n", sum / NR }' "$own/steps"
}

simulate_options() { # OPTIONS NTH
    # shellcheck disable=SC2086 # options
    judge plan --config "$1" $BOARD $BUDGET --hardware "$own/hardware.$2" --simulate --verify --json \
        >"$own/answer" 2>"$own/said" || reject "$(said "$own/said")"
}

devices_of() { # OPTIONS: how many the mesh has; "mesh = dp=2,pp=4" gives 8, no mesh nothing
    sed -n 's/^mesh = //p' "$1" | tail -n 1 | awk -f $lib/devices.awk
}

train_small() { # OPTIONS DEVICES FOLDER: trains a small model shortly, and saves it there
    judge train --config "$1" --model tiny --layers 4 --batch 16 --data LICENSE --steps 2 --val-batches 1 \
        --sample-tokens 0 -d "0:0x$2" --save "$3" >/dev/null 2>&1
}

# "-": nobody asked, or the small model cannot be trained so.
compare_bits() { # OPTIONS: prints whether a training has the bits that it has without techniques: same, other or -
    if [ -z "$BITS" ]; then
        echo -
        return
    fi
    devices=$(devices_of "$1")
    grep -E "^($base) =" "$1" >"$own/base.options"
    rm -rf "$own/trained"
    mkdir "$own/trained"
    if ! train_small "$own/base.options" "${devices:-1}" "$own/trained/base" ||
        ! train_small "$1" "${devices:-1}" "$own/trained/entry"; then
        echo -
    elif cmp -s "$own/trained/base/model.safetensors" "$own/trained/entry/model.safetensors"; then
        echo same
    else
        echo other
    fi
}

judge_options() { # prints "MS BITS" of the entry
    take_options "$own/entry" "$base|$passes" >"$own/entry.options" || return 1
    ms=$(mean simulate_options "$own/entry.options") || return 1
    echo "$ms $(compare_bits "$own/entry.options")"
}

# ---- lists -----------------------------------------------------------------------------------------------------------

own_list() { # OPTIONS NTH [OPTION...]: prints the model's own list
    options=$1
    hardware=$own/hardware.$2
    shift 2
    # shellcheck disable=SC2086 # options
    judge plan --config "$options" $BOARD --device-mem 1024G --hardware "$hardware" --print-list "$@" 2>"$own/said"
}

# The model's own list, and the same with all updates on the host, which gives their times there: for the open hardware
# and for each draw.  Where no update can be on the host, the two are one.  Entries that say the same of the model share
# these lists: models.options has what those that are there were made with.
make_models() { # OPTIONS: what the entry says of the model's list
    if cmp -s "$1" "$own/models.options"; then
        return 0
    fi
    rm -f "$own/models.options"
    for nth in open $draws; do
        if ! own_list "$1" "$nth" >"$own/model.$nth"; then
            reject "$(said "$own/said")"
            return 1
        fi
        if ! own_list "$1" "$nth" --overlap all-cpu >"$own/host.$nth"; then
            cp "$own/model.$nth" "$own/host.$nth"
        fi
    done
    cp "$1" "$own/models.options"
}

simulate_list() { # LIST NTH
    if ! awk -f $lib/league.awk "$own/model.open" "$own/host.open" "$own/model.$2" "$own/host.$2" "$1" \
        >"$own/judged.txt" 2>"$own/fault"; then
        reject "$(head -n 1 "$own/fault")"
        return 1
    fi
    if [ "$2" = 1 ]; then
        cp "$own/judged.txt" "$own/first"
    fi
    # shellcheck disable=SC2086 # options
    judge plan --list "$own/judged.txt" --like "$own/model.$2" --clip 0 $BUDGET --simulate --verify --json \
        >"$own/answer" 2>"$own/said" || reject "$(said "$own/said")"
}

# A list counts once: a copy of one that was judged before gets nothing.  The lists lie in $TMP/lists/1/NAME,
# $TMP/lists/2/NAME ..., since two entries in different folders may have one name.
must_be_new() { # NAME
    judged=0
    for other in "$TMP"/lists/*/*; do
        [ -f "$other" ] || continue
        judged=$((judged + 1))
        if cmp -s "$own/first" "$other"; then
            reject "it hands over the list of ${other##*/}"
            return 1
        fi
    done
    mkdir "$TMP/lists/$((judged + 1))"
    cp "$own/first" "$TMP/lists/$((judged + 1))/$1"
}

# The entry may begin with lines `#= NAME = VALUE`, which say of which model its list is.
judge_list() { # LIST NAME: prints "MS -"
    sed -n 's/^#= *//p' "$own/entry" >"$own/said-of-model"
    take_options "$own/said-of-model" "$base" >"$own/base.options" || return 1
    make_models "$own/base.options" || return 1
    ms=$(mean simulate_list "$1") || return 1
    must_be_new "$2" || return 1
    echo "$ms -"
}

# ---- passes ----------------------------------------------------------------------------------------------------------

# A copy of the tree, built: without the labs' graders, and without what no build needs.  The sandbox's make sees none
# of our variables, such as WERROR; nor may the make that copy_build() calls, else each pass would compile everything.
make_stage() {
    if [ -d "$TMP/stage" ]; then
        return 0
    fi
    copy_files "$TMP/stage" Makefile README.md cl data src tests tutorials/*.md
    env -i PATH="$PATH" LC_ALL=C sh -c '. tests/lib/copy.sh && copy_build "$1"' sh "$TMP/stage"
    chmod -R a+rX "$TMP/stage"
}

unpack_pass() { # its files go to $TMP/new
    rm -rf "$TMP/new" "$TMP/new.box"
    mkdir "$TMP/new"
    folder=$(awk -v to="$TMP/new" -f $lib/unpack.awk "$own/entry" 2>"$own/fault")
    if [ -s "$own/fault" ]; then
        reject "$(head -n 1 "$own/fault")"
    elif [ -z "$folder" ]; then
        reject 'there is no file in the patch'
    elif [ -e "src/techniques/$folder" ]; then
        reject "src/techniques/$folder is there already"
    fi
}

# The entry's lines `#= NAME = VALUE` and `#+ NAME = VALUE` are options of the run.  Descriptor 3 carries the list past
# the pipe that cuts what the program says.  A list is cut too, but a byte later than allowed: must_be_list() sees that.
run_pass() { # prints the list that the program of the unpacked pass hands over; what it says goes to $own/words
    mkdir -p "$TMP/stage/league"
    cp "$HARDWARE" "$TMP/stage/league/hardware.txt"
    sed -n 's/^#[=+] *//p' "$own/entry" >"$TMP/stage/league/options"
    chmod -R a+rX "$TMP/new" "$TMP/stage/league"
    {
        # shellcheck disable=SC2086 # options
        sh $lib/sandbox.sh "$TMP/stage" "$TMP/new" $BOARD $BUDGET --hardware league/hardware.txt \
            --config league/options --print-list 2>&1 >&3 3>&- | head -c 100000 >"$own/words"
    } 3>&1 | head -c $((most + 1))
}

show_words() { # of a program, without what a terminal obeys
    if [ -n "${WORDS-}" ]; then
        tail -n 20 "$own/words" | tr -cd ' -~\n' | cut -c 1-200 | sed 's/^/    | /' >&2
    fi
}

must_be_list() { # FILE
    if [ ! -s "$1" ]; then
        reject 'its program hands over no list: it does not build, fails, or is ended by a limit'
    elif [ "$(wc -c <"$1")" -gt $most ]; then
        reject "its program hands over more than $most bytes"
    fi
}

judge_pass() { # NAME: prints "MS -"
    if ! sh $lib/sandbox.sh --works; then
        reject 'this machine has no sandbox (unprivileged namespaces), so no pass is judged'
        return 1
    fi
    unpack_pass || return 1
    make_stage
    run_pass >"$own/handed.txt"
    show_words
    must_be_list "$own/handed.txt" || return 1
    judge_list "$own/handed.txt" "$1"
}

# ---- entries ---------------------------------------------------------------------------------------------------------

must_be_readable() { # ENTRY NAME
    if [ "$2" != "${1##*/}" ]; then
        reject 'its name has other characters than letters, digits, . _ and -, or more than 40'
    elif [ -L "$1" ] || [ ! -f "$1" ]; then
        reject 'it is a link, or no plain file'
    elif [ "$(wc -c <"$1")" -gt $most ]; then
        reject "it has more than $most bytes"
    fi
}

judge_by_kind() { # NAME, whose ending says what the entry is: prints "MS BITS"
    case $1 in
    *.txt) judge_list "$own/entry" "$1" ;;
    *.patch) judge_pass "$1" ;;
    *) judge_options ;;
    esac
}

judge_entry() { # ENTRY: prints "MS BITS NAME", or "- NAME refused: WHY"
    # A name that a line of the table can hold.
    name=$(printf '%s' "${1##*/}" | tr -c 'A-Za-z0-9._-' '?' | cut -c 1-40)
    rm -rf "$own"/entry* "$own"/judged* "$own"/first
    : >"$own/why"
    if must_be_readable "$1" "$name" && cat "$1" >"$own/entry" && score=$(judge_by_kind "$name"); then
        echo "$score $name"
    else
        echo "- $name refused: $(tr -cd ' -~' <"$own/why" | cut -c 1-300)"
    fi
}

# ---- the judgement ---------------------------------------------------------------------------------------------------

cp "$HARDWARE" "$own/hardware.open" || exit 2
for nth in $draws; do
    awk -v seed="$SEED" -v nth="$nth" -f $lib/draw.awk -f $lib/hardware.awk "$HARDWARE" >"$own/hardware.$nth"
done
for entry in "$@"; do
    case $entry in
    /*) judge_entry "$entry" ;;
    *) judge_entry "$here/$entry" ;;
    esac
done >"$own/table"
sort -n "$own/table" | awk -f $lib/table.awk
