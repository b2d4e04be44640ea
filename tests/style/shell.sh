#!/bin/sh
# shell.sh - the style of the scripts.
#
# This script checks that functions say which variables they set for others (sets.awk), and that shellcheck finds
# nothing.  .shellcheckrc lists the warnings that are turned off, and why.
#
# To see it fail: in faults.sh, do not say what is_noticed() sets.
. tests/lib/helpers.sh

graders=
for grader in tutorials/labs/*/grade tutorials/labs/*/predict; do
    [ ! -f "$grader" ] || graders="$graders $grader" # a student's copy has none
done
# shellcheck disable=SC2086 # paths of scripts
finds_nothing 'functions of scripts say what they set for others' \
    awk -f tests/style/sets.awk tests/*/*.sh tutorials/labs/*.sh tutorials/labs/lib/*.sh \
    src/gallery/*.sh src/make/*.sh $graders

command -v shellcheck >/dev/null || skip_all 'shellcheck finds nothing in the scripts' 'shellcheck is not installed'

scripts=$graders
for script in tests/*/*.sh tutorials/labs/*.sh tutorials/labs/*/*.sh src/gallery/*.sh src/make/*.sh; do
    [ ! -f "$script" ] || scripts="$scripts $script"
done
[ ! -f .ci/run ] || scripts="$scripts .ci/run"
# shellcheck disable=SC2086 # paths of scripts
shellcheck --format=gcc $scripts >"$TMP/wrong" 2>&1
no_complaints "$TMP/wrong" 'shellcheck finds nothing in the scripts'
finish
