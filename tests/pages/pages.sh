#!/bin/sh
# pages.sh - what README.md and tutorials/ say about this project.
#
# This script checks what needs no run: links, names of files, options and targets, and the length of the pages.
# walk.sh runs what they show, and counts.sh compares the numbers of lines.
#
#     ok 1 - lines have fewer than 120 characters
#     not ok 2 - links lead somewhere
#     #   tutorials/01-first-run.md: there is no 02-list.md
#
# A check is a function that prints a line for each mistake, and below it the line finds_nothing 'NAME' FUNCTION.  To
# add one, write these two.  A function that looks for a pattern also says, with enough(), how many places it must find:
# otherwise a table in a new form would count as a table without mistakes.
#
# To see it fail: let a page link to a page that is not there.
. tests/lib/helpers.sh
. tests/lib/help.sh

pages="README.md $(echo tutorials/*.md)"

# ---- the pages' own length -------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # names of pages
finds_nothing 'lines have fewer than 120 characters' awk -v most=119 -f tests/style/long_lines.awk $pages

finds_nothing 'the README is a front page of about 1,200 words' awk -f tests/pages/readme.awk README.md

# ---- links and files -------------------------------------------------------------------------------------------------

# `[text](TARGET#part)` gives "PAGE TARGET"; links to other places of the same page, and to the network, are left out.
list_links() {
    # shellcheck disable=SC2086 # names of pages
    grep -o '](\([^)#]*\)' $pages | sed 's/:](/ /' | grep -v -e ' http' -e ' $'
}
dead_links() {
    list_links >"$TMP/links"
    enough 200 "$TMP/links" 'links within the project'
    while read -r page target; do
        [ -e "$(dirname "$page")/$target" ] || echo "$page: there is no $target"
    done <"$TMP/links"
}
finds_nothing 'links lead somewhere' dead_links

unlisted_pages() {
    grep -qF '(tutorials/README.md)' README.md || echo 'README.md does not lead to tutorials/README.md'
    for page in tutorials/*.md tutorials/labs/README.md; do
        page=${page#tutorials/}
        [ "$page" = README.md ] && continue
        lines=$(grep -cF "]($page)" tutorials/README.md)
        [ "$lines" -eq 1 ] || echo "tutorials/README.md lists $page $lines times"
    done
}
finds_nothing 'tutorials/README.md lists every page once' unlisted_pages

# Pages are read in the order of tutorials/README.md: "PAGE NEXT" for those above the pages to look things up in.
list_next() {
    sed '/^\*\*Look things up/,$d' tutorials/README.md | sed -n 's/^- .*](\([^)]*\)).*/\1/p' |
        awk 'last != "" { print last, $0 } { last = $0 }'
}
lost_next() {
    list_next >"$TMP/next"
    enough 25 "$TMP/next" 'pages with a next one'
    while read -r page next; do
        case $page in 04-*) continue ;; esac # from there on students choose
        grep -A1 '^Next: ' "tutorials/$page" | grep -qF "]($next)" || echo "tutorials/$page: Next is not $next"
    done <"$TMP/next"
}
finds_nothing 'each page leads to the one below it in tutorials/README.md' lost_next

# `src/...` and the like give "PAGE PATH", where a * may stand for anything, and for NAME; so does `file.c`, of some
# folder.
list_paths() {
    # shellcheck disable=SC2086 # names of pages
    grep -oE '`((src|cl|tests|data|tutorials|\.ci)/[^` ]*|[a-z_]+\.(c|h|cl|awk))`' $pages |
        sed 's/:`/ /; s/`//; s/NAME/*/'
}
is_made_by() { # PAGE PATH: the page itself makes a file of that name, by a command with >PATH
    grep -qsF ">$2" "$1" "tests/pages/marks/${1%.md}.marks"
}
is_file() { # PATTERN: some file has that path; one without a folder may lie in any
    # shellcheck disable=SC2086 # the shell finds the files of the pattern
    case $1 in
    */*) ls -d $1 ;;
    *) ls ./*/$1 ./*/*/$1 src/*/*/$1 ;;
    esac 2>/dev/null | grep -q .
}
missing_files() {
    list_paths | sort -u >"$TMP/paths"
    enough 300 "$TMP/paths" 'names of files'
    while read -r page path; do
        is_file "$path" || is_made_by "$page" "$path" || echo "$page: there is no $path"
    done <"$TMP/paths"
}
finds_nothing 'files that are named exist' missing_files

comments() { # what tests need to know of a page stands beside it; only gallery.sh reads its mark in the page
    # shellcheck disable=SC2086 # names of pages
    grep -n '<!--' $pages tutorials/labs/*.md tutorials/labs/*/*.md | grep -v '<!-- curves: ' |
        sed 's/$/: this stands in tests\/pages\/marks/'
}
finds_nothing 'pages have no comments' comments

marks_without_page() { # walk.sh reads tests/pages/marks/PAGE.marks for PAGE.md
    find tests/pages/marks -name '*.marks' >"$TMP/marks"
    enough 30 "$TMP/marks" 'files of marks'
    while read -r marks; do
        page=${marks#tests/pages/marks/}
        [ -e "${page%.marks}.md" ] || echo "$marks: there is no ${page%.marks}.md"
    done <"$TMP/marks"
}
finds_nothing 'files of marks belong to a page' marks_without_page

# ---- names in the code -----------------------------------------------------------------------------------------------

# The routes are tables of reference-code.md.
lost_routes() {
    awk -F '|' -f tests/pages/routes.awk tutorials/reference-code.md >"$TMP/routes"
    enough 57 "$TMP/routes" 'functions of the routes'
    while read -r file name; do
        grep -qE "^([a-zA-Z_].*[ *]|#define )$name\(" "$file" ||
            echo "tutorials/reference-code.md: $file has no function $name"
    done <"$TMP/routes"
}
finds_nothing 'functions of the routes are in their files' lost_routes

has_function() { # NAME FILE...: a function or macro of that name begins in one of them
    name=$1
    shift
    grep -qE "^([a-zA-Z_].*[ *]|#define )$name\\(" "$@"
}
is_placed() { # FILES NAME: a function begins there, a struct has its body there, another word stands there
    # shellcheck disable=SC2086 # paths of files
    case $2 in
    *'()') has_function "${2%??}" $1 ;;
    *' '*) grep -qE "(^|[^a-z_])$2 \\{" $1 ;;
    *) if has_function "$2" src/*/*/*.[ch]; then has_function "$2" $1; else grep -qw "$2" $1; fi ;;
    esac
}
misplaced_names() {
    # shellcheck disable=SC2086 # names of pages
    awk -f tests/pages/placed.awk $pages tutorials/labs/*/README.md >"$TMP/placed"
    enough 100 "$TMP/placed" 'names that pages place in a file'
    while read -r page file name; do
        files=$(ls "$file" src/*/*/"$file" "cl/$file" 2>/dev/null)
        is_placed "${files:-none}" "$name" 2>/dev/null || is_made_by "$page" "$file" ||
            echo "$page: $file does not have $name"
    done <"$TMP/placed"
}
finds_nothing 'names that a page places in a file are there' misplaced_names

finds_nothing 'functions, structs and fields that the pages on the source code name exist' \
    awk -f tests/style/comments.awk -f tests/pages/names.awk src/*.c src/*/*/*.[ch] cl/*.cl cl/*.h \
    tests/support/*.[ch] tests/unit/*/*.c tutorials/reference-code.md tutorials/reference-folders.md \
    tutorials/reference-design.md

files_of_folders() {
    ls src/*/*/*.[ch] |
        awk -f tests/pages/folders.awk - tutorials/reference-code.md tutorials/reference-folders.md
}
finds_nothing 'the tables of folders name the files of src, and only those' files_of_folders

# ---- options and targets ---------------------------------------------------------------------------------------------

options_of_programs() { # of yard's commands, their help; of the tutorials' programs in Python, "--name,"
    all_help "$YARD" 'trace summary' 'trace export' 'trace diff' 'ckpt ls' 'ckpt reshard' 'ckpt export'
    sed -n 's/.*add_argument("\(--[a-z-]*\)".*/\1,/p' tutorials/*/*.py
}
list_options() { # "PAGE --NAME"; grep finds the character before it too, which is no part of a word
    for listed in $pages; do
        grep -oE '(^|[^-a-z])--[a-z][-a-z0-9]*' "$listed" | sed 's/^[^-]//' | sort -u | sed "s|^|$listed |"
    done
}
is_option() { # PAGE --NAME: of a command, or of a table of options that the page itself writes
    grep -qE -- "$2( |,|\$)" "$TMP/help" || grep -qF "{.name = \"${2#--}\"," "$1"
}
unknown_options() {
    options_of_programs >"$TMP/help"
    list_options >"$TMP/options"
    enough 500 "$TMP/options" 'options'
    while read -r page option; do
        case $option in # gdb's, docker's, torchrun's
        --args | --rm | --cap-add | --security-opt | --nproc-per-node) continue ;;
        esac
        is_option "$page" "$option" || echo "$page: no command has $option"
    done <"$TMP/options"
}
finds_nothing 'options that are named exist' unknown_options

list_targets() { # "PAGE TARGET" of `make TARGET`
    for listed in $pages; do
        grep -oE '(`|^    )make [a-z]+' "$listed" | sed 's/.*make //' | sort -u | sed "s|^|$listed |"
    done
}
unknown_targets() {
    list_targets >"$TMP/targets"
    enough 30 "$TMP/targets" 'targets of make'
    while read -r page target; do
        cat Makefile tests/maintain.mk | grep -q "^$target:" || echo "$page: there is no target $target"
    done <"$TMP/targets"
}
finds_nothing 'make targets that are named exist' unknown_targets

finish
