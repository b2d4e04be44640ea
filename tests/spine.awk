# spine.awk - counts the lines of the spine, the reading order in tutorials/reference-code.md.
#
#     awk -f tests/spine.awk tutorials/reference-code.md            what is wrong, and at last how many lines it has
#     awk -v fill=1 -f tests/spine.awk tutorials/reference-code.md  the page, with the right numbers of lines
#
# A row is `| file | what to read | lines | skip at first |`, in the section "The spine"; a row without a file goes on
# with the file of the row above it.  To be read is "all"; "head", the comment at the top of a file; `name()`, a
# function or macro; `struct name` and `enum name`; `name[]`, a table; `name`, a type of functions, a variable or a
# constant.  Each begins with the comment above it and ends with its closing brace.  Of a long one there may be "first
# 9 lines of `name[]`".  What may be skipped is named in the same way.

function wrong(text) {
    if (!fill)
        print "wrong: " text
}

function read_file(path,   text) {
    file = path
    n = 0
    while ((getline text <path) > 0)
        line[++n] = text
    close(path)
    if (!n)
        wrong("there is no " path)
}

# Of a function that has no body here.
function is_declared(i,   text) {
    if (line[i] ~ /^#define/)
        return 0
    for (; i <= n && text !~ /[;{]/; i++) {
        text = line[i]
        gsub(/\/\*.*\*\//, "", text)
    }
    return text !~ /[{]/
}

# The line where it begins; 0: it is not in the file.
function find(name,   i, kind, pattern) {
    kind = name ~ /\(\)$/ ? "function" : name ~ /\[\]$/ ? "table" : name ~ / / ? "type" : "name"
    sub(/(\(\)|\[\])$/, "", name)
    pattern = "^(static |typedef |extern )?" name " [{]"
    if (kind == "function")
        pattern = "^([a-zA-Z_].*[ *]|#define )" name "\\("
    if (kind == "table")
        pattern = "^[a-z].*[ *]" name "\\[.*= *[{]"
    if (kind == "name")
        pattern = "^(typedef .* " name "\\(|#define " name " |enum [{] " name " = |[a-z].*[ *]" name " = )"
    for (i = 1; i <= n; i++)
        if (line[i] ~ pattern && !(kind == "function" && is_declared(i)))
            return i
    return 0
}

function end_of(i, is_name) {
    if (line[i] ~ /^#define/) {
        while (line[i] ~ /\\$/)
            i++
        return i
    }
    while (line[i] !~ /[{]/ && line[i] !~ /^typedef/)
        i++
    while (i < n && line[i] !~ /;( *\/\*.*)?$/ && is_name)
        i++
    while (i < n && !is_name && line[i] !~ /^}/ && line[i] !~ /^[a-z].*[{].*};?( *\/\*.*)?$/)
        i++
    return i
}

function count(name,   first, end, most) {
    if (match(name, /^first [0-9]+ lines of /)) {
        most = substr(name, 7) + 0
        first = count(substr(name, RLENGTH + 1))
        if (first < most)
            wrong(file ", " name ": there are " first)
        return most
    }
    if (name == "all")
        return n
    for (end = 1; name == "head" && end < n && line[end] !~ /\*\//;)
        end++
    if (name == "head")
        return end
    first = find(name)
    if (!first) {
        wrong(file " has no " name)
        return 0
    }
    end = end_of(first, name !~ /[ ()\[]/)
    if (line[first - 1] ~ /^( \*|\/\*).*\*\/$/)
        for (first--; line[first] !~ /^\/\*/;)
            first--
    return end - first + 1
}

/^## / { inside = /^## The spine/ }
inside && /^\| (`[a-z\/_.]*` )?\|/ {
    split($0, cell, " *[|] *")
    path = cell[2] == "" ? path : cell[2]
    gsub(/`/, "", path)
    read_file(path)
    items = cell[3]
    gsub(/`/, "", items)
    items = split(items, item, / *, */)
    sum = 0
    for (i = 1; i <= items; i++)
        sum += count(item[i])
    off = sum - cell[4]
    if (off * off > 9 && off * off > 0.01 * sum * sum)
        wrong(path ", " cell[3] ": " sum " lines, the page says " cell[4])
    total += sum
    for (rest = cell[5]; match(rest, /`[^`]*`/); rest = substr(rest, RSTART + RLENGTH)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        if (name ~ /(\(\)|\[\])$|^struct |^enum / && !find(name))
            wrong(path " has no " name)
    }
    if (fill)
        $0 = "|" (cell[2] == "" ? "" : " " cell[2]) " | " cell[3] " | " sum " |" (cell[5] == "" ? "" : " " cell[5]) " |"
}
fill { print }
END {
    if (!fill)
        print total + 0 " lines"
}
