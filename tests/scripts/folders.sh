#!/bin/sh
# folders.sh - the folders of src and how they depend on each other.
#
# This script checks that the trainer builds and trains alone, that each other folder can be left out
# (src/trainer/base/module.h), and that includes lead only downwards, and never in a circle of folders.
#
# It builds the program without all folders but the trainer's, and then without each folder that registers itself, by
# `make WITHOUT=FOLDER`.  The program must train three steps with the bits of the whole program, and have none of the
# folder's commands and options.  The objects are the same each time; only the table of folders is compiled again.
#
#     $TMP/whole       what the whole program has saved        $TMP/yard    a program that was built without a folder
#     $TMP/help-names  options, commands of the whole program  $TMP/names   what each folder registers
#     $TMP/commands    its commands                            $TMP/order   an order of folders
#
# To see it fail: in module_view of command.c, leave out .options; or in modules.awk, the call of leave_out_needing().
. tests/lib/helpers.sh
. tests/lib/mistakes.sh
. tests/lib/help.sh

# ---- includes --------------------------------------------------------------------------------------------------------

# trainer  <-  planning  <-  techniques  <-  tools
#
# Each of these may include headers of those to its left, and of no other.
#
# grep's  src/tools/view/pen.c:7:#include "tools/picture/canvas.h"  gives  tools/view/pen.c tools/picture/canvas.h.
includes() { # "FILE WHAT IT INCLUDES" for each include of one of the project's headers
    grep -n '^#include "\(trainer\|planning\|techniques\|tools\)/' src/*/*/*.[ch] |
        sed 's|^src/||; s|:[0-9]*:#include "| |; s|".*||'
}
includes_upwards() {
    includes >"$TMP/includes"
    enough 200 "$TMP/includes" 'includes of headers'
    awk -f tests/scripts/folders_upwards.awk "$TMP/includes"
}
finds_nothing 'includes run down only' includes_upwards

# Two folders of one level, such as trainer/run and trainer/step, may not include each other either, nor may three or
# more in a circle: whoever reads one of them would have to read all.  tsort names the folders of a circle.
folder_includes() { # "FOLDER FOLDER" for each include that leads from one folder into another
    awk '
        {
            split($1, from, "/")
            split($2, to, "/")
        }
        from[1] "/" from[2] != to[1] "/" to[2] { print from[1] "/" from[2], to[1] "/" to[2] }' "$TMP/includes"
}
circles_of_folders() {
    folder_includes | sort -u >"$TMP/folder-includes"
    tsort "$TMP/folder-includes" >"$TMP/sorted" 2>"$TMP/circles"
    cat "$TMP/circles"
}
finds_nothing 'no folders include each other in a circle' circles_of_folders

# ---- leaving them out ------------------------------------------------------------------------------------------------

train() { # PROGRAM SAVE [OPTION...]
    program=$1 save=$2
    shift 2
    "$program" train --model tiny --data LICENSE --steps 3 --val-batches 1 --sample-tokens 0 --save "$save" "$@" \
        >"$TMP/out" 2>"$TMP/err"
}
# What the trainer alone can do, a line of options each.
cat >"$TMP/ways" <<'WAYS'
-d 0:0x4 --mesh dp=2,pp=2 --zero 2 --batch 8
-d 0:0x4 --mesh dp=2,tp=2 --untied --zero 0
-d 0:0x2 --mesh pp=2 --pipeline zbh1 --batch 4 --micro-batch 1 --clip 0
--tokens chars --attention flash --grad-groups 2 --micro-batch 1
--serial --schedule linear --val-share 0.5
WAYS
same_bits() { # FOLDER FOLDER
    cmp "$1/model.safetensors" "$2/model.safetensors" 2>"$TMP/err"
}
trains_alike() { # FOLDER: so does $TMP/yard, to the bits of the model there
    train "$TMP/yard" "$TMP/less" && same_bits "$1" "$TMP/less"
}

modules() { # FILE...: names of the modules that these files register
    sed -n 's/^const struct module module_\([a-z]*\).*/\1/p' "$@"
}

# Lines "plot command plot" and "pace option pace".
awk -f tests/scripts/folders_words.awk src/*/*/*.c >"$TMP/names" 2>"$TMP/err"
exit_code 'the tables of options and commands of all folders are found' $? 0

options_of() { # FOLDER: names of the options that it registers
    sed -n "s/^$1 option //p" "$TMP/names"
}
commands_of() { # FOLDER: names of its commands
    sed -n "s/^$1 command //p" "$TMP/names"
}

option_names() { # "--NAME" of the options in a help: "  -d, --device P:D  which one" gives "--device"
    sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p'
}
all_options() { # PROGRAM: those of the help of all its commands
    all_help "$1" | option_names
}

refuse_without() { # 'PART' WORDS...: the program that was built without a folder refuses the words
    YARD=$TMP/yard refuse 2 "$@"
}

check 'the whole program trains' train "$YARD" "$TMP/whole"

make -s YARD="$TMP/yard" WITHOUT=all >"$TMP/out" 2>"$TMP/err"
exit_code 'the trainer builds alone' $? 0
check 'the trainer alone trains with the same bits' trains_alike "$TMP/whole"
while read -r way; do
    name="the trainer alone with $way"
    # shellcheck disable=SC2086 # options
    check "$name: the whole program trains so" train "$YARD" "$TMP/with" $way
    # shellcheck disable=SC2086 # options
    check "$name trains" train "$TMP/yard" "$TMP/alone" $way
    check "$name has the same bits" same_bits "$TMP/with" "$TMP/alone"
    rm -rf "$TMP/with" "$TMP/alone"
done <"$TMP/ways"

# llm.c's own numbers: tests/unit/together/test_model.c has them.
tokens=tests/data/llmc-tokens.bin
loss_of() { # PROGRAM: the loss of a model of llm.c
    "$1" train --init tests/data/llmc-tiny.bin --data $tokens --val-data $tokens --lr 0 --steps 1 --batch 1 \
        --sample-tokens 0 2>"$TMP/err" | sed -n 's/.*validation loss *\([0-9.]*\).*/\1/p'
}
core_loss=$(loss_of "$TMP/yard")
loss=$(loss_of "$YARD")
check "the trainer alone evaluates a model of llm.c" [ -n "$core_loss" ]
same "its loss is that of the whole program" "$core_loss" "$loss"
"$TMP/yard" sample --from "$TMP/less" --count 5 >"$TMP/out" 2>"$TMP/err"
exit_code 'the trainer alone samples from the model that it has saved' $? 0
"$TMP/yard" train --model tiny --data LICENSE --steps 1000000 --save-every 1 --save "$TMP/killed" \
    >"$TMP/out" 2>"$TMP/err" &
child=$!
check 'with --save-every the trainer alone saves a model' within 60 [ -f "$TMP/killed/model.safetensors" ]
kill -9 $child
wait $child 2>/dev/null
"$TMP/yard" sample --from "$TMP/killed" --count 5 >"$TMP/out" 2>"$TMP/err"
exit_code 'with --save-every the trainer alone has a model before the end' $? 0
all_options "$TMP/yard" >"$TMP/core-options"
commands "$TMP/yard" >"$TMP/core-commands"
same 'the trainer alone has two commands' "$(tr '\n' ' ' <"$TMP/core-commands")" 'train sample '
refuse_without '--zero 3 keeps parameters in shards, ... this yard was built without' train --zero 3 -d 0:0x2
train "$YARD" "$TMP/learnt" --tokens bpe:300
refuse_without 'tokenizer of the kind "bpe", which this program cannot read; this yard was built without tokens' \
    sample --from "$TMP/learnt" --count 5

# ---- one at a time ---------------------------------------------------------------------------------------------------

builds_without() { # FOLDER: checks that it does, and trains; what goes along with it is told by the Makefile
    rm -rf "$TMP/yard" "$TMP/less"
    make -s YARD="$TMP/yard" WITHOUT="$1" >"$TMP/along" 2>"$TMP/err"
    code=$? # sed has an exit code too
    exit_code "the program builds without $1$(sed -n "s/.*goes along.*/; &/p" "$TMP/along")" $code 0
    check "the program without $1 trains with the same bits" trains_alike "$TMP/whole"
}

help_names() { # PROGRAM: all options and commands of its help
    all_options "$1"
    commands "$1"
}

look_up() { # FOLDER NAMES: for each option and command of the folder, a line "there: NAME" or "missing: NAME"
    for name in $(options_of "$1" | sed 's/^/--/') $(commands_of "$1"); do
        if grep -qx -- "$name" "$2"; then
            echo "there: $name"
        else
            echo "missing: $name"
        fi
    done
}

names_are_known() { # FOLDER: a check that the whole program has all that it registers
    look_up "$1" "$TMP/help-names" | grep '^missing' >"$TMP/wrong"
    no_complaints "$TMP/wrong" "the whole program has what $1 registers"
}

help_is_without() { # FOLDER: a check that the help has none of the folder's options, and that its command is gone
    help_names "$TMP/yard" >"$TMP/names-left"
    look_up "$1" "$TMP/names-left" | grep '^there' >"$TMP/wrong"
    no_complaints "$TMP/wrong" "its help has nothing of $1"
}

option_says_why() { # FOLDER: a check, if an option is named for the folder
    option=$(options_of "$1" | head -n 1)
    case $option in
    "$1" | "$1"-*) ;;
    *) return ;;
    esac
    refuse_without "unknown option --$option=1; this yard was built without ...$1" train "--$option=1"
}

refuse_command() { # COMMAND FOLDER: it has gone with the folder; the sentence names that if it has the same name
    because=
    if [ "$1" = "$2" ]; then
        because=": this yard was built without ...$2"
    fi
    refuse_without "there is no command \"$1\"$because" "$1"
}

help_names "$YARD" >"$TMP/help-names"
commands "$YARD" >"$TMP/commands"
"$YARD" train --help | option_names | sort -u >"$TMP/train-options"
enough 50 "$TMP/train-options" 'options of train' >"$TMP/wrong"
sed -n 's/^[a-z]* option /--/p' "$TMP/names" >"$TMP/of-folders"
grep -vx -F -f "$TMP/core-options" "$TMP/train-options" | grep -vx -F -f "$TMP/of-folders" >>"$TMP/wrong"
no_complaints "$TMP/wrong" "each option of train is the trainer's, or stands in the table of folders"
for folder in $(modules src/planning/*/*.c src/techniques/*/*.c src/tools/*/*.c); do
    names_are_known "$folder"
    builds_without "$folder"
    option_says_why "$folder"
    help_is_without "$folder"
    for gone in $(commands_of "$folder"); do
        refuse_command "$gone" "$folder"
        echo "$gone" >>"$TMP/gone"
    done
    case $folder in
    gather)
        refuse_without '--zero 3 keeps parameters in shards, ... built without ...gather' train --zero 3 ;;
    stories)
        refuse_without '--data stories: this yard was built without stories' train --data stories ;;
    swap)
        refuse_without '--recompute auto needs the search of --swap auto, and this yard was built without ...swap' \
            train --recompute auto ;;
    esac
done
sort "$TMP/core-commands" "$TMP/gone" >"$TMP/expected"
sort "$TMP/commands" | diff - "$TMP/expected" >"$TMP/wrong"
no_complaints "$TMP/wrong" "the commands are the trainer's and one of each folder that registers one"

# ---- the places of folders -------------------------------------------------------------------------------------------

make -s modules >"$TMP/modules" 2>"$TMP/err"
modules src/*/*/*.c | sort >"$TMP/expected"
sed 1d "$TMP/modules" | awk '{ print $1 }' | sort | diff - "$TMP/expected" >"$TMP/wrong"
no_complaints "$TMP/wrong" 'make modules prints every module once'
"$YARD" plan --after nothing 2>&1 | sed -n 's/.*there are: //p' | tr -d ' ' | tr ',' '\n' >"$TMP/passes"
awk 'NR > 1 && $2 != "-" { print $2, $1 }' "$TMP/modules" | sort -n | cut -d ' ' -f 2 >"$TMP/order"
{
    enough 5 "$TMP/passes" 'passes'
    diff "$TMP/order" "$TMP/passes"
} >"$TMP/wrong"
no_complaints "$TMP/wrong" 'make modules numbers the passes in the order in which they run'

order_of() { # FOLDER AFTER [FOLDER AFTER...]: such folders, in the order that make gives them; else what is wrong
    folders=$TMP/folders
    rm -rf "$folders"
    while [ $# -gt 0 ]; do
        mkdir -p "$folders/$1"
        printf 'const struct module module_%s = {\n    .after = "%s",\n};\n' "$1" "$2" >"$folders/$1/$1.c"
        shift 2
    done
    awk -v as=modules -f src/make/modules.awk "$folders"/*/*.c >"$TMP/table" 2>"$TMP/err" || return
    awk 'NR > 1 { print $1 }' "$TMP/table" | tr '\n' ' '
}
order=$(order_of a '' b c c '')
same "folders stand by name, but for one that must stand after another" "$order" 'a c b '
order=$(order_of a 'c b' b c c '')
same "each folder stands after all that it names" "$order" 'c b a '
order_of a b b 'c' c a
exit_code 'folders that wait for each other are refused' $? 2
check 'of folders that wait for each other one is named' \
    grep -q '^[^ ]*/a: .after = "b": this folder and those that it names wait for each other$' "$TMP/err"
order_of a b b c c b
exit_code 'folders that wait for each other are refused, with one that waits for them' $? 2
check 'not the one that waits for them is named, but one of them' grep -q '^[^ ]*/[bc]: .after = ' "$TMP/err"
order_of a d
exit_code 'a folder that waits for an unknown one is refused' $? 2
check 'the unknown folder is named' grep -q 'no folder registers itself as d$' "$TMP/err"

# ---- and back --------------------------------------------------------------------------------------------------------

make -s YARD="$TMP/yard" WITHOUT= >"$TMP/out" 2>"$TMP/err"
exit_code 'make with an empty WITHOUT= builds the program again' $? 0
commands "$TMP/yard" >"$TMP/commands-again"
check 'make with an empty WITHOUT= builds all folders again' cmp "$TMP/commands" "$TMP/commands-again"
make -n WITHOUT=train 2>"$TMP/err" >"$TMP/out"
exit_code 'WITHOUT= a folder that is unknown is refused' $? 2
check 'WITHOUT= a folder that is unknown says which may be named' \
    grep -q "no folder besides the trainer's registers itself by that name" "$TMP/err"
finish
