# to_read.awk - what is to be read of each file of the spine, the reading order in tutorials/reference-code.md.
#
# Two programs read this file before themselves: reading_copy.awk, which prints these lines, and tests/pages/counts.awk,
# which counts them.  Where a row of the page ends, `row_ends` is 1 and these are set:
#
#     path           the file
#     waits          what of it can wait: the middle cells of the row, joined
#     said           how many lines are left, as the page says
#
# Then read_file(path) and choose_lines(waits) set line[i], to_read[i] and n, the number of all lines.
#
# A row of the spine is
#
#     | `src/main.c` | `print_help()` | 43 |    all lines of what is to be read, but blank ones
#
# The middle cell says what can wait.  Of a .c or .cl file all else is to be read.  Of a header it is the comment at its
# top, and the types, tables and macros, each with the comment above it; headings, and declarations of functions, are
# for looking up.  The cell has names, each with a comma between it and the next:
#
#     `name()`                     a function or macro, from the comment above it to its end
#     `struct name`, `enum name`   a type
#     `name[]`                     a table
#     `name`                       a type of functions, a variable or a constant
#
# "all but" before them says that all else can wait.  A row without a number goes on in the row below it, whose first
# cell is empty.  The spine names a file once.

function wrong(text) {
    n_wrong++
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

function is_heading(i) { # of a part of a file
    return line[i] ~ /^\/\* -+ .* -+ \*\/$/
}

# ---- the lines of a file ---------------------------------------------------------------------------------------------

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

# Names what an item of a cell names: "`name()`".
function name_item(item,   begin) {
    begin = find(substr(item, 2, length(item) - 2))
    if (!begin)
        wrong(file " has no " item)
    else if (!name_lines(with_comment(begin), end_of(begin)))
        wrong(file ": " item " has nothing that is to be read, or stands in the row twice")
}

# Names what the cell names, and says what it has besides: words that are none of those that a cell may have.
function name_items(cell_text,   text) {
    text = cell_text
    sub(/^all but /, "", text)
    while (match(text, /^(, )?`[^`]+`/)) {
        cell_text = substr(text, RSTART, RLENGTH)
        text = substr(text, RLENGTH + 1)
        sub(/^[^`]*/, "", cell_text)
        name_item(cell_text)
    }
    if (text != "")
        wrong(file ": what does this mean? " text)
}

# Sets to_read[i] for the lines of a file that are to be read in a row with this cell, and returns how many they are.
function choose_lines(cell_text,   i, sum) {
    split("", shown)
    split("", named)
    split("", to_read)
    if (file ~ /\.h$/)
        show_header()
    else
        show_source()
    name_items(cell_text)
    for (i = 1; i <= n; i++) {
        to_read[i] = shown[i] && (cell_text ~ /^all but / ? named[i] : !named[i])
        sum += to_read[i]
    }
    return sum
}

# ---- the rows of the page --------------------------------------------------------------------------------------------

# Takes a row's cells: file, what can wait, lines.
function take_row(   cell) {
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
    said = cell[4]
    row_goes_on = said == ""
    row_ends = !row_goes_on
}

{
    page = FILENAME
    row_ends = 0
}
/^## / { in_spine = /^## The spine/ }
row_goes_on && !/^\| \| [^|]+ \| ([0-9]+ )?\|$/ {
    wrong("the row of " path " has no number")
    row_goes_on = 0
}
in_spine && /^\| `(src|cl)\// && !/^\| `[a-z\/_.]*` \| ([^|]+ )?\| ([0-9]+ )?\|$/ {
    wrong("this is no row of the spine: " $0)
}
in_spine && (/^\| `[a-z\/_.]*` \| ([^|]+ )?\| ([0-9]+ )?\|$/ || row_goes_on) { take_row() }
