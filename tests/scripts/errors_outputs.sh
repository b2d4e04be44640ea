#!/bin/sh
# errors_outputs.sh - what a user can get wrong with files that a command writes.
#
# This script checks that every mistake has its exit code and a sentence, and that nothing is written over: no input, no
# model that is saved, no file of another kind.  errors_files.sh has the mistakes with files that are read.
#
# errors.sh says how to add a line.  Each section ends with a look at the files that must have come through it:
# unharmed, or a sum of their bytes.
#
# To see it fail: in expect_own_kind() of claims.c, return at once.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

save_model || exit 1 # errors.sh has checked that
st=tests/data/gpt2-tiny.safetensors
server=data/hardware/server.txt
printf 'too short' >"$TMP/short.txt"

# ---- files that cannot be written ------------------------------------------------------------------------------------

# Below a regular file nothing can be made, not even by root.
below=$TMP/short.txt/x
refuse_train 4 "cannot write --log $below: Not a directory" --log "$below"
refuse_train 4 "cannot create $below: Not a directory" --trace "$below"
refuse 4 "cannot make the folder $TMP/short.txt: a file of that name is in the way" train --model tiny --save "$below"
unharmed 'files that cannot be written'

# ---- one file twice --------------------------------------------------------------------------------------------------

cp $st "$TMP/init.safetensors"
cp $server "$TMP/server"
mkdir "$TMP/mixed"
cp "$TMP/short.txt" "$TMP/mixed/a.txt"
cp "$TMP/short.txt" "$TMP/mixed/c.txt"
cp README.md "$TMP/text.txt"
ln "$TMP/init.safetensors" "$TMP/hard"
ln -s init.safetensors "$TMP/soft"
printf 'steps = 2\n' >"$TMP/config"
check 'a plan is traced' yard plan --model tiny --simulate --hardware "$TMP/server" --trace "$TMP/planned"
cp -r cl "$TMP/cl"
sum_of_inputs() {
    cat "$TMP/init.safetensors" "$TMP/server" "$TMP"/mixed/* "$TMP/text.txt" "$TMP/config" "$TMP/planned" \
        "$TMP/cl/gelu.cl" | cksum
}
inputs=$(sum_of_inputs)
for output in --log --trace; do
    refuse 2 "$output $TMP/init.safetensors would overwrite what --init reads" \
        train --init "$TMP/init.safetensors" $output "$TMP/init.safetensors"
    refuse 2 'would overwrite what --init reads' train --init "$TMP/init.safetensors" $output "$TMP/hard"
    refuse 2 'would overwrite what --init reads' train --init "$TMP/soft" $output "$TMP/init.safetensors"
    refuse 2 'would overwrite what --data reads' train $output "$TMP/text.txt" --data "$TMP/text.txt"
    refuse 2 'would overwrite what --data reads' train $output "$TMP/mixed/c.txt" --data "$TMP/mixed"
    refuse 2 'would overwrite what --data reads' train $output "$TMP/mixed/c.txt" --data "$TMP/mix*/*.txt"
    refuse 2 'would overwrite what --val-data reads' train $output "$TMP/text.txt" --val-data "$TMP/text.txt"
    refuse 2 'would overwrite what --config reads' train $output "$TMP/config" --config "$TMP/config"
    refuse 2 'would overwrite what --pace reads' train $output "$TMP/server" --pace "$TMP/server"
    refuse_train 2 "--save $saved would overwrite what $output writes" $output "$saved"
    refuse 2 "$output takes a path, not \"\"" train $output ''
done
refuse_train 2 'would overwrite what --log writes' --log "$TMP/x" --trace "$TMP/x"
refuse_train 2 'would overwrite what --log writes' --log "$TMP/./new.log" --trace "$TMP//new.log"
refuse 2 "--save $TMP/new/model.safetensors would overwrite what --log writes" \
    train --save "$TMP/new" --log "$TMP/new/model.safetensors"
refuse_with "YARD_KERNELS=$TMP/cl" 2 'would overwrite what the kernel compiler reads' \
    train --model tiny --steps 1 --trace "$TMP/cl/gelu.cl"
refuse 2 'would overwrite what --init reads' train --init "$saved" --save "$TMP/saved"
refuse 2 'would overwrite what --data reads' profile -o "$TMP/text.txt" --data "$TMP/text.txt"
refuse 2 'would overwrite what --config reads' profile -o "$TMP/config" --config "$TMP/config"
refuse 2 'would overwrite what --hardware reads' plan --simulate --hardware "$TMP/server" --trace "$TMP/server"
refuse 2 'would overwrite what --profile reads' plan --simulate --profile "$TMP/server" --trace "$TMP/server"
refuse 2 'would overwrite what trace export reads' trace export "$TMP/planned" --chrome "$TMP/planned"
refuse 2 'is a checkpoint, to which nothing is added' train --resume "$TMP/saved" \
    --log "$TMP/saved/step-2/rank-0.safetensors"
refuse 2 'trace summary takes a path, not ""' trace summary ''
same 'outputs onto inputs: no input was touched' "$(sum_of_inputs)" "$inputs"
for output in x new.log new; do
    check "outputs onto inputs: no output was begun: $output" [ ! -e "$TMP/$output" ]
done
unharmed 'outputs onto inputs'

# A model is saved over another one only if it goes on with that.
refuse 2 'has another model (2 layers, 2 heads, 32 channels, seq-len 32, vocabulary 256, tied head)' \
    train --model tiny --layers 1 --save "$TMP/saved" --trace "$TMP/x"
refuse 2 'has another model (... vocabulary 256, tied head)' \
    train --model tiny --tokens chars --save "$TMP/saved" --log "$TMP/x"
check 'another model is refused before anything is written' [ ! -e "$TMP/x" ]
unharmed 'another model'
cp -r "$TMP/saved" "$TMP/other"
rm -r "$TMP/other"/step-*
printf 'no model' >"$TMP/other/model.safetensors"
refuse 2 'is a text, not a model that is read here' train --model tiny --save "$TMP/other"
rm "$TMP/other/model.safetensors" && mkdir "$TMP/other/model.safetensors"
refuse 4 'model.safetensors is a folder; expected a regular file' train --model tiny --save "$TMP/other"

# ---- outputs onto files of another kind ------------------------------------------------------------------------------

kinds=$TMP/kinds
mkdir "$kinds"
cp README.md "$kinds/notes.txt"
gzip -c README.md >"$kinds/notes.gz"
cp $server "$kinds/server.txt"
cp tests/data/gpt2-tiny.safetensors "$kinds/model.safetensors"
cp tests/data/llmc-tokens.bin "$kinds/tokens.bin"
cp "$TMP/planned" "$kinds/trace"
name='a file of each kind is made'
check "$name: a snapshot and a log" train_short --snapshot "$kinds/snap" --log "$kinds/log"
check "$name: a picture" yard plot "$kinds/log" --png "$kinds/png"
check "$name: a trace for browsers" yard trace export "$kinds/trace" --chrome "$kinds/chrome"
kept=$(cat "$kinds"/* | cksum)
for file in "$kinds"/*; do
    name=${file##*/} over="$file would write over a file that is "
    [ "$name" = log ] || refuse 2 "--log $over" train --model tiny --steps 2 --log "$file"
    [ "$name" = trace ] || refuse 2 "--trace $over" train --model tiny --steps 2 --trace "$file"
    [ "$name" = trace ] || refuse 2 "--trace $over" \
        plan --model tiny --simulate --hardware $server --trace "$file"
    [ "$name" = snap ] || refuse 2 'is not a snapshot file' train --model tiny --steps 2 --snapshot "$file"
    if [ "$name" != png ] && [ "$name" != log ]; then
        refuse 2 "--png $over" plot "$kinds/log" --png "$file"
    fi
    if [ "$name" != png ] && [ "$name" != trace ]; then
        refuse 2 "--png $over" view "$kinds/trace" --png "$file"
    fi
    if [ "$name" != chrome ] && [ "$name" != trace ]; then
        refuse 2 "--chrome $over" trace export "$kinds/trace" --chrome "$file"
    fi
    refuse 2 "--output $over" profile --model tiny -o "$file"
done
refuse 2 'x.jpg names another form: let it end with .png, not .jpg' plot "$kinds/log" --png "$TMP/x.jpg"
same 'none of these files was touched, since each was of another kind than the output' \
    "$(cat "$kinds"/* | cksum)" "$kept"
name='a file of the same kind as the output is replaced'
check "$name: a log, a trace, a snapshot" \
    train_short --steps 3 --log "$kinds/log" --trace "$kinds/trace" --snapshot "$kinds/snap"
same "$name: the log has 3 steps and a validation, and nothing older" "$(grep -c loss "$kinds/log")" 4
check "$name: a picture" yard plot "$kinds/log" --png "$kinds/png"
check "$name: a trace for browsers" yard trace export "$kinds/trace" --chrome "$kinds/chrome"
check "$name: a packed one is made" yard trace export "$kinds/trace" --chrome "$kinds/packed.gz"
check "$name: a packed one" yard trace export "$kinds/trace" --chrome "$kinds/packed.gz"

# ---- what earlier runs have left -------------------------------------------------------------------------------------

kept=$TMP/earlier
save_twice() { # OPTION PATH 'WARNING': a new run warns of what it will replace, one that goes on does not
    check "$1 keeps a run" train_short --steps 4 "$1" "$2"
    check "$1 warns that an earlier run will be replaced" warns "$3" \
        train --model tiny --steps 2 --sample-tokens 0 --val-batches 1 "$1" "$2"
    check "--resume goes on with what $1 has kept" train_short --steps 4 --resume "$2" "$1" "$2"
    check "--resume does not warn of what $1 has kept" lacks 'earlier run' "$TMP/err"
}
save_twice --save "$kept" "$kept/step-4 is of an earlier run, whose checkpoints this run will remove"
save_twice --snapshot "$kept.snap" "of an earlier run, which this run's snapshots will replace"

finish
