# counts.awk - counts the lines that README.md and tutorials/reference-code.md say files, functions and folders have.
# Lines of code are those that are neither blank nor only comment; all lines are those of the file, as `wc -l` has them.
#
#     awk -f tests/pages/counts.awk README.md tutorials/reference-code.md     what is wrong, a line each
#     awk -v fill=1 -f tests/pages/counts.awk README.md                       the page, with the right numbers
#
# `make counts` fills both pages, and counts.sh looks at what is wrong.  There are three kinds of numbers.
#
#     `src` has about 42,100 lines of code      a sentence of the README: lines of code, which code_lines.awk counts,
#                                               rounded to hundreds; right within a twentieth
#     | `src/main.c` | 49 | ... |               a row of the README: all lines of a file; right within a tenth
#     | `src/main.c` | `print_help()` | 43 |    a row of the spine, the reading order in reference-code.md: all lines of
#                                               what is to be read, but blank ones; right within a tenth
#
# The middle cell of such a row says what can wait.  Of a .c or .cl file all else is to be read.  Of a header it is the
# comment at its top, and the types, tables and macros, each with the comment above it; headings, and declarations of
# functions, are for looking up.  The cell has names and sections, each with a comma between it and the next:
#
#     `name()`                     a function or macro, from the comment above it to its end
#     `struct name`, `enum name`   a type
#     `name[]`                     a table
#     `name`                       a type of functions, a variable or a constant
#     section *links*              what stands below the heading `---- links ----`, up to the next heading, or the
#                                  file's end; within a struct or an enum up to the next heading there, or its end.
#                                  Of a heading with a comma or a colon the words before it are enough
#
# "all but" before them says that all else can wait.  A row without a number goes on in the row below it, whose first
# cell is empty.  The spine names a file once, and it has a limit: LONGEST_SPINE lines.

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

# Sets line[1] to line[n], and `file`.
function read_file(path,   text) {
    file = path
    n = 0
    while ((getline text <path) > 0)
        line[++n] = text
    close(path)
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

# The first line of the comment above line i, or i where there is none.
function with_comment(i) {
    if (line[i - 1] !~ /^( \*\/|( \*|\/\*).*\*\/)$/)
        return i
    i--
    while (line[i] !~ /^\/\*/)
        i--
    return i
}

# ---- sections --------------------------------------------------------------------------------------------------------

function is_heading(i) { # of a section of a file, or of a struct
    return line[i] ~ /^ *\/\* -+ .* -+ \*\/$/
}

function indent_of(i) {
    match(line[i], /^ */)
    return RLENGTH
}

# Is line i a heading with these words, or one that has them before a comma or a colon?
function is_heading_of(i, words,   text, next_sign) {
    if (!is_heading(i))
        return 0
    text = line[i]
    sub(/^ *\/\* -+ /, "", text)
    sub(/ -+ \*\/$/, "", text)
    next_sign = substr(text, length(words) + 1, 1)
    return index(text, words) == 1 && (next_sign == "" || next_sign == "," || next_sign == ":")
}

# The line of the heading; 0: there is none, or several.
function find_heading(words,   i, found_at, n_found) {
    for (i = 1; i <= n; i++) {
        if (is_heading_of(i, words)) {
            found_at = i
            n_found++
        }
    }
    return n_found == 1 ? found_at : 0
}

# The last line of the section whose heading is line i.
function end_of_section(i,   indent) {
    indent = indent_of(i)
    for (i++; i <= n; i++) {
        if (is_heading(i) && indent_of(i) == indent)
            return i - 1
        if (indent && line[i] ~ /^}/)
            return i - 1
    }
    return n
}

# ---- counting --------------------------------------------------------------------------------------------------------

# Sets shown[i], is line i to be read if nothing can wait, for all lines of a .c or .cl file.
function show_source(   i) {
    for (i = 1; i <= n; i++)
        shown[i] = line[i] != ""
}

# Does a type, a table or a macro, which is read, begin in line i of a header?
function is_shown(i) {
    if (line[i] ~ /^#define / && line[i] !~ /_H$/)
        return 1
    return line[i] ~ /^(static |extern )?(const )?(struct|union|enum)( [a-z_]+)? [{]/ || line[i] ~ /^typedef/ ||
           line[i] ~ /^[a-z].* = [{]/
}

function show_lines(begin, end,   i) {
    for (i = begin; i <= end; i++)
        shown[i] = line[i] != ""
}

# The same for a header.
function show_header(   i, begin, end) {
    i = end_of_comment(1)
    show_lines(1, i)
    for (i++; i <= n; i = end + 1) {
        begin = i
        end = i
        if (line[i] == "" || is_heading(i))
            continue
        if (line[i] ~ /^\/\*/)
            i = end_of_comment(i) + 1
        end = line[i] == "" ? i : end_of(i)
        if (line[i] != "" && is_shown(i))
            show_lines(begin, end)
    }
}

# Sets named[i] for the lines from begin to end, and returns how many of them are shown and were not named before.
function name_lines(begin, end,   i, sum) {
    for (i = begin; i <= end; i++) {
        sum += shown[i] && !named[i]
        named[i] = 1
    }
    return sum
}

# Names what an item of a cell names: "`name()`" or "*section*".
function name_item(item,   words, begin, end) {
    words = substr(item, 2, length(item) - 2)
    if (item ~ /^`/) {
        begin = find(words)
        end = begin ? end_of(begin) : 0
        begin = begin ? with_comment(begin) : 0
    } else {
        begin = find_heading(words)
        end = begin ? end_of_section(begin) : 0
    }
    if (!begin)
        wrong(file " has no " item ", or several")
    else if (!name_lines(begin, end))
        wrong(file ": " item " has nothing that is to be read, or stands in the row twice")
}

# Names what the cell names, and says what it has besides: words that are none of those that a cell may have.
function name_items(cell_text,   text) {
    text = cell_text
    sub(/^all but /, "", text)
    while (match(text, /^(, )?(sections? )?(`[^`]+`|\*[^*]+\*)/)) {
        cell_text = substr(text, RSTART, RLENGTH)
        text = substr(text, RLENGTH + 1)
        sub(/^[^`*]*/, "", cell_text)
        name_item(cell_text)
    }
    if (text != "")
        wrong(file ": what does this mean? " text)
}

# How many lines are to be read in a row with this cell.
function count(cell_text,   i, sum) {
    split("", shown)
    split("", named)
    if (file ~ /\.h$/)
        show_header()
    else
        show_source()
    name_items(cell_text)
    for (i = 1; i <= n; i++)
        sum += shown[i] && (cell_text ~ /^all but / ? named[i] : !named[i])
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

# Takes a row's cells: file, what can wait, lines.
function take_row(   cell, sum) {
    split($0, cell, " *[|] *")
    if (cell[2] != "") {
        path = cell[2]
        gsub(/`/, "", path)
        waits = ""
        if (path in in_row)
            wrong(path " has two rows")
        in_row[path] = 1
    }
    waits = waits == "" ? cell[3] : waits " " cell[3]
    row_goes_on = cell[4] == ""
    if (row_goes_on)
        return
    read_file(path)
    sum = count(waits)
    if (is_off(sum, cell[4]))
        wrong(path ": " sum " lines in all, not " cell[4])
    total += sum
    if (fill)
        sub(/\| [0-9]+ \|$/, "| " sum " |")
}

page != "README.md" && /^## / { in_spine = /^## The spine/ }
row_goes_on && !/^\| \| [^|]+ \| ([0-9]+ )?\|$/ {
    wrong("the row of " path " has no number")
    row_goes_on = 0
}
in_spine && /^\| `(src|cl)\// && !/^\| `[a-z\/_.]*` \| ([^|]+ )?\| ([0-9]+ )?\|$/ {
    wrong("this is no row of the spine: " $0)
}
in_spine && (/^\| `[a-z\/_.]*` \| ([^|]+ )?\| ([0-9]+ )?\|$/ || row_goes_on) { take_row() }

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
