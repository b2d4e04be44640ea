#!/bin/sh
# programs.sh - scripts and pages call only the programs that tutorials/reference-systems.md promises.
#
# First the words are looked at that stand where a command does (commands.awk).  Then some scripts are run with nothing
# else on their PATH, where those must be skipped that need more.
set -u
LC_ALL=C
export LC_ALL
TMP=$(cd "${TMP:-$(mktemp -d)}" && pwd)
page=tutorials/reference-systems.md
makefiles='Makefile tests/maintain.mk src/trainer/base/modules.mk'

. tests/run/report.sh

# ---- what is promised -----------------------------------------------------------------------------------------------

# Of the first table "PROGRAM", of the second "PROGRAM WHO", from the names in a row and the cell beside them.
awk -F '|' '
    /^## / { here = $0 == "## Programs" }
    /^\| (package|program) / { # the head of a table
        column = $2 ~ /package/ ? 3 : 2 # where it has its programs
        names = ""
        next
    }
    here && /^\|/ {
        if ($column ~ /`/) # else they are those of the row above
            names = $column
        n = split(names, part, "`")
        for (i = 2; i <= n; i += 2)
            print part[i] (column == 2 ? $3 : "")
    }' "$page" >"$TMP/promised"
builtin='. : [ break cd command continue echo eval exec exit export kill printf pwd read return set shift trap true
    ulimit unset wait'

# ---- words ----------------------------------------------------------------------------------------------------------

# Recipes, and what pages let a student type or let a test do: as scripts, with the names of their files.
mkdir -p "$TMP/tutorials"
recipes() { # of the Makefile and what it reads: lines that begin with a tab, and what stands in $(shell ...)
    awk '/^\t/ { print substr($0, 2) }' $makefiles
    sed 's/\$([A-Z_]*)/$X/g' $makefiles | grep -o '\$(shell [^)]*' | sed 's/.*(shell //'
}
without_make() { # make's variables and functions become a variable of the shell
    sed 's/\$(Q)//; s/^[@+-]*//; s/\$([A-Z_]*)/$X/g; s/\$([a-z]* [^()]*)/$X/g; s/\$[@<^]/$X/g; s/\$\$/$/g'
}
typed() { # PAGE: its commands
    awk '
        /^ *```/ {
            fenced = !fenced
            next
        }
        !inside && /^ *<!-- (test|numbers): / {
            inside = "mark"
            sub(/^ *<!-- [a-z]*: /, "")
        }
        !inside && !fenced && /^ +(\.\/yard|cmp|cat|rm -f|YARD_[A-Z_]*=1|make|git|gdb)( |$)/ { inside = "block" }
        inside == "mark" {
            is_last = sub(/ *-->$/, "")
            print
        }
        inside == "block" {
            is_last = !/\\$/
            sub(/    *[^ ].*$/, "", $0) # a remark beside it
            print
        }
        is_last { inside = "" }' "$1"
}
recipes | without_make >"$TMP/Makefile"
for text in README.md tutorials/*.md; do
    typed "$text" >"$TMP/$text"
done

scripts=$(ls tests/*/*.sh tutorials/labs/*.sh tutorials/labs/*/grade tutorials/labs/*/*.sh data/gallery/*.sh \
    src/*/*/*.sh 2>/dev/null)
awk -f tests/style/commands.awk $scripts >"$TMP/words"
(cd "$TMP" && awk -f "$OLDPWD/tests/style/commands.awk" Makefile README.md tutorials/*.md) >>"$TMP/words"
echo "$builtin" | tr -s ' \n' '\n\n' | awk '
    FILENAME == "-" || (FILENAME ~ /promised$/ && NF == 1) {
        known[$1] = 1
        next
    }
    FILENAME ~ /promised$/ { # to some scripts or to pages
        who[$1] = who[$1] $0
        next
    }
    $2 == 0 { # a function, of this script or of one that it reads
        known[$3] = 1
        next
    }
    {
        n++
        at[n] = $1
        line[n] = $2
        word[n] = $3
    }
    END {
        for (i = 1; i <= n; i++) {
            if (word[i] in known || word[i] ~ /\// || index(who[word[i]], "`" at[i] "`"))
                continue
            if (at[i] ~ /\.md$/ && who[word[i]] ~ /pages/)
                continue
            print at[i] ", line " line[i] ": " word[i] " is not promised"
        }
        if (n < 2000)
            print "only " n " words"
    }' - "$TMP/promised" "$TMP/words" >"$TMP/wrong"
no_complaints "$TMP/wrong" "the commands of scripts, recipes and pages are in $page"

# ---- scripts, with nothing else on the PATH -------------------------------------------------------------------------

mkdir -p "$TMP/bin" "$TMP/own"
awk 'NF == 1' "$TMP/promised" | while read -r program; do
    for folder in $(echo "$PATH" | tr ':' ' '); do
        [ ! -x "$folder/$program" ] || { ln -s "$folder/$program" "$TMP/bin" && break; }
    done
done

alone() { # WORDS...: they succeed, and find all that they call
    rm -rf "$TMP/own"
    mkdir "$TMP/own"
    PATH=$TMP/bin TMP=$TMP/own CC=cc "$@" >"$TMP/log" 2>&1 </dev/null
    code=$?
    grep -e 'not found' -e '^not ok' "$TMP/log" >"$TMP/err"
    [ $code -eq 0 ] && [ ! -s "$TMP/err" ]
}

for script in scripts/labs pages/pages; do
    [ -f tests/$script.sh ] || continue # a student's copy has no labs.sh
    alone tests/$script.sh
    result $? "${script#*/}.sh finds what it calls"
done
alone tests/machines/packages.sh build tests patch
result $? 'packages.sh finds what it calls, and needs nothing else'
sed '/^# ---- words/,$d' tests/scripts/errors.sh >"$TMP/errors.sh"
alone sh "$TMP/errors.sh"
result $? 'errors.sh finds what it calls, in its first part'
for script in gdb faults oclgrind transformers pytorch kineto; do
    alone tests/scripts/$script.sh && grep -q '^ok 1 - .* # SKIP ' "$TMP/log"
    result $? "$script.sh is skipped, and says why"
done

finish
