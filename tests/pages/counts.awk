# counts.awk - counts the lines that README.md and tutorials/reference-code.md say files, functions and folders have.
# Lines of code are those that are neither blank nor only comment; all lines are those of the file, as `wc -l` has them.
#
#     awk -f tests/pages/counts.awk README.md tutorials/reference-code.md     what is wrong, a line each
#     awk -v fill=1 -f tests/pages/counts.awk README.md                       the page, with the right numbers
#
# `make counts` fills both pages, and pages.sh looks at what is wrong.  There are three kinds of numbers.
#
#     `src` has about 42,100 lines of code      a sentence of the README: lines of code, which code_lines.awk counts,
#                                               rounded to hundreds; right within a twentieth
#     | `src/main.c` | 49 | ... |               a row of the README: all lines of a file; right within a tenth
#     | `src/main.c` | `main()` | 12 |          a row of the spine, the reading order in reference-code.md: all lines
#                                               of what is to be read, but blank ones; right within a tenth
#
# What is to be read of the file, or of that of the row above, is
#
#     | |                              the file: where it has a line "a first reading ends here", what is above it
#     | without `a()`, `b()` |         the same, less these parts
#
# or a list of
#
#     top comment                      the comment at the file's top
#     `name()`                         a function or macro
#     `struct name`, `enum name`       a type
#     `name[]`                         a table
#     `name`                           a type of functions, a variable or a constant
#     `name[]` down to `word`          the beginning of a long one, up to the first line that has the word
#
# Each begins with the comment above it and ends with its closing brace, or at a line "a first reading ends here".  The
# spine has a limit: LONGEST_SPINE lines.

BEGIN {
    LONGEST_SPINE = 3500
    SHORTEST_SPINE = 2000 # with less, rows have not been recognised
    # What stands in front of a number of the README, and the files that it counts.
    sources["`src` has about"] = "src/*.c src/*/*/*.[ch]"
    sources["The trainer has"] = "src/trainer/*/*.[ch]"
    sources["planning"] = "src/planning/*/*.[ch]"
    sources["the techniques"] = "src/techniques/*/*.[ch]"
    sources["the tools"] = "src/tools/*/*.[ch]"
}

function wrong(text) {
    if (!fill)
        print page ": " text
}

# Sets line[1] to line[n], and `file`; blank[i] is how many of the lines up to line i are blank.
function read_file(path,   text, i) {
    file = path
    n = 0
    while ((getline text <path) > 0)
        line[++n] = text
    close(path)
    for (i = 1; i <= n; i++)
        blank[i] = blank[i - 1] + (line[i] == "")
    if (!n)
        wrong("there is no " path)
}

# ---- where a name begins ---------------------------------------------------------------------------------------------

# Is line i the beginning of a function that has no body here?
function is_declared(i,   text) {
    if (line[i] ~ /^#define/)
        return 0
    text = ""
    while (i <= n && text !~ /[;{]/) {
        text = line[i]
        gsub(/\/\*.*\*\//, "", text)
        i++
    }
    return text !~ /[{]/
}

# What the line looks like that begins such a thing.
function pattern_of(name) {
    if (name ~ /\(\)$/)
        return "^([a-zA-Z_].*[ *]|#define )" substr(name, 1, length(name) - 2) "\\("
    if (name ~ /\[\]$/)
        return "^[a-z].*[ *]" substr(name, 1, length(name) - 2) "\\[.*= *[{]"
    if (name ~ / /) # struct or enum
        return "^(static |typedef |extern )?" name " [{]"
    return "^(typedef .* " name "\\(|#define " name " |enum [{] " name " = |[a-z].*[ *]" name " = )"
}

# The line where it begins; 0: it is not in the file.
function find(name,   i, pattern) {
    pattern = pattern_of(name)
    for (i = 1; i <= n; i++) {
        if (line[i] !~ pattern)
            continue
        if (name ~ /\(\)$/ && is_declared(i))
            continue
        return i
    }
    return 0
}

# ---- where it ends ---------------------------------------------------------------------------------------------------

function end_of_macro(i) {
    while (line[i] ~ /\\$/)
        i++
    return i
}

function end_of_declaration(i) { # of a variable and the like: its semicolon
    while (i < n && line[i] !~ /;( *\/\*.*)?$/)
        i++
    return i
}

function end_of_body(i) { # a brace at the line's beginning, or all of it in one line; or where a first reading ends
    while (i < n && line[i] !~ /^}/ && line[i] !~ /- a first reading ends here[: ]/ &&
           line[i] !~ /^[a-z].*[{].*};?( *\/\*.*)?$/)
        i++
    return i
}

function end_of(i, name) {
    if (line[i] ~ /^#define/)
        return end_of_macro(i)
    while (line[i] !~ /[{]/ && line[i] !~ /^typedef/)
        i++
    if (name ~ /[ ()\[]/)
        return end_of_body(i)
    return end_of_declaration(i)
}

# ---- counting --------------------------------------------------------------------------------------------------------

function lines_from(begin, end) { # those that are not blank
    return end - begin + 1 - (blank[end] - blank[begin - 1])
}

function count_head(   end) {
    end = 1
    while (end < n && line[end] !~ /\*\//)
        end++
    return end
}

function count_down_to(name, word,   begin, end, i) { # of `name`, up to the first line with the word
    begin = find(name)
    end = begin ? end_of(begin, name) : 0
    for (i = begin; i < end; i++)
        if (line[i] ~ "(^|[^a-zA-Z_0-9])" word "([^a-zA-Z_0-9]|$)")
            return lines_from(with_comment(begin), i)
    wrong(file " has no " name " with a line " word)
    return 0
}

# The first line of the comment above line i, or i where there is none.
function with_comment(i) {
    if (line[i - 1] !~ /^( \*|\/\*).*\*\/$/)
        return i
    i--
    while (line[i] !~ /^\/\*/)
        i--
    return i
}

# The number of the line between functions "a first reading ends here", or 0.
function line_of_end(   i) {
    for (i = 1; i <= n; i++)
        if (line[i] ~ /^\/\* -+ a first reading ends here(:.*)? -+ \*\/$/)
            return i
    return 0
}

function count_file(   end) { # where it has a line at which a first reading ends: what is above it
    end = line_of_end()
    return lines_from(1, end ? end - 1 : n)
}

function count_part(name,   begin) { # the lines of a name in a row
    if (match(name, / down to /))
        return count_down_to(substr(name, 1, RSTART - 1), substr(name, RSTART + RLENGTH))
    if (name == "top comment")
        return count_head()
    begin = find(name)
    if (!begin) {
        wrong(file " has no " name)
        return 0
    }
    return lines_from(with_comment(begin), end_of(begin, name))
}

function count(parts,   less, name, n_names, k, sum) { # of the cell of a row
    gsub(/`/, "", parts)
    less = sub(/^without /, "", parts)
    n_names = split(parts, name, / *, */)
    for (k = 1; k <= n_names; k++)
        sum += count_part(name[k])
    if (less || parts == "")
        return count_file() - sum
    return sum
}

function in_cell(text) { # as it stands in a row
    return text == "" ? "" : " " text
}

# ---- the README ------------------------------------------------------------------------------------------------------

function count_code(files,   command, number) {
    command = "awk -f tests/style/comments.awk -f tests/pages/code_lines.awk " files
    command | getline number
    close(command)
    return number
}

function is_off(n, said,   off) { # by more than 3 lines, and by more than a tenth: a small edit fails no test
    off = n - said
    return off * off > 9 && off * off > 0.01 * n * n
}

function with_comma(number) { # 38200 as 38,200
    return sprintf("%d,%03d", number / 1000, number % 1000)
}

function check_sentence(words,   said, code) { # "WORDS 38,200", which match() has found
    said = substr($0, RSTART + length(words) + 1, RLENGTH - length(words) - 1)
    code = count_code(sources[words])
    $0 = substr($0, 1, RSTART + length(words)) with_comma(100 * int(code / 100 + 0.5)) substr($0, RSTART + RLENGTH)
    sub(/,/, "", said)
    if (code < 0.95 * said || code > 1.05 * said)
        wrong(words " " said " lines of code: there are " code)
    found[words] = 1
}

{ page = FILENAME }

page == "README.md" {
    for (words in sources)
        if (match($0, words " [0-9]+,[0-9]+"))
            check_sentence(words)
}

page == "README.md" && /^\| `[a-z\/_.]*` \| [0-9]+ \|/ {
    split($0, cell, " *[|] *")
    path = cell[2]
    gsub(/`/, "", path)
    read_file(path)
    if (is_off(n, cell[3]))
        wrong(path " has " n " lines in all, not " cell[3])
    sub(/\| [0-9]+ \|/, "| " n " |")
    rows++
}

# ---- the spine -------------------------------------------------------------------------------------------------------

page != "README.md" && /^## / { in_spine = /^## The spine/ }
in_spine && /^\| (`[a-z\/_.]*` )?\|/ {
    split($0, cell, " *[|] *")
    if (cell[2] != "")
        path = cell[2]
    gsub(/`/, "", path)
    read_file(path)
    sum = count(cell[3])
    if (is_off(sum, cell[4]))
        wrong(path ", " cell[3] ": " sum " lines in all, not " cell[4])
    total += sum
    if (fill)
        $0 = "|" in_cell(cell[2]) " |" in_cell(cell[3]) " | " sum " |"
}

# ---- the pages -------------------------------------------------------------------------------------------------------

{ has_been_read[page] = 1 }
fill { print }
END {
    page = "README.md"
    if (page in has_been_read) {
        for (words in sources)
            if (!(words in found))
                wrong("no number in the line of \"" words "\"")
        if (!rows)
            wrong("no row of a file")
    }
    page = "tutorials/reference-code.md"
    if (page in has_been_read && (total > LONGEST_SPINE || total < SHORTEST_SPINE))
        wrong("the spine has " total + 0 " lines")
}
