#!/usr/bin/env python3
"""classes.py - writes classes.c, the classes of all code points, from Python's Unicode tables.

    python3 -m venv /tmp/unicode && /tmp/unicode/bin/pip install unicodedata2==16.0.0
    /tmp/unicode/bin/python src/tools/tokens/classes.py >src/tools/tokens/classes.c

unicodedata2 has the tables of a version of Unicode that can be chosen; without it, Python's own are taken.  16.0.0 is
the version of Hugging Face's tokenizers 0.23.
"""
import sys
import textwrap

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

# White_Space of Unicode's PropList.txt, which no category equals.
SPACES = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def class_of(code_point):
    """The letters are those of enum char_class in tokens_parts.h."""
    category = unicodedata.category(chr(code_point))
    if code_point in SPACES:
        return "s"
    if category.startswith("L"):
        return "l"
    if category.startswith("N"):
        return "n"
    return "o"


runs = []
for code_point in range(sys.maxunicode + 1):
    here = class_of(code_point)
    if runs and runs[-1][0] == here:
        runs[-1][1] += 1
    else:
        runs.append([here, 1])

version = unicodedata.unidata_version
print("/* classes.c - made by classes.py from Unicode %s: runs of code points of a class, from U+0000 on." % version)
print(" * l: letters (L), n: numbers (N), s: white space, o: all others; \"l26\": 26 letters. */")
print('#include "tokens_parts.h"\n')
print("/* clang-format off */")
print("const char unicode_runs[] =")
lines = textwrap.wrap(" ".join("%s%d" % (letter, n) for letter, n in runs), 110)
print("\n".join('    "%s "' % line for line in lines[:-1]))
print('    "%s";' % lines[-1])
