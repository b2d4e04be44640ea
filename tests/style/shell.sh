#!/bin/sh
# shell.sh - functions of scripts say what they set for others (sets.awk); and what shellcheck finds in the scripts.
# .shellcheckrc says what that need not say, and why.
#
# To see it fail: in faults.sh, do not say what fault() sets.
. tests/run/helpers.sh

graders=
for grader in tutorials/labs/*/grade tutorials/labs/*/predict; do
    [ ! -f "$grader" ] || graders="$graders $grader" # a student's copy has none
done
finds_nothing 'functions of scripts say what they set for others' \
    awk -f tests/style/sets.awk tests/*/*.sh tutorials/labs/*.sh data/gallery/*.sh $graders

command -v shellcheck >/dev/null || skip_all 'shellcheck finds nothing in the scripts' 'shellcheck is not installed'

scripts=$graders
for script in tests/*/*.sh tutorials/labs/*.sh tutorials/labs/*/*.sh data/gallery/*.sh src/make/*.sh; do
    [ ! -f "$script" ] || scripts="$scripts $script"
done
{
    shellcheck --format=gcc $scripts
    if [ -f .ci/run ]; then
        shellcheck --format=gcc --shell=bash .ci/run
    fi
} >"$TMP/wrong" 2>&1
no_complaints "$TMP/wrong" 'shellcheck finds nothing in the scripts'
finish
