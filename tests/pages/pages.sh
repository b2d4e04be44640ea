#!/bin/sh
# pages.sh - what README.md and tutorials/ say of this project and can be checked without running it: links, names of
# files, options and targets, lines of code, and the pages' own length.  walk.sh runs what they show.
. tests/run/helpers.sh

pages="README.md $(echo tutorials/*.md)"

# ---- the pages' own length ------------------------------------------------------------------------------------------

# Characters, not bytes: the continuation bytes of UTF-8 do not count.
awk '
    { gsub(/[\200-\277]/, "") }
    length > 119 { print FILENAME ", line " FNR ": " length " characters" }' $pages >"$TMP/wrong"
no_complaints "$TMP/wrong" 'lines have fewer than 120 characters'

awk '
    /^<!--/ { hidden = 1 }
    !hidden {
        for (i = 1; i <= NF; i++)
            words += $i ~ /[!-~]/
    }
    /-->$/ { hidden = 0 }
    END {
        if (words > 1250)
            print "README.md has " words " words"
    }' README.md >"$TMP/wrong"
no_complaints "$TMP/wrong" 'the README is a front page of about 1,200 words'

# ---- names ----------------------------------------------------------------------------------------------------------

for page in $pages; do # links within the project
    grep -o '](\([^)#]*\)' "$page" | sed 's/](//' | grep -v '^http' | while read -r target; do
        [ -z "$target" ] || [ -e "$(dirname "$page")/$target" ] || echo "$page: there is no $target"
    done
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'links lead somewhere'

for page in tutorials/*.md; do
    grep -qF "($page)" README.md || echo "README.md does not name $page"
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'the README names every page'

# `src/...` and the like, where a * may stand for anything, and for NAME; and `file.c`, of some folder.  A page may
# make files, and options, of its own.
for page in $pages; do
    grep -oE '`((src|cl|tests|data|tutorials|\.ci)/[^` ]*|[a-z_]+\.(c|h|cl|awk))`' "$page" |
        sed 's/`//g; s/NAME/*/; s|^[^/]*$|*/& */*/& src/*/*/&|' | while read -r path; do
        [ -n "$(ls -d $path 2>/dev/null)" ] || grep -qF ">$path" "$page" || echo "$page: there is no $path"
    done
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'files that are named exist'

routes() { # "FILE FUNCTION" for each function that a row of reference-code.md's routes names
    awk -F '|' '
        /^\| [a-z]* \| / && NF > 5 {
            if (match($3, /src\/[a-z\/_]*\.[ch]/)) # a row without a file is of the one above it
                file = substr($3, RSTART, RLENGTH)
            for (i = 4; i <= 5; i++)
                while (match($i, /[a-z_]+\(\)/)) {
                    print file, substr($i, RSTART, RLENGTH - 2)
                    $i = substr($i, RSTART + RLENGTH)
                }
        }' tutorials/reference-code.md
}
routes | while read -r file name; do
    grep -qE "^[a-z].*[ *]$name\(" "$file" || echo "tutorials/reference-code.md: $file has no function $name"
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'functions of the routes are in their files'

awk -f tests/style/comments.awk -f tests/pages/names.awk src/*.c src/*/*/*.[ch] cl/*.cl cl/*.h tests/*/*.[ch] \
    tutorials/reference-code.md tutorials/reference-design.md >"$TMP/wrong"
no_complaints "$TMP/wrong" 'functions, structs and fields that the pages on the source code name exist'

commands_of_yard() {
    "$YARD" --help | awk '/^  [a-z]/ { print $1 }'
    printf '%s\n' 'trace summary' 'trace export' 'trace diff' 'ckpt ls' 'ckpt reshard' 'ckpt export'
}
commands_of_yard | while read -r command; do
    "$YARD" $command --help </dev/null | sed '/^Words of other programs/,$d'
done >"$TMP/help"
sed -n 's/.*add_argument("\(--[a-z-]*\)".*/\1,/p' tutorials/*/*.py >>"$TMP/help"
for page in $pages; do
    grep -oE '(^|[^-a-z])--[a-z][-a-z0-9]*' "$page" | sed 's/^[^-]//' | sort -u | while read -r option; do
        case $option in # gdb's, docker's, torchrun's
        --args | --rm | --cap-add | --security-opt | --nproc-per-node) continue ;;
        esac
        grep -qE -- "$option( |,|\$)" "$TMP/help" || grep -qF "{.name = \"${option#--}\"," "$page" ||
            echo "$page: no command has $option"
    done
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'options that are named exist'

for page in $pages; do
    grep -oE '(`|^    )make [a-z]+' "$page" | sed 's/.*make //' | sort -u | while read -r target; do
        cat Makefile tests/maintain.mk | grep -q "^$target:" || echo "$page: there is no target $target"
    done
done >"$TMP/wrong"
no_complaints "$TMP/wrong" 'make targets that are named exist'

# ---- lines of code --------------------------------------------------------------------------------------------------

awk -f tests/pages/counts.awk README.md tutorials/reference-code.md >"$TMP/wrong"
no_complaints "$TMP/wrong" 'what the README and the spine of the source tree count is right: make counts fills it in'

finish
