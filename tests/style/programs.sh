#!/bin/sh
# programs.sh - the programs that scripts and pages call.
#
# This script checks that they call only the programs that tutorials/reference-systems.md promises.
#
# It looks first at the words that stand where a command does (commands.awk).  Then it runs some scripts with nothing
# else on their PATH; there they must skip the checks that need more.
#
# To see it fail: let a script call jq.
. tests/lib/helpers.sh

page=tutorials/reference-systems.md
makefiles='Makefile tests/maintain.mk src/make/modules.mk'

# ---- what is promised ------------------------------------------------------------------------------------------------

awk -F '|' -f tests/style/promised.awk "$page" >"$TMP/promised"
builtin='. : [ break cd command continue echo eval exec exit export kill printf pwd read return set shift trap true
    ulimit unset wait'

# ---- words -----------------------------------------------------------------------------------------------------------

# The recipe  $(Q)$(CC) -c -o $@ $(filter %.c,$^)  becomes  $X -c -o $X $X  of the shell.
recipes() { # of the Makefile and what it reads: lines that begin with a tab, and what stands in $(shell ...)
    # shellcheck disable=SC2086 # names of files
    awk '/^\t/ { print substr($0, 2) }' $makefiles
    # shellcheck disable=SC2086 # names of files
    sed 's/\$([A-Z_]*)/$X/g' $makefiles | grep -o '\$(shell [^)]*' | sed 's/.*(shell //'
}
without_make() { # make's variables and functions become a variable of the shell
    sed 's/\$(Q)//; s/^[@+-]*//; s/\$([A-Z_]*)/$X/g; s/\$([a-z]* [^()]*)/$X/g; s/\$[@<^]/$X/g; s/\$\$/$/g'
}
typed() { # PAGE: what it lets a student type or a test do
    marks=tests/pages/marks/${1%.md}.marks
    [ -e "$marks" ] || marks=/dev/null
    awk -v wrong=/dev/null -f tests/pages/marks.awk "$marks" "$1" | awk -f tests/pages/page.awk |
        sed -n 's/^run //p; s/^numbers [0-9:]* //p'
}

# Recipes and pages as scripts, which have the names of their files.
mkdir -p "$TMP/tutorials"
recipes | without_make >"$TMP/Makefile"
for text in README.md tutorials/*.md; do
    typed "$text" >"$TMP/$text"
done

scripts=$(ls tests/*/*.sh tutorials/labs/*.sh tutorials/labs/*/grade tutorials/labs/*/*.sh src/gallery/*.sh \
    src/make/*.sh 2>/dev/null)
# shellcheck disable=SC2086 # paths of scripts
awk -f tests/style/commands.awk $scripts >"$TMP/words"
(cd "$TMP" && awk -f "$OLDPWD/tests/style/commands.awk" Makefile README.md tutorials/*.md) >>"$TMP/words"

{
    echo "$builtin" | tr -s ' ' '\n'
    awk 'NF == 1' "$TMP/promised"
    sed -n 's/^function [^ ]* //p' "$TMP/words" # of this script or of one that it reads
} >"$TMP/known"
unpromised() { # a line "FILE: PROGRAM is not promised" for each
    grep '^call ' "$TMP/words" >"$TMP/calls"
    enough 2000 "$TMP/calls" 'calls of commands'
    awk -f tests/style/unpromised.awk "$TMP/known" "$TMP/promised" "$TMP/calls"
}
finds_nothing "the commands of scripts, recipes and pages are in $page" unpromised

# ---- scripts, with nothing else on the PATH --------------------------------------------------------------------------

mkdir -p "$TMP/bin" "$TMP/own"
awk 'NF == 1' "$TMP/promised" | while read -r program; do
    for folder in $(echo "$PATH" | tr ':' ' '); do
        if [ -x "$folder/$program" ]; then
            ln -s "$folder/$program" "$TMP/bin"
            break
        fi
    done
done

runs_alone() { # WORDS...: they succeed, and find all that they call
    rm -rf "$TMP/own"
    mkdir "$TMP/own"
    env PATH="$TMP/bin" TMP="$TMP/own" CC=cc "$@" >"$TMP/log" 2>&1 </dev/null
    code=$?
    grep -e 'not found' -e '^not ok' "$TMP/log" >"$TMP/err"
    [ "$code" -eq 0 ] && [ ! -s "$TMP/err" ]
}

for script in scripts/labs pages/pages; do
    [ -f tests/$script.sh ] || continue # a student's copy has no labs.sh
    check "${script#*/}.sh finds what it calls" runs_alone tests/$script.sh
done
check 'packages.sh finds what it calls, and needs nothing else' runs_alone src/make/packages.sh build tests patch
sed '/^# ---- words/,$d' tests/scripts/errors.sh >"$TMP/errors.sh"
check 'errors.sh finds what it calls, in its first part' runs_alone sh "$TMP/errors.sh"
for script in gdb faults oclgrind transformers pytorch kineto; do
    check "$script.sh ends well where it finds nothing" runs_alone tests/scripts/$script.sh
    check "$script.sh is skipped there, and says why" grep -q '^ok 1 - .* # SKIP ' "$TMP/log"
done

finish
