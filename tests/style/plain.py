"""plain.py - where does the code stop a reader?  It reads the C files below the folders, and prints a row for each
folder, with what it counts there; then each place of a fault where a folder has too many.

    python3 tests/style/plain.py FOLDER...

    tokens    in a line of code, in the mean; what is in quotes is one token, so is a run of operators
    ?:        conditional expressions per 1,000 such lines
    nested    a ?: inside an arm or the condition of another one
    comma     statements that are joined by commas; for-headers and declarations are no such
    inside    an assignment, ++ or -- inside a condition, an argument or a larger expression.  The idioms of every C
              book are none: for-headers, a[n++], *p++, x = y = 0, while ((c = f()))
    three     declarations that give three or more names a value

In the files of Python of the whole project it looks for conditional expressions inside others, and prints the place of
each.

Ends with exit code 1 if a folder has more of something than LIMITS say, or if a file of Python has a fault.
"""
import ast
import collections
import os
import re
import subprocess
import sys

# By the first part of the path; tokens a line, and how often each of the others may be there.
LIMITS = {
    "src": {"tokens": 11.0, "nested": 0, "comma": 0, "inside": 1, "three": 1},
    "tests": {"tokens": 10.0, "nested": 0, "comma": 0, "inside": 10, "three": 10},
}

PYTHON = ("data", "src", "tests", "tutorials")  # the folders that have files of Python

TYPES = re.compile(
    r"(?:const|static|struct|enum|union|unsigned|signed|int|char|s?size_t|double|float|bool|void|long|short|FILE|DIR|"
    r"typedef|extern|va_list|_Noreturn|_Atomic|inline|SDL_\w+|cl_\w+|[a-z]\w*_t)\b"
)
CLAUSE = re.compile(r"(?:else\b|do\b|(?:if|for|while|switch|\w*foreach\w*|FIND_\w+)\s*\()")
TOKEN = re.compile(r'[A-Za-z_0-9.]+|""|[-+*/%&|^<>=!~?:]+|[^ \t]')
QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
CHANGE = re.compile(r"\+\+|--|(?<![=!<>])(?:[-+*/%&|^]|<<|>>)?=(?!=)")


def read_code(name):
    """The file's code: comments are left out, a string is "", a character is 0; lines stay where they are."""
    programs = ["-f", "tests/style/comments.awk", "-f", "tests/style/without_comments.awk"]
    code = subprocess.run(["awk", *programs, name], stdout=subprocess.PIPE, check=True).stdout
    return QUOTED.sub(lambda found: '""' if found.group().startswith('"') else "0", code.decode(errors="replace"))


def statements(code):
    """(line, text) of each statement: they end at ; { } outside of parentheses.  Lines of the preprocessor are none."""
    code = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", lambda m: "\n" * m.group().count("\n"), code, flags=re.M)
    depth = start = 0
    line = first = 1
    for i, c in enumerate(code):
        if c == "\n":
            line += 1
        if not code[start:i].strip():
            first = line
        depth += (c in "([") - (c in ")]")
        if c in ";{}" and depth == 0:
            text = re.sub(r"\s+", " ", code[start:i]).strip()
            if c == ";" or CLAUSE.match(text):
                yield first, text
            start = i + 1


def closing(text, opening):
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return len(text) - 1


def top_commas(text):
    depth = n = 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        n += c == "," and depth == 0
    return n


def is_nested(text):
    """Does another ?: come before the arms of one have ended?"""
    for i, c in enumerate(text):
        if c != "?":
            continue
        depth = 0
        for d in text[i + 1 :]:
            depth += (d in "([{") - (d in ")]}")
            if depth < 0 or (d == "," and depth == 0):
                break
            if d == "?":
                return True
    return False


def changes(text, in_while):
    text = re.sub(r"\.\w+ =(?!=)", "", text)  # designated initialisers
    text = re.sub(r"\[[^\[\]]*(?:\+\+|--)[^\[\]]*\]", "[]", text)  # a[n++]
    text = re.sub(r"\*\w+(?:->\w+)*\+\+", "", text)  # *p++
    if in_while:
        text = re.sub(r"\(\w[\w>.\-]* = [^()]*\([^()]*\)\)", "", text)  # while ((c = f()))
    return bool(CHANGE.search(text))


def in_brackets(text):
    """What lies inside of parentheses and brackets, but for bodies."""
    depth = 0
    inside = []
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth or c in ")]":
            inside.append(c)
    return re.sub(r"\{[^{}]*\}", "", "".join(inside))


def faults(text):
    inside = False
    while CLAUSE.match(text):  # the statement behind `if (...)` and its like
        head = CLAUSE.match(text)
        if "(" not in head.group():
            text = text[head.end() :].strip()
            continue
        end = closing(text, head.end() - 1)
        if head.group().startswith(("if", "while", "switch")):
            inside |= changes(text[head.end() : end], head.group().startswith("while"))
        text = text[end + 1 :].strip()
    declares = bool(TYPES.match(text)) and not text.startswith("return")
    if not text.startswith(("CL_MAKE", "CL(", "REFUSE", "EXPECT")):
        inside |= changes(in_brackets(text), False)
    if re.match(r"^return\b.*(?<![=!<>])=(?!=)", re.sub(r"\{.*\}", "", text)):
        inside = True
    values = len(re.findall(r"(?<![=!<>+\-*/&|^])=(?!=)", text))
    joined = not declares and not text.startswith(("case", ",", "*")) and top_commas(text) > 0
    return {
        "nested": is_nested(text),
        "comma": joined and bool(re.search(r"[=(+-]", text)),
        "inside": inside,
        "three": declares and values >= 3 and top_commas(text) >= 2,
    }


def files_of(folder, endings):
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(path, name)


def nested_in_python(name):
    """The places of conditional expressions that have another one inside."""
    with open(name, encoding="utf-8") as file:
        tree = ast.parse(file.read(), name)
    for node in ast.walk(tree):
        inside = [other for other in ast.walk(node) if isinstance(other, ast.IfExp) and other is not node]
        if isinstance(node, ast.IfExp) and inside:
            yield "%s:%d: nested: a conditional expression inside another one" % (name, node.lineno)


def main():
    rows = collections.defaultdict(collections.Counter)
    places = collections.defaultdict(list)
    for folder in sys.argv[1:]:
        for name in files_of(folder, (".c", ".h")):
            row = rows[os.path.dirname(name)]
            code = read_code(name)
            for line in code.split("\n"):
                tokens = len(TOKEN.findall(line))
                row["lines"] += tokens > 0
                row["all tokens"] += tokens
                row["?"] += line.count("?")
            for line, text in statements(code):
                for fault, there in faults(text).items():
                    row[fault] += there
                    if there:
                        places[os.path.dirname(name), fault].append("%s:%d: %s: %s" % (name, line, fault, text[:90]))
    wrong = []
    columns = "%-28s %7s %6s %7s %6s %7s %6s"
    print(columns % ("", "tokens", "?:", "nested", "comma", "inside", "three"))
    for folder, row in sorted(rows.items()):
        lines = max(row["lines"], 1)
        row["tokens"] = row["all tokens"] / lines
        numbers = "%.2f" % row["tokens"], "%.1f" % (1000 * row["?"] / lines)
        print(columns % (folder, *numbers, row["nested"], row["comma"], row["inside"], row["three"]))
        for what, most in LIMITS[folder.split("/")[0]].items():
            if row[what] > most:
                wrong.append("%s: %s: %.4g, at most %g" % (folder, what, row[what], most))
                wrong += places[folder, what]
    for folder in PYTHON:
        for name in files_of(folder, (".py",)):
            wrong += nested_in_python(name)
    print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
