#!/bin/sh
# dump.sh - the option --dump of `yard train`.
#
# This script checks that NumPy can read a dumped tensor, and that its bits are the same in a serial run and in one with
# threads.
#
# To see it fail: in dump_in_time() of dump.c, dump before the writer runs: == in place of > between the two positions.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

train_few() { # OPTIONS...
    yard train --model tiny --steps 3 --sample-tokens 0 --val-share 0 "$@"
}

command -v python3 >/dev/null || skip_all 'NumPy reads dumps' 'there is no python3 to read them'

read_dump() { # FILE SHAPE [WHAT IT MUST BE], as read_npy.py takes them: what that prints goes to $TMP/numbers
    python3 tests/scripts/read_npy.py "$@" >"$TMP/numbers" 2>"$TMP/err"
}

# ---- what is dumped --------------------------------------------------------------------------------------------------

# Right after its last writer the tensor has not been overwritten: of each position, attention's shares add up to 1.
name='attn.att of layer 0'
check "$name: it is dumped" train_few --serial --dump attn.att@0="$TMP/serial.npy"
check "$name: NumPy reads it" read_dump "$TMP/serial.npy" 4x2x32x32
check "$name: it has 8192 numbers, from 0 to 1" holds '8192 0.0 1.0' "$TMP/numbers"
check "$name: of each position its shares add up to 1, and none is of a later position" \
    read_dump "$TMP/serial.npy" 4x2x32x32 shares
check "$name: a run with threads dumps it too" train_few --dump attn.att@0="$TMP/threads.npy"
check "$name: a run with threads dumps the same bits" cmp -s "$TMP/serial.npy" "$TMP/threads.npy"
check "$name: without @0 the last layer is dumped" train_few --dump attn.att="$TMP/last.npy"
check "$name: the last layer has other values" differ "$TMP/serial.npy" "$TMP/last.npy"

name='whole numbers'
check "$name: they are dumped" \
    train_few --serial --data LICENSE --tokens bytes --batch 4 --dump batch="$TMP/batch.npy"
check "$name: NumPy reads them" read_dump "$TMP/batch.npy" 768
check "$name: they are whole" grep -q '^768 [0-9]* [0-9]*$' "$TMP/numbers"
check "$name: tokens and targets of 4 rows are bytes of the text" read_dump "$TMP/batch.npy" 768 128 32 LICENSE

# The last writer of a parameter is its update, so the dump is what a checkpoint has.
name='a parameter'
check "$name: it is dumped" train_few --dump h.1.mlp.c_fc.bias="$TMP/bias.npy" --save "$TMP/saved"
check "$name: the values after its update are dumped, as they are saved" \
    read_dump "$TMP/bias.npy" 128 saved "$TMP"/saved/step-*/*.safetensors
check "$name: it has 128 numbers" grep -q '^128 ' "$TMP/numbers"

# ---- mistakes --------------------------------------------------------------------------------------------------------

refuse 2 'no task writes a tensor attn.at; did you mean attn.att?' train --model tiny --dump attn.at="$TMP/none.npy"
refuse 2 'a tensor GELU; did you mean mlp.gelu?' train --model tiny --dump GELU="$TMP/none.npy"
refuse 2 'a tensor qqqqqqqqqqq; `yard plan' train --model tiny --dump qqqqqqqqqqq="$TMP/none.npy"
refuse 2 'no task of layer 7 uses attn.att' train --model tiny --dump attn.att@7="$TMP/none.npy"
refuse 2 'no task writes a tensor attn.att@4294967297' train --model tiny --dump attn.att@4294967297="$TMP/none.npy"
refuse 2 'takes NAME=FILE.npy' train --model tiny --dump attn.att
refuse 2 'takes NAME=FILE.npy' train --model tiny --dump attn.att="$TMP/none.txt"
check 'a refused dump leaves no file' [ ! -e "$TMP/none.npy" ]
finish
