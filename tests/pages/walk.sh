#!/bin/sh
# walk.sh - walks through the pages as a student would, in a copy of the project.
#
# This script runs the commands of each page, compares what the page shows with what they printed, and makes the changes
# that the page tells the student to make.
#
#     PAGES=tutorials/05-a-kernel.md tests/pages/walk.sh       that page.  Without PAGES: `make test`
#                                  (YARD_TESTS=test) takes two pages, `make check` the others, a run by hand all
#
# It prints a check for each page, with its complaints below it, and in the end how much was compared:
#
#     ok 1 - tutorials/01-first-run.md                         # line: 97
#     not ok 2 - tutorials/05-a-kernel.md                      # number: 310
#     #   not printed:      step 2: 8.001 ms, ...              # edit: 4
#
# A page is Markdown.  A block that is indented has commands, and lines that they print.  What else this test needs to
# know is in marks.  They would be in the way of those who read the page as text, so they stand in a file beside it,
# tests/pages/marks/PAGE.marks, and marks.awk puts them into the page.  A page of twelve lines with its marks, and what
# the walk does with each:
#
#      1      ./yard plan --model tiny --simulate             runs it: a block's line that begins like a command
#      2      simulated step: 8.000 ms, ...                   looks for this line in what was printed; ... is the rest
#      3
#      4  <!-- numbers: wc -l <cl/gelu.cl; compute 8/2 -->    runs it: it prints 24 and 4, which prove
#      5  Half a step takes 4 ms, by a kernel of 24 lines.    the numbers of this paragraph
#      6
#      7  <!-- measured: on one H100 -->                      runs nothing: no test can prove
#      8  There it takes 0.3 ms.                              this number
#      9
#     10  Replace the 2 in `src/a/b.c` by a 3, and `make`.    notes that the page tells to change something
#     11  <!-- test: edit src/a/b.c 's/2/3/' && make -->      makes the change in a copy of the project
#     12  <!-- by hand: gdb -->                               would say that no test makes it
#
# There are complaints where a command fails, unless the page shows its sentence; where line 2 was not printed; where a
# number of line 5 comes from nowhere, neither from a block nor from a mark; and where line 10 has neither line 11 nor
# 12.  The walk does not look at blocks between ``` and ```, which hold pictures, words for gdb, and sample text.
#
# The marks are
#
#     numbers: COMMAND      runs it: what it prints proves numbers of the paragraph that follows
#     section: COMMAND      the same, for all paragraphs of the section, from heading to heading
#     measured: WHERE       numbers of the paragraph or block that follows are of that machine; nothing proves them
#     tables: FIRST LINE    the same for all tables below the mark that begin with this line
#     test: COMMAND         runs it: it makes a change that the text in front or behind tells to make
#     by hand: WHY          no test makes the change
#     curves: PAPER         does nothing here.  It is in the page, where src/gallery/gallery.sh fills the block below it
#
# To add a page, write it with its blocks, run the walk with PAGES=, and add a mark for each complaint.
# Commands are any of the shell; those of marks also have edit() and compute(), which are below.
#
# To see it fail: change a number of a page.
#
# walk_page() is the way of one page.  Its steps are functions of this file and awk programs that lie beside it.  Each
# of these begins with an example, and with the rules: what the parts of a page are (page.awk), which lines must be as
# shown (said.awk and lines.awk), which numbers are proved (numbers.awk), what counts as a change (edits.awk).  What the
# steps leave for each other are files of $TMP:
#
#     page                  the page, taken apart: a line for each part
#     exact, loose, proof   what was printed: to be as shown, to be as shown but for times, and by marks "numbers"
#     said                  the lines of blocks that should have been printed
#     wrong                 the complaints, a line each
#     compared              a word for each line, number and change that was compared
#
# Two things depend on the machine.  Outputs are compared where they come from, on a CPU with PoCL; elsewhere the
# commands are only run.  And long runs are cut short (tests/lib/shorten.sh).
. tests/lib/helpers.sh
. tests/lib/copy.sh
. tests/lib/shorten.sh

TOP=$(pwd)
PROGRAMS=$TOP/tests/pages

# ---- the way of a page -----------------------------------------------------------------------------------------------

walk_page() { # PAGE: what is wrong with it goes to $TMP/wrong
    : >"$TMP/wrong"
    if [ ! -s "$1" ]; then
        echo 'there is no such page, or nothing in it' >"$TMP/wrong"
        return
    fi
    with_marks "$1" | awk -f "$PROGRAMS/page.awk" >"$TMP/page"
    run_commands
    awk -f "$PROGRAMS/said.awk" "$TMP/page" >"$TMP/said"
    for step in unknown_marks compare_lines compare_numbers compare_edits; do
        $step >>"$TMP/wrong" || echo "$step fails" >>"$TMP/wrong"
    done
}

with_marks() { # PAGE: prints it, with the marks that stand in a file beside it
    marks=$PROGRAMS/marks/${1%.md}.marks
    [ -e "$marks" ] || marks=/dev/null
    awk -v wrong="$TMP/wrong" -f "$PROGRAMS/marks.awk" "$marks" "$1"
}

# ---- the commands of a page ------------------------------------------------------------------------------------------

run_commands() { # of the page, in its order: those of blocks and of marks
    : >"$TMP/exact"
    : >"$TMP/loose"
    : >"$TMP/proof"
    grep -E '^(run|numbers) ' "$TMP/page" | while read -r kind words; do
        case $kind in
        run) run_block "$words" ;;
        numbers) # its words are the number of the paragraph or section, and the command
            paragraph=${words%% *}
            run_proof "$paragraph" "${words#* }" ;;
        esac
    done
}

run_block() { # COMMAND: of a block, or of a mark "test"
    if takes_minutes "$1"; then
        return
    fi
    command=$(shorten "$1")
    run "$command"
    cat "$TMP/printed" >>"$(file_of "$command")"
}

file_of() { # COMMAND: where its output goes
    case $1 in
    *--profile*) echo "$TMP/loose" ;;
    *'yard plan'* | *'yard bench'*) echo "$TMP/exact" ;;
    *) echo "$TMP/loose" ;;
    esac
}

run_proof() { # PARAGRAPH COMMAND: of a mark "numbers"; proof gets lines "PARAGRAPH PRINTED"
    run "$2"
    sed "s/^/$1 /" "$TMP/printed" >>"$TMP/proof"
}

run() { # COMMAND: what it prints goes to $TMP/printed
    (eval "$1") >"$TMP/printed" 2>&1 </dev/null # in a shell of its own, which a mistake in a mark ends
    code=$?
    compare_picture "$1"
    if [ $code -ne 0 ] && ! page_shows "$(first_complaint)"; then
        echo "exit code $code: $1: $(first_complaint)" >>"$TMP/wrong"
    fi
}

# The first 20 characters of what the command complained of: "yard: there is no file x" gives "yard: there is no fi".
first_complaint() {
    sed -n '/^yard: /{p;q;}; /^FAILED/{p;q;}' "$TMP/printed" | cut -c 1-20
}

page_shows() { # SENTENCE
    [ -n "$1" ] && grep -qF "$1" "$TMP/page"
}

# --png build/NAME.png of a simulated step draws the page's picture, byte for byte.  $TMP/alike or $TMP/unlike gets a
# line: where another zlib packs pictures, all of them are unlike.
compare_picture() { # COMMAND: "./yard view x.trace --png build/swap.png --step 2" draws swap.png
    name=$(echo "$1" | sed -n 's|.*--png build/\([^ ]*\).*|\1|p')
    if [ "$name" = predicted.png ] || [ ! -f "tutorials/pictures/$name" ]; then
        return # predicted.png shows a paced run too
    fi
    if cmp -s "build/$name" "tutorials/pictures/$name"; then
        echo "$name" >>"$TMP/alike"
    else
        echo "$name is another picture" >>"$TMP/unlike"
    fi
}

# ---- commands that marks have ----------------------------------------------------------------------------------------

# The file becomes the original with these changes of sed.  A script that changes nothing fails, except an empty one,
# which brings the original back.
edit() { # FILE SCRIPT...
    file=$1
    shift
    printf '%s\n' "$@" >"$TMP/script"
    sed -f "$TMP/script" "$TOP/$file" >"$file"
    [ -z "$*" ] || ! cmp -s "$TOP/$file" "$file"
}

# Prints the value of each expression of awk, for numbers that a page works out.
compute() { # EXPRESSION...
    for expression in "$@"; do
        awk "BEGIN { printf \"%.9f\\n\", $expression }"
    done
}

# ---- what the commands printed, beside what the page says ------------------------------------------------------------

# Each of these prints complaints.

unknown_marks() {
    sed -n 's/^unknown /no such mark: /p' "$TMP/page"
}

compare_lines() { # of blocks, where there are commands and they print what they printed for the page
    if [ "$is_pocl" = no ] || ! grep -q '^run ' "$TMP/page"; then
        return
    fi
    sed 's/.*/line/' "$TMP/said" >>"$TMP/compared"
    cat src/*/*/*.[ch] cl/*.cl >"$TMP/sources" # pages show lines of these too
    awk -f "$PROGRAMS/lines.awk" file=exact "$TMP/exact" "$TMP/sources" file=loose "$TMP/loose" file=said "$TMP/said"
}

compare_numbers() {
    shown_text >"$TMP/shown"
    prose >"$TMP/prose"
    awk -v compared="$TMP/compared" -f "$PROGRAMS/numbers.awk" file=shown "$TMP/shown" file=exact "$TMP/exact" \
        file=loose "$TMP/loose" file=proof "$TMP/proof" file=prose "$TMP/prose"
}

shown_text() { # the commands and lines of the page's blocks, and the lists that they read
    sed -n 's/^shown //p' "$TMP/page"
    cat "$TMP/said"
    lists=$(grep '^shown ' "$TMP/page" | grep -o 'data/steps/[^ ]*\.txt' | sort -u)
    # shellcheck disable=SC2086 # paths of lists
    [ -z "$lists" ] || cat $lists
}

prose() { # whose numbers are looked for.  What compute() is given must not come from nowhere either
    sed -n 's/^numbers \([0-9:]*\) compute /text \1 /p' "$TMP/page"
    grep -E '^(text|measured) ' "$TMP/page"
}

compare_edits() {
    awk -v compared="$TMP/compared" -f "$PROGRAMS/edits.awk" "$TMP/page"
}

# ---- the copy of the project, in which all this happens, and its devices ---------------------------------------------

prepare_copy() { # and go there.  It is built already, so that make compiles only what is edited
    walk=$TMP/walk
    copy_files "$walk" Makefile README.md LICENSE cl data src tutorials tests/data tests/maintain.mk
    copy_build "$walk"
    cd "$walk" || exit 1
    cp "$YARD" yard
    cp LICENSE my.txt # texts that pages name, and that a student brings along
    cp LICENSE tinyshakespeare.txt
}

look_at_devices() { # sets: is_pocl, is the first platform PoCL, whose output the pages show?
    ./yard devices >"$TMP/devices"
    is_pocl=no
    if grep -q '^platform 0: Portable Computing Language' "$TMP/devices"; then
        is_pocl=yes
    fi
}

# ---- all pages -------------------------------------------------------------------------------------------------------

choose_pages() { # those of this part of the tests; `make test` takes a few
    few='tutorials/01-first-run.md tutorials/02-the-step-is-a-list.md'
    case ${YARD_TESTS:-all} in
    test) echo "$few" ;;
    check) printf '%s\n' README.md tutorials/*.md | grep -vxF "$(echo "$few" | tr ' ' '\n')" ;;
    *) ls README.md tutorials/*.md ;;
    esac
}

can_walk() { # PAGE: here, or it needs what is not installed
    ! grep -q '^ *python3 tutorials' "$1" 2>/dev/null || python3 -c '' 2>/dev/null
}

walk_all() { # PAGE...
    for page in "$@"; do
        if can_walk "$page"; then
            walk_page "$page"
            no_complaints "$TMP/wrong" "$page"
        else
            skip "$page" 'python3 is not installed'
        fi
    done
}

look_at_pictures() { # those that were drawn are the pages', or none of them is
    : >"$TMP/wrong"
    if [ -s "$TMP/alike" ] && [ -s "$TMP/unlike" ]; then
        cp "$TMP/unlike" "$TMP/wrong"
    fi
    no_complaints "$TMP/wrong" 'the pictures of pages are those that are drawn here'
}

count_compared() {
    for kind in line number measured edit; do
        echo "# $kind: $(grep -c "^$kind" "$TMP/compared")"
    done
}

prepare_copy
look_at_devices
: >"$TMP/compared"
# shellcheck disable=SC2086 # paths of pages
walk_all ${PAGES:-$(choose_pages)}
look_at_pictures
[ $is_pocl = yes ] || skip 'pages show what their commands print' 'platform 0 is not PoCL'
count_compared
finish
