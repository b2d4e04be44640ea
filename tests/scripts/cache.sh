#!/bin/sh
# cache.sh - the cache of compiled programs.
#
# This script checks that the cache keeps compiled programs, and that the numbers stay the same whatever becomes of it.
#
# A start that finds an entry leaves it alone, and one that compiles replaces it.  So `ls -i` shows what was compiled.
#
# To see it fail: in cache.c, let load_program() return NULL at once.
. tests/lib/helpers.sh

export YARD_CACHE= # none yet

# "step 1/2  loss 5.5352  norm  2.960  lr 1.0e-03  2.9 ms" is kept up to the norm, and the lines of the validation and
# the sample are kept whole.
short_run() { # FILE: the numbers of a short run, without its times, go there
    if ! "$YARD" train --model tiny --steps 2 --val-batches 1 --sample-tokens 4 >"$1.out" 2>"$1.err" ||
        [ -s "$1.err" ]; then
        cp "$1.err" "$TMP/err" # is printed below a check that fails
        return 1
    fi
    sed -n 's/^\(step.*\)  lr.*/\1/p; /validation/p; /^sample/,$p' "$1.out" >"$1"
}
has_same_numbers() { # a start gives the numbers of the first one, and says nothing else
    short_run "$TMP/now" && cmp -s "$TMP/now" "$TMP/reference"
}
entries() { # of the cache, with their numbers: a file that is replaced has another one
    (cd "$YARD_CACHE" && ls -i)
}
compiles_nothing() { # the entries are those of $TMP/before
    entries | cmp -s - "$TMP/before"
}

check 'a run without a cache succeeds' short_run "$TMP/reference"

# ---- entries are made and used ---------------------------------------------------------------------------------------

export YARD_CACHE="$TMP/cache"
mkdir "$TMP/cache" "$TMP/both"
check 'a run that fills the cache has the same numbers' has_same_numbers
entries >"$TMP/before"
check 'a run fills an empty cache with entries' [ "$(wc -l <"$TMP/before")" -ge 5 ]
check 'a run from the cache has the same numbers' has_same_numbers
check 'a run from the cache compiles nothing again' compiles_nothing

# ---- damage ----------------------------------------------------------------------------------------------------------

whole=$(ls -S "$YARD_CACHE" | head -n 1) # the largest
other=$(ls -S "$YARD_CACHE" | tail -n 1)
cp "$YARD_CACHE/$whole" "$TMP/whole"
bytes=$(wc -c <"$TMP/whole")

flip() { # OFFSET: the entry with that byte changed, to the next higher one
    {
        head -c "$1" "$TMP/whole"
        tail -c +$(($1 + 1)) "$TMP/whole" | head -c 1 | tr '\000-\377' '\001-\377\000'
        tail -c +$(($1 + 2)) "$TMP/whole"
    } >"$YARD_CACHE/$whole"
}

check_mended() { # DAMAGE: checks that the entry is compiled again, and that the next start uses what that made
    damaged=$(ls -i "$YARD_CACHE/$whole")
    check "$1: a start has the same numbers" has_same_numbers
    check "$1: the entry is compiled again" [ "$(ls -i "$YARD_CACHE/$whole")" != "$damaged" ]
    entries >"$TMP/before"
    check "$1: the next start has the same numbers" has_same_numbers
    check "$1: the next start compiles nothing" compiles_nothing
}

flip $((bytes / 2))
check_mended 'a changed byte'
flip $((bytes - 1))
check_mended 'a changed last byte'
head -c $((bytes / 2)) "$TMP/whole" >"$YARD_CACHE/$whole"
check_mended 'half an entry'
head -c 20 "$TMP/whole" >"$YARD_CACHE/$whole"
check_mended 'part of a header'
: >"$YARD_CACHE/$whole"
check_mended 'an empty entry'
cp "$YARD_CACHE/$other" "$YARD_CACHE/$whole"
check_mended "another program's entry"
cp "$TMP/whole" "$YARD_CACHE/$whole"
echo more >>"$YARD_CACHE/$whole"
check_mended 'an entry that is too long'

# ---- what decides about the code is in the key -----------------------------------------------------------------------

cp -r cl "$TMP/cl"
YARD_KERNELS="$TMP/cl" short_run "$TMP/now"
exit_code 'kernels of another folder are compiled' $? 0
check 'kernels of another folder compute the same' cmp -s "$TMP/now" "$TMP/reference"
echo '#warning of ours' >>"$TMP/cl/gelu.cl"
YARD_KERNELS="$TMP/cl" short_run "$TMP/now"
exit_code "what the driver's compiler warns of is not printed" $? 0
sed 's/0.0713548163f/9.0f/' cl/gelu.cl >"$TMP/cl/gelu.cl"
check 'gelu.cl has the number that is edited' differ cl/gelu.cl "$TMP/cl/gelu.cl"
YARD_KERNELS="$TMP/cl" short_run "$TMP/now"
exit_code 'an edited kernel is compiled' $? 0
check 'an edited kernel computes something else' differ "$TMP/now" "$TMP/reference"
entries >"$TMP/before"
YARD_BUILD_OPTIONS='-D UNUSED' short_run "$TMP/now"
exit_code 'kernels are compiled with other options' $? 0
entries >"$TMP/after"
check 'other options of the compiler make other entries' differ "$TMP/after" "$TMP/before"

# ---- a folder that is not there --------------------------------------------------------------------------------------

YARD_CACHE="$TMP/no/folder" "$YARD" train --model tiny --steps 1 >/dev/null 2>"$TMP/err"
exit_code 'a folder that is not there ends the run' $? 4
check 'a folder that is not there is named' \
    grep -q "cannot create $TMP/no/folder/.*does the folder exist" "$TMP/err"

# ---- two at once -----------------------------------------------------------------------------------------------------

export YARD_CACHE="$TMP/both"
short_run "$TMP/one" &
first=$!
name='two processes fill a cache together'
check "$name: the second one succeeds" short_run "$TMP/two"
check "$name: the first one succeeds" wait $first
check "$name: the first one has the numbers" cmp -s "$TMP/one" "$TMP/reference"
check "$name: the second one has the numbers" cmp -s "$TMP/two" "$TMP/reference"
half_entries() { # a whole entry has a name that ends in .program
    ls "$YARD_CACHE" >"$TMP/entries"
    enough 5 "$TMP/entries" 'entries'
    grep -v '\.program$' "$TMP/entries"
    return 0
}
finds_nothing "$name: only whole entries are left" half_entries
check "$name: a third one has the numbers" has_same_numbers

finish
