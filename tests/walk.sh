#!/bin/sh
# walk.sh - walks the pages as a student would, in a copy of the project.  Every command of an indented block is run.
# What the page says is compared with what its commands printed: blocks line by line, prose and tables by their
# numbers.  What it tells the student to change is changed.
#
#     plan's output (but of a measured profile)     word for word, as that of a simulated bench
#     other output                                  counts and sizes as they are; losses, times and rates may differ
#     a line that ends in "..."                     only its beginning counts; "..." alone stands for what is left out
#     a command that fails                          the page must show the sentence
#     blocks between ```                            not looked at: pictures, what is typed into gdb, sample text
#     <!-- test: COMMAND -->                        what the text tells the student to change by hand
#     <!-- by hand: WHY -->                         a change that no test makes
#     <!-- numbers: COMMAND -->                     prints numbers of the next paragraph (or list, or table)
#     <!-- sum: EXPRESSION, ... -->                 computes some of them from numbers that are shown
#     <!-- measured: ON WHAT -->                    numbers of the next paragraph or block that no test can see,
#                                                   but for tasks
#     --png build/NAME.png                          of a simulated step: the page's picture, byte for byte, unless none
#                                                   is (another zlib packs otherwise)
#
# A number of prose or of a table is right if it stands in a block of its page, in code of its paragraph, in a list of
# data/steps that a shown command reads, in what a mark before its paragraph prints, or with the same unit in what plan
# printed; all rounded to its digits: 13.5 is 13.500 and 13.46, and 96 % is 96.2 %, but a count is itself.  Not
# compared are whole numbers to 10 without a unit, numbers that are part of a name or formula (GPT-2, 1F1B, 32-bit,
# OpenCL 1.2, 12/N), years of papers, and links.  Code that quotes output (`at least 12.000 ms`) must be in it, or is
# read as prose.
#
# A paragraph or item that begins with "Try", "Replace" and the like, or tells in a section "Change it" to write,
# replace or leave out something, must have a mark in it or behind it, or a command if it changes no file.
#
# PAGES names those that are walked.  Else `make test` (YARD_TESTS=test) takes two, `make check` the others, and a run
# by hand all.  Long runs are cut short, but for traced ones: their records are counted.  Outputs are compared on a CPU
# with PoCL, where they come from; elsewhere the commands are only run.
#
# A page goes through these files of $TMP, by the programs of tests/walk, whose heads show examples:
#
#     page.awk       takes it apart             page
#     here           commands are run           exact, loose and proof: what they printed; wrong: which of them failed
#     said.awk       what should be printed     said
#     lines.awk      is it?                     more of wrong
#     numbers.awk    the numbers of prose       more of wrong
#     edits.awk      what is to be changed      more of wrong
#
# In the end `compared` has a line for each line, number and change that was compared, and they are counted.
set -u
LC_ALL=C
export LC_ALL
TOP=$(pwd)
PROGRAMS=$TOP/tests/walk
YARD=${YARD:-./yard}
case $YARD in /*) ;; *) YARD=$TOP/$YARD ;; esac # we go elsewhere
TMP=$(cd "${TMP:-$(mktemp -d)}" && pwd)

. tests/report.sh

# ---- the copy -------------------------------------------------------------------------------------------------------

prepare_copy() { # and go there.  It is built already, so that make compiles only what is edited
    walk=$TMP/walk
    mkdir -p "$walk/build" "$walk/tests"
    cp -Rp Makefile README.md LICENSE cl data src tutorials "$walk"
    cp -Rp tests/data tests/packages.sh "$walk/tests"
    cp -Rp build/src build/embedded.* build/packages "$walk/build"
    cd "$walk" || exit 1
    MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed 's/--jobserver[^ ]*//g') # its own jobs, the same compiler
    export MAKEFLAGS
    make -s build/flags
    find build -type f -exec touch {} +
    cp "$YARD" yard
    for text in my.txt tinyshakespeare.txt; do cp LICENSE $text; done
}

look_at_devices() { # is the first platform PoCL, whose output the pages show?  Can its device be cut in two?
    ./yard devices >"$TMP/devices"
    same=no
    ! grep -q '^platform 0: Portable Computing Language' "$TMP/devices" || same=yes
    half=x2 # where not, two devices are one twice: what is printed is alike but for this name
    ! grep -q -e '-d 0:0/2' "$TMP/devices" || half=/2
}

as_cut() { # names of devices as the pages have them
    sed "s|0:0$half|0:0/2|g"
}

edit() { # FILE SCRIPT...: the original with these changes; fails if it is left as it was, but for an empty script
    file=$1
    shift
    printf '%s\n' "$@" >"$TMP/script"
    sed -f "$TMP/script" "$TOP/$file" >"$file"
    [ -z "$*" ] || ! cmp -s "$TOP/$file" "$file"
}

# ---- the commands of a page -----------------------------------------------------------------------------------------

shorten() { # COMMAND: fewer steps, no long evaluation
    case $1 in
    *'yard train'*--trace*) long='[0-9]{3,}' ;;
    *) long='[0-9]{2,}' ;;
    esac
    case $1 in
    *'yard train'*)
        echo "$1" | sed -E "s/--steps $long/--steps 4/; s/--warmup [0-9]+/--warmup 2/
            s/yard train/& --val-batches 1 --sample-tokens 0/" ;;
    *'yard sample'*) echo "$1 --count 20" ;;
    'make demo') # without making anything
        make -n --no-print-directory demo STEPS=4 | sed -n '/^echo/d; /yard train/,$p' | tr -d '\\' | tr '\n' ' ' |
            sed 's| ./yard| \&\& ./yard|g; s/$/ --count 20/' ;;
    *) echo "$1" ;;
    esac
}

takes_minutes() { # COMMAND
    case $1 in
    *'yard bench'*--hardware*) return 1 ;;
    *'yard bench'* | 'make test') return 0 ;;
    esac
    return 1
}

file_of() { # COMMAND: where its output goes
    case $1 in
    *--profile*) echo "$TMP/loose" ;;
    *'yard plan'* | *'yard bench'*) echo "$TMP/exact" ;;
    *) echo "$TMP/loose" ;;
    esac
}

run_block() { # COMMAND: of a block, or of a mark "test"
    ! takes_minutes "$1" || return
    command=$(shorten "$1" | sed "s|0:0/2|0:0$half|g")
    run "$command" "$(file_of "$command")" ''
}

run_proof() { # KIND N WORDS: of a mark "numbers" or "sum"
    paragraph=${2%% *} command=${2#* }
    [ "$1" = numbers ] ||
        command="awk 'function p(x) { printf \"%.9f\n\", x }
            BEGIN { p($(echo "$command" | sed 's/, /); p(/g')) }'"
    run "$command" "$TMP/proof" "$paragraph "
}

run() { # COMMAND FILE BEFORE: what it prints goes to FILE, with BEFORE in front of each line
    echo "$(date +%S) $1" >>"$TMP/ran"
    (eval "$1") >"$TMP/out" 2>&1 </dev/null # in a shell of its own, which a mistake in a mark ends
    code=$?
    as_cut <"$TMP/out" | sed "s/^/$3/" >>"$2"
    compare_picture "$1"
    said=$(sed -n '/^yard: /{p;q;}; /^FAILED/{p;q;}' "$TMP/out" | cut -c 1-20)
    [ $code -eq 0 ] || { [ -n "$said" ] && grep -qF "$said" "$TMP/page"; } || # a failure that the page shows
        echo "exit code $code: $1: $said" >>"$TMP/wrong"
}

compare_picture() { # COMMAND: the picture that it has drawn with the page's
    name=$(echo "$1" | sed -n 's|.*--png build/\([^ ]*\).*|\1|p')
    [ "$name" != predicted.png ] || return # that one shows a paced run too
    [ -f "tutorials/pictures/$name" ] || return
    list=$TMP/unlike
    ! cmp -s "build/$name" "tutorials/pictures/$name" || list=$TMP/alike
    echo "$name is another picture" >>"$list"
}

run_commands() { # of the page, in its order
    for file in exact loose proof wrong; do : >"$TMP/$file"; done
    grep -E '^(run|numbers|sum) ' "$TMP/page" | while read -r kind words; do
        case $kind in
        run) run_block "$words" ;;
        *) run_proof "$kind" "$words" ;;
        esac
    done
}

# ---- what they printed, beside what the page says -------------------------------------------------------------------

compare_lines() {
    cat src/*/*/*.[ch] cl/*.cl >"$TMP/sources"
    awk -f "$PROGRAMS/lines.awk" file=exact "$TMP/exact" "$TMP/sources" file=loose "$TMP/loose" file=said "$TMP/said"
    sed 's/.*/line/' "$TMP/said" >>"$TMP/compared"
}

compare_numbers() {
    sed -n 's/^shown //p' "$TMP/page" | as_cut | cat - "$TMP/said" >"$TMP/shown"
    lists=$(grep '^shown ' "$TMP/page" | grep -o 'data/steps/[^ ]*\.txt' | sort -u)
    [ -z "$lists" ] || cat $lists >>"$TMP/shown"
    sed -n 's/^sum /text /p' "$TMP/page" | cat - "$TMP/page" | grep -E '^(text|measured) ' >"$TMP/prose"
    awk -v compared="$TMP/compared" -f "$PROGRAMS/numbers.awk" file=shown "$TMP/shown" file=exact "$TMP/exact" \
        file=loose "$TMP/loose" file=proof "$TMP/proof" file=prose "$TMP/prose"
}

find_edits() {
    awk -v compared="$TMP/compared" -f "$PROGRAMS/edits.awk" "$TMP/page"
}

walk_page() { # PAGE: what is wrong with it goes to $TMP/wrong
    awk -f "$PROGRAMS/page.awk" "$1" >"$TMP/page"
    run_commands
    as_cut <"$TMP/page" | awk -f "$PROGRAMS/said.awk" >"$TMP/said"
    {
        [ $same = no ] || ! grep -q '^run ' "$TMP/page" || compare_lines
        compare_numbers
        find_edits
    } >>"$TMP/wrong"
}

choose_pages() {
    few='tutorials/01-first-run.md tutorials/02-the-step-is-a-list.md'
    case ${YARD_TESTS:-all} in
    test) echo "$few" ;;
    check) ls README.md tutorials/*.md | grep -vxF "$(echo "$few" | tr ' ' '\n')" ;;
    *) ls README.md tutorials/*.md ;;
    esac
}

prepare_copy
look_at_devices
for page in ${PAGES:-$(choose_pages)}; do
    walk_page "$page"
    no_complaints "$TMP/wrong" "$page"
done
: >"$TMP/wrong" # of pictures only if one is alike: another zlib packs all of them otherwise
[ ! -s "$TMP/alike" ] || [ ! -s "$TMP/unlike" ] || cp "$TMP/unlike" "$TMP/wrong"
no_complaints "$TMP/wrong" 'pictures'
[ $same = yes ] || skip 'what they print' 'platform 0 is not PoCL'
for kind in line number measured edit; do
    echo "# $kind: $(grep -c "^$kind" "$TMP/compared")"
done
finish
