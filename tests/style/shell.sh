#!/bin/sh
# shell.sh - what shellcheck finds in the scripts.  .shellcheckrc says what it need not say, and why.
. tests/run/helpers.sh

command -v shellcheck >/dev/null || skip_all 'shellcheck finds nothing in the scripts' 'shellcheck is not installed'

scripts=
for script in tests/*/*.sh tutorials/labs/*.sh tutorials/labs/*/*.sh tutorials/labs/*/grade tutorials/labs/*/predict \
    data/gallery/*.sh src/make/*.sh; do
    [ ! -f "$script" ] || scripts="$scripts $script" # a student's copy has no graders
done
{
    shellcheck --format=gcc $scripts
    if [ -f .ci/run ]; then
        shellcheck --format=gcc --shell=bash .ci/run
    fi
} >"$TMP/wrong" 2>&1
no_complaints "$TMP/wrong" 'shellcheck finds nothing in the scripts'
finish
