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
#     | `src/main.c` | 49 |                     a row of the spine, the reading order in reference-code.md: all lines
#                                               of what is to be read, but blank ones; right within a tenth
#
# Of a .c or .cl file all is to be read that is not marked.  Of a header it is the comment at its top, and the types,
# tables and macros, each with the comment above it; headings, and declarations of functions, are for looking up.
# What is not to be read has one of these marks:
#
#     /* Later: adds ... */            the comment above a function, a type, a table or a macro, which is left out
#     /* ---- Later: links ---- */     a heading: all is left out up to the next heading, or the file's end; within
#                                      a struct or an enum up to the next heading there, or its end
#
# A row may name less than a file.  Then this is to be read, whatever its mark:
#
#     | `src/main.c`: only `main()` | 12 |      the parts of a list, each from the comment above it to its end:
#
#         `name()`                     a function or macro
#         `struct name`, `enum name`   a type
#         `name[]`                     a table
#         `name`                       a type of functions, a variable or a constant
#
# The spine names a file once, and it has a limit: LONGEST_SPINE lines.

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

function end_of_body(i) { # a brace at the line's beginning, or all of it in one line
    while (i < n && line[i] !~ /^}/ && line[i] !~ /^[a-z].*[{].*};?( *\/\*.*)?$/)
        i++
    return i
}

# The end of what begins in line i.
function end_of(i) {
    if (line[i] ~ /^#/)
        return end_of_macro(i)
    if (line[i] ~ /^typedef/ || line[i] ~ /^[a-z][^({]*;/)
        return end_of_declaration(i)
    while (i < n && line[i] !~ /[{]/ && line[i] !~ /;( *\/\*.*)?$/)
        i++
    return line[i] ~ /[{]/ ? end_of_body(i) : i
}

function end_of_comment(i) {
    while (i < n && line[i] !~ /\*\//)
        i++
    return i
}

# ---- marks -----------------------------------------------------------------------------------------------------------

function is_heading(i) { # of a part of a file, or of a struct
    return line[i] ~ /^ *\/\* -+ .* -+ \*\/$/
}

function is_later_heading(i) {
    return line[i] ~ /^ *\/\* -+ Later: .* -+ \*\/$/
}

function is_later(i) { # the first line of a comment
    return line[i] ~ /^\/\* Later: /
}

function check_marks(   i) {
    for (i = 1; i <= n; i++) {
        if (line[i] ~ /^ *\/\*[ -]*[Ll]ater/ && !is_later(i) && !is_later_heading(i))
            wrong(file ":" i " is no mark: " line[i])
        if (is_later(i) && line[end_of_comment(i) + 1] == "")
            wrong(file ":" i " marks nothing: " line[i])
    }
}

# ---- counting --------------------------------------------------------------------------------------------------------

function lines_from(begin, end) { # those that are not blank
    return end - begin + 1 - (blank[end] - blank[begin - 1])
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

# How many of the lines from begin to end stand below a heading that says "Later".
function count_later_fields(begin, end,   i, later, sum) {
    for (i = begin; i <= end; i++) {
        if (is_heading(i))
            later = is_later_heading(i)
        if (later && i < end)
            sum += line[i] != ""
    }
    return sum
}

function count_source(   i, end, later, sum) { # of a .c or .cl file
    for (i = 1; i <= n; i = end + 1) {
        end = i
        if (is_heading(i))
            later = is_later_heading(i)
        if (is_later(i))
            end = end_of(end_of_comment(i) + 1)
        else if (!later)
            sum += line[i] != ""
    }
    return sum
}

function is_shown(i) { # does a type, a table or a macro begin in the line of a header, which is read?
    if (line[i] ~ /^#define / && line[i] !~ /_H$/)
        return 1
    return line[i] ~ /^(static |extern )?(const )?(struct|union|enum)( [a-z_]+)? [{]/ || line[i] ~ /^typedef/ ||
           line[i] ~ /^[a-z].* = [{]/
}

function count_header(   i, begin, end, later, sum) {
    i = end_of_comment(1)
    sum = lines_from(1, i)
    for (i++; i <= n; i = end + 1) {
        begin = i
        end = i
        if (is_heading(i))
            later = is_later_heading(i)
        if (line[i] == "" || is_heading(i))
            continue
        if (line[i] ~ /^\/\*/)
            i = end_of_comment(i) + 1
        end = line[i] == "" ? i : end_of(i)
        if (!later && !is_later(begin) && line[i] != "" && is_shown(i))
            sum += lines_from(begin, end) - count_later_fields(i, end)
    }
    return sum
}

function count_part(name,   begin) { # the lines of a name in a row
    begin = find(name)
    if (!begin) {
        wrong(file " has no " name)
        return 0
    }
    return lines_from(with_comment(begin), end_of(begin))
}

function count(parts,   name, n_names, k, sum) { # of a row; parts: those that it names, if any
    check_marks()
    if (parts == "")
        return file ~ /\.h$/ ? count_header() : count_source()
    gsub(/`/, "", parts)
    n_names = split(parts, name, / *, */)
    for (k = 1; k <= n_names; k++)
        sum += count_part(name[k])
    return sum
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
in_spine && /^\| `(src|cl)\// && !/^\| `[a-z\/_.]*`(: only [^|]*)? \| [0-9]+ \|$/ {
    wrong("this is no row of the spine: " $0)
}
in_spine && /^\| `[a-z\/_.]*`(: only [^|]*)? \| [0-9]+ \|$/ {
    split($0, cell, " *[|] *")
    path = cell[2]
    sub(/:.*/, "", path)
    gsub(/`/, "", path)
    parts = cell[2] ~ /: only / ? cell[2] : ""
    sub(/.*: only /, "", parts)
    if (path in in_row)
        wrong(path " has two rows")
    in_row[path] = 1
    read_file(path)
    sum = count(parts)
    if (is_off(sum, cell[3]))
        wrong(cell[2] ": " sum " lines in all, not " cell[3])
    total += sum
    if (fill)
        $0 = "| " cell[2] " | " sum " |"
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
