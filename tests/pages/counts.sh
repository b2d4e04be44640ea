#!/bin/sh
# counts.sh - how many lines the sources have, as README.md and tutorials/reference-code.md say it.
#
# Each change of the sources changes these numbers, so this script is no part of `make test`.  `make counts` fills them
# in; counts.awk says how they are counted, and how far a number may be off.
#
# To see it fail: write another number of lines into a table of README.md.
. tests/lib/helpers.sh

finds_nothing 'what the README and the spine of the source tree count is right: make counts fills it in' \
    awk -f tests/pages/counts.awk README.md tutorials/reference-code.md

finish
