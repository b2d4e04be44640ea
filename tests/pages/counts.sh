#!/bin/sh
# counts.sh - how many lines the sources have, as README.md and tutorials/reference-code.md say it; and the copy of the
# lines to read, which `make spine` writes.
#
# Each change of the sources changes these numbers, so this script is no part of `make test`.  `make counts` fills them
# in; counts.awk says how they are counted, and how far a number may be off.
#
# To see it fail: write another number of lines into a table of README.md; in print_row() of
# src/make/reading_copy.awk, begin with line 2.
. tests/lib/helpers.sh

finds_nothing 'what the README and the spine of the source tree count is right: make counts fills it in' \
    awk -f src/make/to_read.awk -f tests/pages/counts.awk README.md tutorials/reference-code.md

# ---- the reading copy ------------------------------------------------------------------------------------------------

make --no-print-directory spine BUILD="$TMP" >"$TMP/said" 2>&1
exit_code 'make spine writes the reading copy' $? 0

# The page with the right numbers, as copy_rows.awk has the copy: each part, and "FILE LINES" for each of its rows.
rows_of_page() {
    awk -v fill=1 -f src/make/to_read.awk -f tests/pages/counts.awk tutorials/reference-code.md |
        awk -F ' *[|] *' '
            /^### [0-9]/ { print substr($0, 5) }
            $2 ~ /^`(src|cl)\/.*[.]/ { file = substr($2, 2, length($2) - 2) }
            file != "" && $4 ~ /^[0-9]+$/ {
                print file, $4
                file = ""
            }'
}
other_rows() {
    rows_of_page >"$TMP/rows"
    enough 80 "$TMP/rows" 'parts and files of the spine'
    awk -f tests/pages/copy_rows.awk "$TMP"/spine/* | diff "$TMP/rows" -
}
finds_nothing 'the reading copy has the parts, the files and the lines of the spine' other_rows

finish
