#!/bin/sh
# transformers.sh - Hugging Face's transformers and exported folders.
#
# This script checks that transformers opens an exported folder and writes what yard writes, and that yard opens what
# transformers saves, in shards too, and writes the same again.
#
# PYTHON is a Python that has transformers and torch.
#
# To see it fail: in model_forms.c, let the export name another activation_function, "relu".
. tests/lib/helpers.sh

python=${PYTHON:-python3}

"$python" -c 'import torch, transformers' 2>/dev/null ||
    skip_all 'transformers opens an export' "$python has no transformers, or no torch; PYTHON names another"

cat >"$TMP/continue.py" <<'END'
import sys
from transformers import pipeline
folder, kind, prompt, saved = sys.argv[1:]
everything = open("LICENSE").read()
if kind != "chars":  # a model of characters knows only those of its text
    everything += "".join(chr(code) for code in range(1, 2048))
write = pipeline("text-generation", model=folder)
tokens = write.tokenizer(everything, verbose=False)["input_ids"]
assert write.tokenizer.decode(tokens) == everything
print(write(prompt, max_new_tokens=50, do_sample=False)[0]["generated_text"])
write.model.save_pretrained(saved + "-whole")
write.model.save_pretrained(saved + "-shards", max_shard_size="50KB")
for form in "-whole", "-shards":
    write.tokenizer.save_pretrained(saved + form)
END

for tokens in bytes chars bpe:300; do
    head=
    [ $tokens = bytes ] || head=--untied
    name="a model of $tokens"
    "$YARD" train --model tiny $head --seq-len 64 --tokens $tokens --data LICENSE --val-share 0 --sample-tokens 0 \
        --steps 400 --lr 5e-3 --save "$TMP/$tokens" >"$TMP/out" 2>"$TMP/err"
    exit_code "$name is trained" $? 0
    "$YARD" ckpt export "$TMP/$tokens" "$TMP/$tokens-hf" >"$TMP/out" 2>"$TMP/err"
    exit_code "$name is exported" $? 0
    "$YARD" sample --from "$TMP/$tokens" --prompt 'of the' --temperature 0 --count 50 >"$TMP/ours" 2>"$TMP/err"
    exit_code "$name goes on in yard" $? 0
    HF_HUB_OFFLINE=1 "$python" "$TMP/continue.py" "$TMP/$tokens-hf" $tokens 'of the' "$TMP/$tokens-theirs" \
        >"$TMP/theirs-of-$tokens" 2>"$TMP/err"
    exit_code "$name goes on in transformers" $? 0
    check "$name: transformers warns of nothing" lacks '[Ww]arn\|WARN\|_token_id' "$TMP/err"
    check "$name goes on in the same way" cmp "$TMP/ours" "$TMP/theirs-of-$tokens"
done
for folder in bytes-theirs-whole bytes-theirs-shards chars-theirs-whole chars-theirs-shards \
    bpe:300-theirs-whole bpe:300-theirs-shards; do # these files no longer have the metadata that yard wrote
    name="what transformers saves in $folder"
    "$YARD" sample --from "$TMP/$folder" --prompt 'of the' --temperature 0 --count 50 >"$TMP/again" 2>"$TMP/err"
    exit_code "$name goes on in yard" $? 0
    check "$name: yard warns of nothing" [ ! -s "$TMP/err" ]
    check "$name goes on in the same way" cmp "$TMP/again" "$TMP/theirs-of-${folder%%-*}"
done
check 'transformers saved shards' [ -f "$TMP/bytes-theirs-shards/model.safetensors.index.json" ]
finish
