# names.awk - do the names exist that the pages on the source code mention?
#
#     awk -f tests/style/comments.awk -f tests/pages/names.awk src/*/*/*.[ch] ... tutorials/reference-code.md
#
# The sources come first, then the pages.  A name stands between `...` in the text of a page.  It is one of
#
#     name   name[]        a word of the code, or of a string; or a file of the code, without its ending
#     name()               followed by ( in the code
#     struct name          a struct that has a body in the code; likewise for enum
#     a.b   a->b           each part is a word of the code
#
# Programs, options, files and targets of make are looked at by pages.sh.  Where a sentence says which part of the code
# it is about, its names must stand in that part.  Such a sentence, or clause up to a semicolon, begins with one of
#
#     Of `struct name`   in `name()`   In `name()`      also of two: in `name()` and `other()`
#
# A block of a page may have trees of calls.  Such a line begins with name(), and in the code name() must be called by
# the function of the line above it that is further to the left.
#
# It prints the names that do not exist, and the calls, a line each.

BEGIN {
    n_others = split("barrier get_group_id get_local_id", other, " ") # OpenCL's
    for (i = 1; i <= n_others; i++)
        known[other[i]] = is_called[other[i]] = 1
}

FNR == 1 {
    part = ""
    fenced = 0
    name = FILENAME
    gsub(/.*\/|\.[a-z]*$/, "", name)
    known[name] = 1
}

# ---- the sources -----------------------------------------------------------------------------------------------------

# The struct, enum, function or macro whose body begins in this line, or "".
function part_that_begins(line,   words) {
    if (line ~ /^(static |typedef |extern )?(struct|enum) [a-z_0-9]+ *[{]/) {
        sub(/ *[{].*/, "", line)
        sub(/^(static|typedef|extern) /, "", line)
        return line
    }
    if (line ~ /^[a-z][A-Za-z0-9_ *]*\(/ && line !~ /;$/) {
        sub(/\(.*/, "", line)
        sub(/.*[ *]/, "", line)
        return line "()"
    }
    return ""
}

function read_code(line,   begun, name, rest) {
    sub(/ +$/, "", line)
    begun = part_that_begins(line)
    if (begun != "") {
        has_body = 0
        part = begun
        exists[part] = 1
    }
    rest = line
    while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        known[name] = 1
        is_in[part, name] = 1
        if (rest ~ /^ *\(/)
            is_called[name] = 1
    }
    if (line ~ /[{]/)
        has_body = 1
    # It ends with its body, or is only declared here.
    if (line ~ /^[}]/ || (begun != "" && line ~ /[}];?$/) || (!has_body && line ~ /;$/))
        part = ""
}

FILENAME !~ /\.md$/ {
    split_line($0)
    read_code(code)
    next
}

# ---- the pages -------------------------------------------------------------------------------------------------------

function wrong(name, text) {
    print FILENAME ":" FNR ": `" name "` " text
}

# Checks that name, which `written` is or has in it, is a word of the code, and of one of the parts, if there are any.
function check_word(name, written, parts,   i, n, of) {
    checked++
    if (!(name in known)) {
        wrong(written, "is not in the code")
        return
    }
    n = split(parts, of, "|")
    for (i = 1; i <= n; i++)
        if ((of[i], name) in is_in)
            return
    if (n)
        wrong(written, "is not in " parts)
}

function check(name, parts,   i, n, word) {
    if (name ~ /^(struct|enum) [a-z_0-9]+$/) {
        checked++
        if (!(name in exists))
            wrong(name, "does not exist")
        return
    }
    if (name ~ /^[A-Za-z_0-9]+\([a-z0-9, ]*\)$/) {
        checked++
        sub(/\(.*/, "", name)
        if (!(name in is_called))
            wrong(name "()", "does not exist")
        return
    }
    if (name !~ /^[A-Za-z_][A-Za-z_0-9]*((\.|->)[A-Za-z_][A-Za-z_0-9]*)*(\[\])?$/ || is_file(name))
        return
    n = split(name, word, /\.|->|\[/)
    for (i = 1; i <= n; i++)
        if (word[i] ~ /[a-z]/)
            check_word(word[i], name, n == 1 ? parts : "")
        else if (word[i] != "]") # a constant may be one of another part
            check_word(word[i], name, "")
}

function is_file(name) {
    return name ~ /\.(c|h|cl|awk|sh|txt|md)$/
}

# What the sentence is about: "struct device", or "take_job()|end_job()", or "".
function parts_of(text,   parts, name) {
    if (text !~ /^(Of|[Ii]n) `/)
        return ""
    parts = ""
    sub(/^[A-Za-z]+ /, "", text)
    while (match(text, /^`[^`]+`/)) {
        name = substr(text, 2, RLENGTH - 2)
        text = substr(text, RLENGTH + 1)
        if (name in exists)
            parts = parts (parts == "" ? "" : "|") name
        if (text !~ /^ and `/)
            break
        sub(/^ and /, "", text)
    }
    return parts
}

function check_sentence(text,   parts) {
    sub(/^ *(- )?/, "", text)
    parts = parts_of(text)
    while (match(text, /`[^`]+`/)) {
        check(substr(text, RSTART + 1, RLENGTH - 2), parts)
        text = substr(text, RSTART + RLENGTH)
    }
}

function check_paragraph(   i, n, one) {
    gsub(/[.;:] /, "&\n", paragraph)
    n = split(paragraph, one, "\n")
    for (i = 1; i <= n; i++)
        check_sentence(one[i])
    paragraph = ""
}

# A line of a tree of calls, "  wait_to_issue()     waits until the step may be issued".  callers[] has, for each depth,
# the last function there.
function check_call(text,   depth, name, i) {
    match(text, /^ */)
    depth = RLENGTH
    name = substr(text, depth + 1)
    sub(/\(.*/, "", name)
    check(name "()", "")
    for (i = depth - 1; i >= 0 && !(i in callers); i--)
        ;
    if (i >= 0 && !((callers[i] "()", name) in is_in))
        wrong(name "()", "is not called in " callers[i] "()")
    for (i in callers)
        if (i + 0 > depth)
            delete callers[i]
    callers[depth] = name
}

/^```/ {
    fenced = !fenced
    split("", callers)
    next
}
fenced && /^ *[a-z_0-9]+\(\)( |$)/ { check_call($0) }
fenced || /^<!--/ { next }
/^$|^[|#]|^ *- |^ *[0-9]+\. / { check_paragraph() }
{
    text = $0
    sub(/^ +/, "", text)
    paragraph = paragraph text " "
}
/^[|]/ { check_paragraph() }

END {
    check_paragraph()
    if (checked < 300)
        print "only " checked + 0 " names were found in the pages"
}
