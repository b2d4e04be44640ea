#!/bin/sh
# gdb.sh - the debugger's pages.
#
# This script checks that gdb prints what their transcripts show.
#
# A transcript is a block that begins with "```gdb".  It has first the command that starts gdb, of words without quotes,
# then lines "(gdb) COMMAND", and below each of these the lines that it prints, in their order.  The page may leave
# lines out. "..." at the end of a line stands for the rest of it.  Numbers with a decimal point, and addresses of
# calls, may differ.
#
# PAGES names the pages; without it, the script takes all that have a transcript.
#
# To see it fail: in yard.py, let `yard lanes` leave out what is next.
. tests/lib/helpers.sh

PAGES=${PAGES:-$(grep -l '^```gdb' tutorials/*.md)}

cannot() { # WHY
    skip_all "the debugger's pages" "$1"
}
command -v gdb >/dev/null || cannot 'there is no gdb'
gdb -q -batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || cannot 'this gdb has no Python'
gdb -q -batch -ex run --args /bin/true 2>&1 | grep -q 'exited normally' || cannot 'gdb may not run programs here'
"$YARD" devices | grep -q '^platform 0: Portable Computing Language' || cannot "pages show PoCL's names"
if ! make -s -j2 debug >"$TMP/err" 2>&1; then
    check 'a program for the debugger is built' false
    finish
fi
mkdir -p build/kernels

split_page() { # PAGE: each of its transcripts to $TMP/block.N, as lines "$ COMMAND", "> COMMAND OF GDB" and "= LINE"
    awk -v to="$TMP/block." -f tests/scripts/gdb_split.awk "$1"
}

words_of() { # BLOCK: the words after gdb in the command that starts it
    sed -n 's/^\$ gdb //p' "$1"
}

# Each command is an option -ex, since a file of commands would end at the first that is refused.
run_gdb() { # BLOCK: its output, with a line "@ COMMAND" in front of what each prints, goes to $TMP/out
    words=$(words_of "$1")
    sed -n 's/^> //p' "$1" >"$TMP/script"
    set --
    while read -r command; do
        set -- "$@" -ex "echo \n@ $command\n" -ex "$command"
    done <"$TMP/script"
    # shellcheck disable=SC2086 # what the page starts gdb with
    timeout 300 gdb -q -batch -nx -iex "add-auto-load-safe-path $PWD" -ex 'set pagination off' -ex 'set confirm off' \
        -ex 'set width 0' "$@" $words >"$TMP/out" 2>&1 </dev/null
}

compare() { # BLOCK: its lines that are not in $TMP/out, in their order
    awk -f tests/scripts/gdb_compare.awk "$TMP/out" "$1"
}

for page in $PAGES; do
    split_page "$page"
    ls "$TMP"/block.* 2>/dev/null | sort -t . -k 2 -n >"$TMP/blocks"
    enough 1 "$TMP/blocks" 'transcripts' >"$TMP/wrong"
    no_complaints "$TMP/wrong" "$page has transcripts"
    # shellcheck disable=SC2013 # a path in each line
    for block in $(cat "$TMP/blocks"); do
        name="$page: $(words_of "$block")"
        run_gdb "$block"
        compare "$block" >"$TMP/wrong"
        if grep -q "Couldn't write extended state status" "$TMP/out"; then
            # An older gdb does not know how large the registers of a newer processor are.
            skip "$name" 'on this processor gdb cannot call functions of a program'
        else
            if [ -s "$TMP/wrong" ]; then
                tail -n 60 "$TMP/out" | sed 's/^/# printed: /'
            fi
            no_complaints "$TMP/wrong" "$name"
        fi
        rm "$block"
    done
done
finish
