#!/bin/sh
# walk.sh - walks the pages as a student would, in a copy of the project: runs their commands, compares what a page says
# with what they printed, and makes the changes that it tells the student to make.
#
#     PAGES=tutorials/03-a-kernel.md tests/pages/walk.sh       that page.  Without PAGES: `make test`
#                                  (YARD_TESTS=test) takes two pages, `make check` the others, a run by hand all
#
# A page is Markdown.  Where that does not tell enough, it has marks: comments <!-- KIND: WORDS -->, which a reader does
# not see, and which may go on in the next line.  An example, with what is done beside each line:
#
#         ./yard plan --model tiny --simulate           a command of an indented block is run
#         simulated step: 8.000 ms, ...                 this line must have been printed; ... is for the rest of it
#
#     <!-- numbers: wc -l <cl/gelu.cl -->               this is run: its numbers prove some of the next paragraph
#     <!-- sum: 8.000/2, log(256) -->                   awk computes these, and they prove numbers of it too
#     Half a step takes 4 ms, by a kernel of 24 lines.  a number that nothing proves is a complaint
#
#     <!-- measured: on one H100 -->                    the numbers of the next paragraph or block are not looked for,
#     There it takes 0.3 ms.                            since no test can see them; only numbers of tasks are
#
#     Replace the 2 in src/a/b/c.c by a 3, and make.    a change: without a mark behind it, it would be a complaint
#     <!-- test: edit src/a/b/c.c 's/2/3/' && make -->  so this is run; edit() is below
#     <!-- by hand: it takes gdb -->                    or this says why no test makes the change
#
# The rules:
#
#     a line of output         what `yard plan` prints (but of a measured profile), and a simulated `yard bench`, must
#                              be as it is shown; of other commands losses, times and rates may differ, but not counts
#                              and sizes.  A line that is "..." alone stands for lines that are left out
#     a command that fails     the page must show the sentence
#     between ``` and ```      nothing is looked at: pictures, what is typed into gdb, sample text
#     a number of prose        is proved by a block of its page, by code of its paragraph, by a list of data/steps
#                              that a shown command reads, by a mark before its paragraph, or, if the unit is the
#                              same, by what plan printed.  It may be rounded: 13.5 is 13.500 and 13.46, and 96 % is 96.2 %, but a
#                              count is itself.  Not looked for are whole numbers to 10 without a unit, numbers that
#                              are part of a name or formula (GPT-2, 1F1B, 32-bit, OpenCL 1.2, 12/N), years of papers,
#                              and links.  Code that quotes output (`at least 12.000 ms`) must have been printed; else
#                              its numbers are looked for like those of prose
#     a change                 is told by a paragraph or item that begins with "Try", "Replace" and the like, or that
#                              in a section "Change it" says to write, replace or leave out something.  A mark proves
#                              it that stands in it, in front of it or behind it; or a command, if it changes no file
#     --png build/NAME.png     of a simulated step draws the page's picture, byte for byte; unless all pictures of the
#                              pages are different, since another zlib packs otherwise
#
# Long runs are cut short, except traced ones, whose records are counted.  Outputs are compared on a CPU with PoCL,
# where they come from; elsewhere the commands are only run.
#
# A page goes through these files of $TMP, by the programs of this folder, whose heads show examples:
#
#     page.awk       takes it apart             page
#     run_commands   runs its commands          exact, loose and proof: what they printed; wrong: which of them failed
#     said.awk       what should be printed     said
#     lines.awk      is it?                     more of wrong
#     numbers.awk    the numbers of prose       more of wrong
#     edits.awk      what is to be changed      more of wrong
#
# In the end `compared` has a line for each line, number and change that was compared, and they are counted.
#
# YARD is the program, TMP an empty folder.  The report is TAP (see run.sh).
set -u
LC_ALL=C
export LC_ALL
TOP=$(pwd)
PROGRAMS=$TOP/tests/pages
YARD=${YARD:-./yard}
case $YARD in /*) ;; *) YARD=$TOP/$YARD ;; esac # we go elsewhere
TMP=$(cd "${TMP:-$(mktemp -d)}" && pwd)

. tests/run/report.sh

# ---- the copy -------------------------------------------------------------------------------------------------------

prepare_copy() { # makes the copy and goes there.  It is built already, so that make compiles only what is edited
    walk=$TMP/walk
    mkdir -p "$walk/build" "$walk/tests/machines"
    cp -Rp Makefile README.md LICENSE cl data src tutorials "$walk"
    cp -Rp tests/data tests/maintain.mk "$walk/tests"
    cp -p tests/machines/packages.sh "$walk/tests/machines"
    cp -Rp build/src build/embedded.* build/packages "$walk/build"
    cd "$walk" || exit 1
    MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed 's/--jobserver[^ ]*//g') # its own jobs, the same compiler
    export MAKEFLAGS
    make -s build/flags
    find build -type f -exec touch {} +
    cp "$YARD" yard
    cp LICENSE my.txt # texts that pages name, and that a student brings along
    cp LICENSE tinyshakespeare.txt
}

# Sets $same: is the first platform PoCL, whose output the pages show?  And $half: pages cut the first device in two and
# call a half 0:0/2; where it cannot be cut, it is taken twice, as 0:0x2, and prints the same but for that name.
look_at_devices() {
    ./yard devices >"$TMP/devices"
    same=no
    if grep -q '^platform 0: Portable Computing Language' "$TMP/devices"; then
        same=yes
    fi
    half=x2
    if grep -q -e '-d 0:0/2' "$TMP/devices"; then
        half=/2
    fi
}

as_cut() { # names of devices as the pages have them
    sed "s|0:0$half|0:0/2|g"
}

# The file becomes the original with these changes of sed.  A script that changes nothing fails, except an empty one,
# which brings the original back.
edit() { # FILE SCRIPT...
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
    if [ "$1" = sum ]; then # "4+8, log(256)": each of them in a line
        values=$(echo "$command" | sed 's/, /); show(/g')
        command="awk 'function show(x) { printf \"%.9f\n\", x } BEGIN { show($values) }'"
    fi
    run "$command" "$TMP/proof" "$paragraph "
}

run() { # COMMAND FILE BEFORE: what it prints goes to FILE, with BEFORE in front of each line
    echo "$(date +%S) $1" >>"$TMP/ran"
    (eval "$1") >"$TMP/out" 2>&1 </dev/null # in a shell of its own, which a mistake in a mark ends
    code=$?
    as_cut <"$TMP/out" | sed "s/^/$3/" >>"$2"
    compare_picture "$1"
    said=$(sed -n '/^yard: /{p;q;}; /^FAILED/{p;q;}' "$TMP/out" | cut -c 1-20)
    if [ $code -ne 0 ] && ! page_shows "$said"; then
        echo "exit code $code: $1: $said" >>"$TMP/wrong"
    fi
}

page_shows() { # SENTENCE
    [ -n "$1" ] && grep -qF "$1" "$TMP/page"
}

# Notes in $TMP/alike or $TMP/unlike whether the picture that the command has drawn is the page's.
compare_picture() { # COMMAND
    name=$(echo "$1" | sed -n 's|.*--png build/\([^ ]*\).*|\1|p')
    [ "$name" != predicted.png ] || return # that one shows a paced run too
    [ -f "tutorials/pictures/$name" ] || return
    if cmp -s "build/$name" "tutorials/pictures/$name"; then
        echo "$name" >>"$TMP/alike"
    else
        echo "$name is another picture" >>"$TMP/unlike"
    fi
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
    if grep -q '^ *python3 tutorials' $page && ! python3 -c '' 2>/dev/null; then
        skip "$page" 'python3 is not installed'
        continue
    fi
    walk_page "$page"
    no_complaints "$TMP/wrong" "$page"
done
: >"$TMP/wrong"
if [ -s "$TMP/alike" ] && [ -s "$TMP/unlike" ]; then # another zlib would pack all of them otherwise
    cp "$TMP/unlike" "$TMP/wrong"
fi
no_complaints "$TMP/wrong" 'pictures'
[ $same = yes ] || skip 'what they print' 'platform 0 is not PoCL'
for kind in line number measured edit; do
    echo "# $kind: $(grep -c "^$kind" "$TMP/compared")"
done
finish
