"""plain.py - where does the code stop a reader?  It reads the files of C and OpenCL C below the folders, and prints a
row for each folder, with what it counts there; then each place of a fault where a folder has too many.

    python3 tests/style/plain.py FOLDER...

    tokens    in a line of code, in the mean; what is in quotes is one token, so is a run of operators
    ?:        conditional expressions per 1,000 such lines
    nested    a ?: inside an arm or the condition of another one
    comma     statements that are joined by commas; for-headers and declarations are no such
    inside    an assignment, ++ or -- inside a condition, an argument or a larger expression.  The idioms of every C
              book are none: for-headers, a[n++], *p++, x = y = 0, while ((c = f()))
    three     declarations that give three or more names a value
    mixed     declarations of several names that are not all pointers, all arrays or all of the type itself
    clauses   conditions of if, while or for that join more than three clauses by && or ||

In the files of Python of the whole project it looks for conditional expressions inside others, and prints the place of
each.

    folder                        tokens     ?:  nested  comma  inside  three  mixed clauses
    src/tools/view                 10.31   27.1       0      1       0      0      0       0
    src/tools/view: comma: 1, at most 0
    src/tools/view/bars.c:40: comma: left = 0 , right = 0

Ends with exit code 1 if a folder has more of something than LIMITS say, or if a file of Python has a fault.

This is no parser of C: it knows words, brackets and where statements end, and takes the rest from how this project
writes C.  A statement is a list of words, so `x = f(1);` is x, =, f, (, 1, ).  The examples of its functions are tests:

    python3 -B -m doctest tests/style/plain.py
"""
import ast
import collections
import os
import re
import subprocess
import sys

# By the first part of the path; tokens a line, and how often each of the others may be there.
LIMITS = {
    "cl": {"tokens": 11.0, "nested": 0, "comma": 0, "inside": 0, "three": 5, "mixed": 0, "clauses": 0},
    "src": {"tokens": 11.0, "nested": 0, "comma": 0, "inside": 1, "three": 1, "mixed": 0, "clauses": 4},
    "tests": {"tokens": 10.0, "nested": 0, "comma": 0, "inside": 10, "three": 10, "mixed": 0, "clauses": 0},
}

PYTHON = ("data", "src", "tests", "tutorials")  # the folders that have files of Python

# ---- the words of C --------------------------------------------------------------------------------------------------

QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
TOKEN = re.compile(r'[A-Za-z_0-9.]+|""|[-+*/%&|^<>=!~?:]+|[^ \t]')  # as a line's density counts them

WORD = re.compile(
    r"""
      [A-Za-z_]\w*                # a name
    | \d[\w.]*                    # a number
    | "" | \.\.\.
    | <<= | >>= | [-+*/%&|^]=     # assignments of two operators
    | == | != | <= | >= | -> | \+\+ | -- | << | >> | && | \|\|
    | \S                          # any other character
    """,
    re.VERBOSE,
)
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
CHANGES = ASSIGNMENTS | {"++", "--"}

# A declaration begins with one of these.
TYPES = set(
    "const static struct enum union unsigned signed int char size_t ssize_t double float bool void long short FILE DIR"
    " typedef extern va_list _Noreturn _Atomic inline global local vec".split()
)
TYPE = re.compile(r"SDL_\w+|cl_\w+|[a-z]\w*_t")
# Words whose parentheses a statement follows: C's own, and macros that loop.
CLAUSE = re.compile(r"if|for|while|switch|\w*foreach\w*")
# Macros that are given an expression with an assignment.
TAKES_ASSIGNMENT = re.compile(r"CL_MAKE\w*|CL|REFUSE\w*|EXPECT\w*")

OPENING = "([{"
CLOSING = ")]}"


def read_code(name):
    """The file's code: comments are left out, a string is "", a character is 0; lines stay where they are."""
    programs = ["-f", "tests/style/comments.awk", "-f", "tests/style/without_comments.awk"]
    code = subprocess.run(["awk", *programs, name], stdout=subprocess.PIPE, check=True).stdout
    return QUOTED.sub(lambda found: '""' if found.group().startswith('"') else "0", code.decode(errors="replace"))


def without_directives(lines):
    """Lines of the preprocessor become empty, and so do those that a backslash at the end continues them on.

    >>> without_directives(["#define X \\\\", "    1", "int x;"])
    ['', '', 'int x;']
    """
    kept = []
    inside = False
    for line in lines:
        inside = inside or line.lstrip().startswith("#")
        kept.append("" if inside else line)
        inside = inside and line.endswith("\\")
    return kept


def statements(code):
    """(line, words) of each statement.  One ends at a ; outside of parentheses; or at a { or }, if it is a clause.

    >>> list(statements("if (x) {\\n    y = 1;\\n}"))
    [(1, ['if', '(', 'x', ')']), (2, ['y', '=', '1'])]
    """
    words = []
    depth = 0
    for number, line in enumerate(without_directives(code.split("\n")), 1):
        for word in WORD.findall(line):
            if word == "IN_ORDER":  # it stands for a #pragma
                continue
            if depth == 0 and word in ";{}":
                if words and (word == ";" or begins_clause(words)):
                    yield first, words
                words = []
                continue
            if not words:
                first = number
            words.append(word)
            if word in "([":
                depth += 1
            elif word in ")]":
                depth -= 1


# ---- parts of a statement --------------------------------------------------------------------------------------------


def begins_clause(words):
    return words[0] in ("else", "do") or (CLAUSE.fullmatch(words[0]) and words[1:2] == ["("])


def depths(words):
    """How many brackets are open around each word; a bracket itself is inside of its pair.

    >>> depths("f ( a [ 0 ] )".split())
    [0, 1, 1, 2, 2, 2, 1]
    """
    found = []
    depth = 0
    for word in words:
        if word in OPENING:
            depth += 1
        found.append(depth)
        if word in CLOSING:
            depth -= 1
    return found


def closing(words, opening):
    """The place of the bracket that closes the one at the place `opening`."""
    for i, depth in enumerate(depths(words[opening:])):
        if depth == 1 and words[opening + i] in CLOSING:
            return opening + i
    return len(words) - 1


def split_clauses(words):
    """The clauses in front of a statement, as (keyword, condition), and the statement.

    >>> split_clauses("else if ( a ) b = 1".split())
    ([('if', ['a'])], ['b', '=', '1'])
    """
    clauses = []
    while words and begins_clause(words):
        if words[0] in ("else", "do"):
            words = words[1:]
        else:
            end = closing(words, 1)
            clauses.append((words[0], words[2:end]))
            words = words[end + 1 :]
    return clauses, words


def commas_outside(words):
    """How many commas are outside of all brackets."""
    return sum(word == "," and depth == 0 for word, depth in zip(words, depths(words)))


def without_braces(words):
    """Leaves out the values and bodies that are in braces.

    >>> without_braces("x = f ( a , ( struct s ) { . b = 1 } )".split())
    ['x', '=', 'f', '(', 'a', ',', '(', 'struct', 's', ')', ')']
    """
    kept = []
    open_braces = 0
    for word in words:
        if word == "{":
            open_braces += 1
        if open_braces == 0:
            kept.append(word)
        if word == "}":
            open_braces -= 1
    return kept


def inside_brackets(words):
    """What is inside of parentheses and brackets, with these.

    >>> inside_brackets("x = f ( a [ 0 ] )".split())
    ['(', 'a', '[', '0', ']', ')']
    """
    return [word for word, depth in zip(words, depths(words)) if depth > 0]


# ---- faults ----------------------------------------------------------------------------------------------------------

# Changes inside of an expression that are no fault, in words that are joined by spaces.
IDIOMS = (
    re.compile(r"(?<![\w)\]] )\. \w+ = "),  # .name = value, of a struct
    re.compile(r"\[ [^][]*(\+\+|--)[^][]* \]"),  # a[n++]
    re.compile(r"(?<![\w)\]] )\* \w+( -> \w+)* \+\+"),  # *p++
)
WHILE_IDIOM = re.compile(r"\( [\w .>-]+ = [^()]*\( [^()]*\) \)")  # while ((c = f()))


def has_nested(words):
    """Does another ?: come before the arms of one have ended?

    >>> has_nested("x = a ? b : c ? d : e".split()), has_nested("f ( a ? b : c , d ? e : f )".split())
    (True, False)
    """
    for i, word in enumerate(words):
        if word == "?" and "?" in rest_of_expression(words[i + 1 :]):
            return True
    return False


def rest_of_expression(words):
    """The words up to the comma or bracket that ends the expression in which they begin."""
    depth = 0
    for i, word in enumerate(words):
        if word in OPENING:
            depth += 1
        elif word in CLOSING:
            depth -= 1
        if depth < 0 or (depth == 0 and word == ","):
            return words[:i]
    return words


def has_change(words, idioms):
    """Is there an assignment, ++ or --, which is none of the idioms?

    >>> has_change("( a [ n ++ ] )".split(), IDIOMS), has_change("( n ++ )".split(), IDIOMS)
    (False, True)
    """
    text = " ".join(words)
    for idiom in idioms:
        text = idiom.sub("", text)
    return any(word in CHANGES for word in text.split())


def changes_in_clauses(clauses):
    for keyword, condition in clauses:
        idioms = IDIOMS
        if keyword == "while":
            idioms = (*IDIOMS, WHILE_IDIOM)
        if keyword in ("if", "while", "switch") and has_change(condition, idioms):
            return True
    return False


def changes_inside(words):
    """Is there an assignment in brackets, or in what is returned?  Values in braces are none: (struct s){.n = 1}."""
    if not words:
        return False
    words = without_braces(words)
    if words[0] == "return" and any(word in ASSIGNMENTS for word in words):
        return True
    return not TAKES_ASSIGNMENT.fullmatch(words[0]) and has_change(inside_brackets(words), IDIOMS)


def is_declaration(words):
    return bool(words) and (words[0] in TYPES or bool(TYPE.fullmatch(words[0])))


def is_joined(words):
    """Are these several expressions, with commas between them?  Not labels, and not the end of a declaration, of which
    a { } was a part:  "struct { int n; } *a, *b;"  or  "int a[] = {1}, b[] = {2};"

    >>> is_joined("a = 1 , b = 2".split()), is_joined("f ( a , b )".split())
    (True, False)
    """
    if is_declaration(words) or commas_outside(words) == 0 or words[0] in ("case", ",", "*"):
        return False
    return any(word in CHANGES or word in "(-+" for word in words)


def gives_three_values(words):
    """Does it declare three names or more, and give three a value?"""
    return is_declaration(words) and words.count("=") >= 3 and commas_outside(words) >= 2


def declarators(words):
    """The names that a declaration declares: each with its stars and brackets, without its value.

    >>> declarators("char * text = f ( a , b ) , part [ 32 ]".split())
    [['char', '*', 'text'], ['part', '[', '32', ']']]
    """
    found = [[]]
    in_value = False
    for word, depth in zip(words, depths(words)):
        if word == "," and depth == 0:
            found.append([])
            in_value = False
        elif word == "=" and depth == 0:
            in_value = True
        elif not in_value:
            found[-1].append(word)
    return found


def mixes_declarators(words):
    """Does it declare a pointer beside an array, or one of these beside a variable that is neither?

    >>> mixes_declarators("char * text , part [ 32 ]".split()), mixes_declarators("int a [ 2 ] , b [ 3 ]".split())
    (True, False)
    """
    if not is_declaration(words) or commas_outside(words) == 0:
        return False
    kinds = {("*" in declarator, "[" in declarator) for declarator in declarators(words)}
    return len(kinds) > 1


def has_many_clauses(clauses):
    """Does one of the conditions join more than three?

    >>> has_many_clauses([("if", "a && b || c".split())]), has_many_clauses([("if", "a && b || c && d".split())])
    (False, True)
    """
    return any(condition.count("&&") + condition.count("||") >= 3 for _, condition in clauses)


def faults(words):
    """The faults of a statement.

    >>> faults("if ( ( x = f ( ) ) ) a = 1 , b = 2".split())
    ['comma', 'inside']
    """
    clauses, rest = split_clauses(words)
    found = []
    if has_nested(rest):
        found.append("nested")
    if is_joined(rest):
        found.append("comma")
    if changes_in_clauses(clauses) or changes_inside(rest):
        found.append("inside")
    if gives_three_values(rest):
        found.append("three")
    if mixes_declarators(rest):
        found.append("mixed")
    if has_many_clauses(clauses):
        found.append("clauses")
    return found


def nested_in_python(name):
    """The places of conditional expressions that have another one inside."""
    with open(name, encoding="utf-8") as file:
        tree = ast.parse(file.read(), name)
    for node in ast.walk(tree):
        inside = [other for other in ast.walk(node) if isinstance(other, ast.IfExp) and other is not node]
        if isinstance(node, ast.IfExp) and inside:
            yield "%s:%d: nested: a conditional expression inside another one" % (name, node.lineno)


# ---- files and folders -----------------------------------------------------------------------------------------------


def files_of(folder, endings):
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(path, name)


class Folder:
    """What was counted in the files of a folder."""

    def __init__(self):
        self.lines = 0  # that have any code
        self.tokens = 0
        self.conditional = 0  # expressions ?:
        self.places = collections.defaultdict(list)  # of each fault

    def add_file(self, name):
        code = read_code(name)
        self.conditional += code.count("?")
        for line in code.split("\n"):
            tokens = len(TOKEN.findall(line))
            self.tokens += tokens
            self.lines += tokens > 0
        for line, words in statements(code):
            for fault in faults(words):
                self.places[fault].append("%s:%d: %s: %s" % (name, line, fault, " ".join(words)[:90]))

    def count(self, what):
        """Of "tokens", those in a line; of a fault, how many there are."""
        if what == "tokens":
            return self.tokens / max(self.lines, 1)
        return len(self.places[what])

    def row(self, name):
        """The folder's row of the table."""
        conditional = 1000 * self.conditional / max(self.lines, 1)
        counts = tuple(self.count(fault) for fault in ("nested", "comma", "inside", "three", "mixed", "clauses"))
        return "%-28s %7.2f %6.1f %7d %6d %7d %6d %6d %7d" % (name, self.count("tokens"), conditional, *counts)

    def complaints(self, name):
        """A line for each limit that is exceeded, and below it the places."""
        for what, most in LIMITS[name.split("/")[0]].items():
            if self.count(what) > most:
                yield "%s: %s: %.4g, at most %g" % (name, what, self.count(what), most)
                yield from self.places[what]


def main():
    folders = collections.defaultdict(Folder)
    for top in sys.argv[1:]:
        for name in files_of(top, (".c", ".h", ".cl")):
            folders[os.path.dirname(name)].add_file(name)
    heads = ("folder", "tokens", "?:", "nested", "comma", "inside", "three", "mixed", "clauses")
    print("%-28s %7s %6s %7s %6s %7s %6s %6s %7s" % heads)
    wrong = []
    for name, folder in sorted(folders.items()):
        print(folder.row(name))
        wrong += folder.complaints(name)
    for top in PYTHON:
        for name in files_of(top, (".py",)):
            wrong += nested_in_python(name)
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
