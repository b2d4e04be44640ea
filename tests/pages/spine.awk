# spine.awk - counts the lines of the spine, the reading order in tutorials/reference-code.md.
#
#     awk -f tests/pages/spine.awk tutorials/reference-code.md      what is wrong, and at last how many lines it has
#     awk -v fill=1 -f tests/pages/spine.awk tutorials/reference-code.md  the page, with the right numbers of lines
#
# A row is `| file | what to read | lines | skip at first |`, in the section "The spine"; a row without a file goes on
# with the file of the row above it.  What to read is a list of
#
#     all                              the file
#     head                             the comment at its top
#     `name()`                         a function or macro
#     `struct name`, `enum name`       a type
#     `name[]`                         a table
#     `name`                           a type of functions, a variable or a constant
#     first 9 lines of `name[]`        the beginning of a long one
#
# Each begins with the comment above it and ends with its closing brace, or at a line "a first reading ends here".  What
# may be skipped is named in the same way.

function wrong(text) {
    if (!fill)
        print "wrong: " text
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

# ---- where a name begins --------------------------------------------------------------------------------------------

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

# ---- where it ends --------------------------------------------------------------------------------------------------

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
    while (i < n && line[i] !~ /^}/ && line[i] !~ /- a first reading ends here -/ &&
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

# ---- counting -------------------------------------------------------------------------------------------------------

function count_head(   end) {
    end = 1
    while (end < n && line[end] !~ /\*\//)
        end++
    return end
}

function count_first(name, most,   lines) { # of `name`, so many at most
    lines = count(name)
    if (lines < most)
        wrong(file ", first " most " lines of " name ": there are " lines)
    return most
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

function count(name,   begin) { # the lines of a name in a row
    if (match(name, /^first [0-9]+ lines of /))
        return count_first(substr(name, RLENGTH + 1), substr(name, 7) + 0)
    if (name == "all")
        return n
    if (name == "head")
        return count_head()
    begin = find(name)
    if (!begin) {
        wrong(file " has no " name)
        return 0
    }
    return end_of(begin, name) - with_comment(begin) + 1
}

function look_for_skipped(rest,   name) { # names that may be skipped are in the file too
    while (match(rest, /`[^`]*`/)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        if (name ~ /(\(\)|\[\])$|^struct |^enum / && !find(name))
            wrong(path " has no " name)
    }
}

function in_cell(text) { # as it stands in a row
    return text == "" ? "" : " " text
}

/^## / { inside = /^## The spine/ }
inside && /^\| (`[a-z\/_.]*` )?\|/ {
    split($0, cell, " *[|] *")
    if (cell[2] != "")
        path = cell[2]
    gsub(/`/, "", path)
    read_file(path)
    names = cell[3]
    gsub(/`/, "", names)
    n_names = split(names, name, / *, */)
    sum = 0
    for (k = 1; k <= n_names; k++)
        sum += count(name[k])
    off = sum - cell[4]
    if (off * off > 9 && off * off > 0.01 * sum * sum) # more than 3 lines, and more than a tenth
        wrong(path ", " cell[3] ": " sum " lines, the page says " cell[4])
    total += sum
    look_for_skipped(cell[5])
    if (fill)
        $0 = "|" in_cell(cell[2]) " | " cell[3] " | " sum " |" in_cell(cell[5]) " |"
}
fill { print }
END {
    if (!fill)
        print total + 0 " lines"
}
