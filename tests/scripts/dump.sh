#!/bin/sh
# dump.sh - yard train --dump writes a tensor as NumPy reads it, with the same bits in a serial run and with passes.
. tests/run/helpers.sh
. tests/run/mistakes.sh

few='--model tiny --steps 3 --sample-tokens 0 --val-share 0'

command -v python3 >/dev/null || skip_all 'dumps' 'there is no python3 to read them'

# Attention's shares lie between 0 and 1, and right after its last writer they have not been overwritten.
yard train $few --serial --dump attn.att@0="$TMP/serial.npy" &&
    python3 tests/scripts/read_npy.py "$TMP/serial.npy" 4x2x32x32 >"$TMP/numbers" &&
    awk '{ exit !($1 == 8192 && $2 >= 0 && $3 <= 1 && $3 > 0.03) }' "$TMP/numbers"
result $? "attn.att is attention's shares"
yard train $few --dump attn.att@0="$TMP/threads.npy" && cmp -s "$TMP/serial.npy" "$TMP/threads.npy"
result $? 'a run with threads dumps the same bits'
yard train $few --dump attn.att="$TMP/last.npy" && ! cmp -s "$TMP/serial.npy" "$TMP/last.npy"
result $? 'another layer has other values'
yard train $few --serial --dump batch="$TMP/batch.npy" &&
    python3 tests/scripts/read_npy.py "$TMP/batch.npy" 768 >"$TMP/numbers" &&
    grep -q '^768 [0-9]* [0-9]*$' "$TMP/numbers"
result $? 'whole numbers are dumped as such'

# The last writer of a parameter is its update, so the dump is what a checkpoint has.
yard train $few --dump h.1.mlp.c_fc.bias="$TMP/bias.npy" --save "$TMP/saved" &&
    tail -c 512 "$TMP/bias.npy" >"$TMP/bytes" && cat "$TMP"/saved/step-*/*.safetensors >"$TMP/all" &&
    python3 -c 'import sys; part, all = (open(f, "rb").read() for f in sys.argv[1:]); sys.exit(not part in all)' \
        "$TMP/bytes" "$TMP/all"
result $? 'a parameter is dumped after its update, as it is saved'

refuse 2 'no task writes a tensor attn.at; did you mean attn.att?' train $few --dump attn.at="$TMP/none.npy"
refuse 2 'a tensor GELU; did you mean mlp.gelu?' train $few --dump GELU="$TMP/none.npy"
refuse 2 'a tensor qqqqqqqqqqq; `yard plan' train $few --dump qqqqqqqqqqq="$TMP/none.npy"
refuse 2 'no task of layer 7 uses attn.att' train $few --dump attn.att@7="$TMP/none.npy"
refuse 2 'takes NAME=FILE.npy' train $few --dump attn.att
refuse 2 'takes NAME=FILE.npy' train $few --dump attn.att="$TMP/none.txt"
[ ! -e "$TMP/none.npy" ]
result $? 'a refused dump leaves no file'
finish
