#!/bin/sh
# league.sh - entries that attack the judge of the league (tutorials/labs/lib/board.sh).
#
# This script checks that no attack scores, that each is refused by a sentence that says why, and that no file of the
# judge is read or changed.  It also checks that honest entries score, and that judging them again gives the same
# scores.
#
# A pass attacks in a function that runs before its main().
#
# To see it fail: in judge_list() of board.sh, leave out must_be_new().
. tests/lib/helpers.sh

# board.sh says what these are.
BOARD='--model tiny --batch 8 --micro-batch 4'
BUDGET='--device-mem 1G'
DRAWS=2
BITS=
SECONDS_OF_ALL=120
SECONDS_OF_ONE=10
export BOARD BUDGET DRAWS BITS SECONDS_OF_ALL SECONDS_OF_ONE

board=tutorials/labs/lib/board.sh
entries=$TMP/entries
secret=$TMP/secret
mkdir -p "$entries"
echo 'the judge alone knows 74205' >"$secret"
chmod 644 "$secret"

league() { # FILE...: the table
    sh $board "$@" >"$TMP/table" 2>"$TMP/err" </dev/null
}

scores() { # NAME TABLE: it has a rank there
    grep -qE "^ +[0-9]+\. +[0-9.]+ ms +bits [a-z-]+ +$1\$" "$2"
}

has_no_rank() { # NAME WHY TABLE: it has none, and the sentence that follows says so
    ! scores "$1" "$3" && grep -qE "^ +$1 refused: .*$2" "$3"
}

# Each attack is one entry, and one line of $TMP/attacks: what it does, its name in the table, why it is refused.
: >"$TMP/attacks"
attack() { # NAME WHAT WHY
    echo "$1|$2|$3" >>"$TMP/attacks"
}

# ---- lists -----------------------------------------------------------------------------------------------------------

models_own() { # OPTIONS...: the list, for the hardware that entries know
    # shellcheck disable=SC2086 # options
    "$YARD" plan $BOARD --hardware data/hardware/server.txt "$@" --print-list
}
models_own >"$TMP/own.txt"
models_own --recompute full >"$entries/recompute.txt"

list() { # NAME SCRIPT WHAT WHY: the model's own list, as the sed script changes it
    sed "$2" "$TMP/own.txt" >"$entries/$1.txt"
    if cmp -s "$entries/$1.txt" "$TMP/own.txt"; then
        echo "the attack $1 changes nothing" >>"$TMP/idle"
    fi
    attack "$1.txt" "$3" "$4"
}
: >"$TMP/idle"
list update '/^task adamw .*layer=1 /d' 'drops an update' 'other tasks'
list read '/^task adamw .*layer=1 /s/reads=param.2,/reads=param.2,adam.m.2,adam.v.2,grad.2,control,/' \
    'reads other tensors' 'touches other bytes'
list unread '/^task adamw .*layer=1 /s/,grad.2,/,/' 'drops a read' 'touches other bytes'
list stale '/^task adamw .*layer=1 /s/,grad.2,/,grad.1,/' 'reads the gradient of another layer' 'other values'
list time 's/^\(task mlp.fc [^ ]*\) [^ ]*/\1 1e-9/' 'changes the time of a task' 'times are not'
list bytes '/^tensor adam.m.1 /s/ [0-9]* optimizer/ 4 optimizer/' 'changes the bytes of a tensor' \
    'other bytes, class or flags'
list work '/^tensor embed /s/ [0-9]* activations/ 4 activations/' 'shrinks an activation' 'touches other bytes'
list rarely 's/^task adamw .* role=update/& every=1000/' 'updates in every thousandth step' 'in other steps'
list side '/^tensor grad.1 /s/$/ side/' 'hides a tensor from the comparison' 'is a side word'
list device '1a device fast.0 memory=1099511627776' 'names a hidden device' 'machine is not'
list link 's/^\(link .* up\) [^ ]*/\1 1e15/' 'names a faster link' 'machine is not'
list lane '/^disk/a lane server.0.compute1' 'adds a free lane' 'lane server.0.compute1'
list hosted 's/^task adamw server.0.compute/task adamw host.cpu/' 'updates on the host what lies on the device' \
    'a copy has to bring it'
list copy '/^copy report.loss /i copy mine embed embed lane=server.0.compute' 'copies within a device, in no time' \
    'nobody knows a time'
list message '1i {"simulation": {"step_ms": 0.001}}' 'writes a result for the judge' 'begins with'
list newline "/^copy report.loss /s/report.loss/$(printf 'a\rb')/" 'has a name with a control character' 'character'

# ---- options and names -----------------------------------------------------------------------------------------------

option() { # NAME LINE WHAT WHY
    echo "$2" >"$entries/$1"
    attack "$1" "$3" "$4"
}
option hardware 'hardware = /tmp/fast.txt' 'brings its own hardware' 'not an entry'
option trace "trace = $TMP/written" 'lets the judge write a file' 'not an entry'
option path 'overlap = ../../plan' 'has a path as a value' 'other characters'
ln -s "$secret" "$entries/linked.txt"
attack linked.txt 'is a link to a file of the judge' 'a link'
newline=$(printf 'x\n  1. 0.001 ms')
echo 'recompute = off' >"$entries/$newline"
attack 'x.*0.001.ms' 'has a name that would be a line of the table' 'other characters'

# ---- patches that are no pass ----------------------------------------------------------------------------------------

patch_of() { # NAME PATH CODE: an entry with one new file
    {
        echo "diff --git a/$2 b/$2"
        echo 'new file mode 100644'
        echo '--- /dev/null'
        echo "+++ b/$2"
        echo "@@ -0,0 +1,$(printf '%s\n' "$3" | wc -l) @@"
        printf '%s\n' "$3" | sed 's/^/+/'
    } >"$entries/$1.patch"
}
patch_of tests tests/scripts/labs.sh 'exit 0'
attack tests.patch "edits tests" 'one folder of src/techniques'
patch_of dots src/techniques/../../tests/lib/run.sh 'exit 0'
attack dots.patch 'has a path with ..' 'one folder of src/techniques'
patch_of judge src/planning/lists/readlist.c 'int x;'
attack judge.patch "replaces a file of the judge's program" 'one folder of src/techniques'
patch_of swap src/techniques/swap/mine.c 'int x;'
attack swap.patch 'adds to a folder that is there' 'is there already'
patch_of symlink src/techniques/mine/link.c "$secret"
sed 's/mode 100644/mode 120000/' "$entries/symlink.patch" >"$TMP/edited"
mv "$TMP/edited" "$entries/symlink.patch"
attack symlink.patch 'has a symbolic link' 'changes, renames or links'

# ---- passes ----------------------------------------------------------------------------------------------------------

pass() { # NAME WHAT WHY: a pass whose code, given on stdin, runs before main(); without WHY it is no attack
    patch_of "$1" "src/techniques/$1/$1.c" "#include \"trainer/base/module.h\"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
const struct module module_$1 = {.name = \"$1\"};
void before(void) __attribute__((constructor));
void before(void)
{
$(cat)
}"
    if [ -n "$3" ]; then
        attack "$1.patch" "$2" "$3"
    fi
}
sandbox=
if sh tutorials/labs/lib/sandbox.sh --works; then
    sandbox=yes
fi
why='no list: it does not build'
pass prints 'prints a result itself' 'begins with' <<'CODE'
    puts("{\"simulation\": {\"step_ms\": 0.001}}");
    exit(0);
CODE
pass includes 'includes a file of the judge' "$why" <<CODE
#include "$secret"
CODE
pass reaches "reads, writes, runs and replaces the judge's files, and calls over the network" "$why" <<CODE
    char line[100];
    FILE *f = fopen("$secret", "r");
    if (f && fgets(line, 100, f))
        puts(line);
    f = fopen("$TMP/written", "w");
    if (f)
        fclose(f);
    int program = open("$PWD/yard", O_WRONLY);
    if (program >= 0 && write(program, "x", 1) == 1)
        puts("replaced");
    if (system("{ grep : /proc/net/route || ls /home || ls /root || ls /var || ls /old/usr; } >/tmp/found") == 0)
        puts("reached");
    execl("$PWD/yard", "yard", "plan", "--model", "tiny", NULL);
    exit(0);
CODE
pass forks 'forks forever' "$why" <<'CODE'
    while (fork() >= 0)
        ;
    kill(-1, SIGKILL);
    _exit(0);
CODE
pass prattles 'hands over without end' 'more than' <<'CODE'
    while (puts("# and so on, and so on, and so on") >= 0)
        ;
    exit(0);
CODE
pass fills 'fills disk and memory' "$why" <<'CODE'
    FILE *f = fopen("/tmp/f", "w");
    signal(SIGXFSZ, SIG_IGN);
    while (fputs("and so on, and so on, and so on", f) >= 0)
        ;
    while (malloc(1 << 26))
        ;
    exit(0);
CODE
pass honest 'is honest' '' </dev/null
{ echo '#+ overlap = all-cpu' && cat "$entries/honest.patch"; } >"$TMP/edited"
mv "$TMP/edited" "$entries/honest.patch"

# ---- the judgement ---------------------------------------------------------------------------------------------------

no_complaints "$TMP/idle" 'every attack changes its list'
cp "$TMP/own.txt" "$entries/second.txt"
sed 's/^tensor/tensor /' "$TMP/own.txt" >"$entries/third.txt"
attack third.txt "hands over another entry's list" 'the list of second.txt'
echo 'recompute = selective' >"$entries/options"
printf '#= mesh = dp=2\n' >"$entries/mesh.txt"
models_own --mesh dp=2 >>"$entries/mesh.txt"
if [ -z "$sandbox" ]; then # no pass is built, and so none is judged
    for name in prints includes reaches forks prattles fills honest; do
        rm "$entries/$name.patch"
    done
fi
cksum ./yard >"$TMP/before"
league "$entries"/*
for name in second.txt recompute.txt options mesh.txt honest.patch; do
    [ -e "$entries/$name" ] || continue
    check "an honest entry scores: $name" scores "$name" "$TMP/table"
done
while IFS='|' read -r name what reason; do
    if grep -qE "^ +$name refused" "$TMP/table" || [ -e "$entries/$name" ]; then
        check "nothing for an entry that $what" has_no_rank "$name" "$reason" "$TMP/table"
    else
        skip "nothing for an entry that $what" 'unprivileged namespaces are not there'
    fi
done <"$TMP/attacks"
check 'the secret of the judge is in no table' lacks 74205 "$TMP/table"
check 'nothing was written outside' [ ! -e "$TMP/written" ]
cksum ./yard >"$TMP/after"
check "the judge's program is as before" cmp "$TMP/before" "$TMP/after"

without_ranks() {
    sed 's/^ *[0-9]*\. *//' "$TMP/table"
}
other_scores() { # lines of this table that the first one does not have
    without_ranks >"$TMP/again"
    enough 3 "$TMP/again" 'lines of a table'
    grep -vxF -f "$TMP/first" "$TMP/again"
    [ $? -le 1 ] # grep has found none, or some
}
without_ranks >"$TMP/first"
league "$entries/mesh.txt" "$entries/options" "$entries/recompute.txt"
finds_nothing 'a rerun gives the same scores' other_scores

# Between the original and its copy another entry comes, which has the original's name.
mkdir "$entries/elsewhere"
cp "$entries/recompute.txt" "$entries/elsewhere/second.txt"
league "$entries/second.txt" "$entries/elsewhere/second.txt" "$entries/third.txt"
check 'nothing for a copy, though another entry has the name of its original' \
    has_no_rank third.txt 'the list of' "$TMP/table"
league "$entries/mesh.txt" "$entries/options" "$entries/recompute.txt"
cp "$TMP/table" "$TMP/one"
SEED=2 league "$entries/mesh.txt" "$entries/options" "$entries/recompute.txt"
check 'another seed draws other hardware' differ "$TMP/table" "$TMP/one"
finish
