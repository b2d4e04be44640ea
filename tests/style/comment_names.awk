# comment_names.awk - do the names that comments of C mention exist in the code?
#
#     awk -f tests/style/comments.awk -f tests/style/comment_names.awk src/*/*/*.[ch] cl/*.cl cl/*.h
#
# A name is a word with an underscore, a word before "()", a field behind "->", or a source, as list.h is.  Left out are
# names of other files, words in double quotes, lines that are indented as a picture or an example is, and functions
# of the system.  It prints the others, a line each: FILE:LINE: NAME.
#
# Where a comment says "task->accesses", code of some file says that too.  A comment may also say where something is,
# with the words `in` or `of`, and with a comma before them:
#
#     prove() in verify.c       the file defines the function, or the header declares it
#     struct when, of when.h    the file has the body of the struct; likewise for enum
#     gemm.c launches           in a .cl file: the .c file has the name of the .cl file
#
# A name between `...` in a header, below the header's head, is a parameter or a field.  So it must stand in the code of
# the same header, of a header that this one includes, directly or not, or of a .c file of its folder.

function split_into(set, words,   word, i, count) {
    count = split(words, word, " ")
    for (i = 1; i <= count; i++)
        set[word[i]] = 1
}

function note_code(line,   name) {
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(line, RSTART, RLENGTH)
        known[name] = 1
        of_file[FILENAME, name] = 1
        of_base[base_name(FILENAME), name] = 1
        if (FILENAME ~ /\.c$/)
            of_folder[folder_of(FILENAME), name] = 1
        line = substr(line, RSTART + RLENGTH)
    }
}

# Fills found[1], found[2] ... with what the line has of "task->accesses", and returns how many: a->b->c has a->b and
# b->c.
function find_pointed(line, found,   count) {
    count = 0
    while (match(line, /[a-z_]+->[a-z_]+/)) {
        count++
        found[count] = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + index(found[count], ">"))
    }
    return count
}

function note_pointed(line,   found, count, i) { # that the code has "task->accesses"
    count = find_pointed(line, found)
    for (i = 1; i <= count; i++)
        is_pointed[found[i]] = 1
}

# A definition begins at the margin, and its first line does not end with a semicolon.
function note_definition(line) {
    if (line !~ /^[A-Za-z_#]/ || line ~ /;$/)
        return
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*\(/)) {
        is_defined[base_name(FILENAME), substr(line, RSTART, RLENGTH - 1)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
}

function note_bodies(line) { # of a struct or an enum, and the .cl files that it names
    if (match(line, /(struct|enum) [a-z_0-9]+ [{]/))
        has_body[base_name(FILENAME), substr(line, RSTART, RLENGTH - 2)] = 1
    while (match(line, /"[a-z_0-9]+\.cl"/)) {
        names_kernels[base_name(FILENAME), substr(line, RSTART + 1, RLENGTH - 2)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
}

function base_name(path) {
    sub(/.*\//, "", path)
    return path
}

function note_fields(line,   found, count, i) {
    count = find_pointed(line, found)
    for (i = 1; i <= count; i++) {
        n_fields++
        fields[n_fields] = found[i]
        field_place[n_fields] = FILENAME ":" FNR
    }
}

# Gathers a comment of several lines, and looks at it when it has ended.
function note_block(line) {
    if (line ~ /^ +\*    /) # a picture
        line = "."
    sub(/^ *\*/, "", line)
    if (block == "")
        block_place = FILENAME ":" FNR
    block = block " " line
    gsub(/  +/, " ", block)
    if (in_comment)
        return
    note_defined(block)
    if (FILENAME ~ /\.cl$/)
        note_launchers(block)
    block = ""
}

function note_defined(text,   what) {
    while (match(text, /([a-z_0-9]+\(\)|(struct|enum) [a-z_0-9]+),? (in|of) [a-z_0-9\/]+\.(cl|c|h)/)) {
        what = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        n_defined++
        defined_in[n_defined] = base_name(what)
        sub(/.* /, "", defined_in[n_defined])
        sub(/,? (in|of) .*/, "", what)
        defined[n_defined] = what
        defined_place[n_defined] = block_place
    }
}

function note_launchers(text) {
    while (match(text, /[a-z_0-9\/]+\.c[^a-z.;][^.;]*launch/)) {
        n_launchers++
        launcher[n_launchers] = substr(text, RSTART, RLENGTH)
        sub(/\.c[^a-z].*/, ".c", launcher[n_launchers])
        launcher[n_launchers] = base_name(launcher[n_launchers])
        launched[n_launchers] = base_name(FILENAME)
        launcher_place[n_launchers] = block_place
        text = substr(text, RSTART + RLENGTH)
    }
}

function is_there(file, what) { # "prove()" or "struct when"
    if (what ~ / /)
        return (file, what) in has_body
    sub(/\(\)/, "", what)
    return (file, what) in is_defined || (file ~ /\.h$/ && (file, what) in of_base)
}

function note(name) {
    n++
    mentioned[n] = name
    place[n] = FILENAME ":" FNR
}

function note_quoted(line,   name) {
    while (match(line, /`[a-z_][a-z_0-9]*`/)) {
        name = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        n_quoted++
        quoted[n_quoted] = name
        quoted_file[n_quoted] = FILENAME
        quoted_place[n_quoted] = FILENAME ":" FNR
    }
}

function folder_of(path) {
    sub(/[^\/]*$/, "", path)
    return path
}

# A line  #include "base/array.h"  names a file below src, or one beside this header.
function note_include(line,   path) {
    if (!match(line, /"[^"]*"/))
        return
    path = substr(line, RSTART + 1, RLENGTH - 2)
    path = path ~ /\// ? "src/" path : folder_of(FILENAME) path
    n_included[FILENAME]++
    included[FILENAME, n_included[FILENAME]] = path
}

# Does the code of the header have that name, or that of a header which it includes?
function is_within(header, name,   i) {
    if ((header, name) in of_file)
        return 1
    for (i = 1; i <= n_included[header]; i++)
        if (is_within(included[header, i], name))
            return 1
    return 0
}

# The sources that a comment names must be among the files that are read.
function note_files(line,   name) {
    while (match(line, /[A-Za-z0-9_\/*]+[.](cl|c|h)/)) {
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/.*\//, "", name)
        if (name !~ /\*/ && line !~ /^[A-Za-z0-9_.]/) {
            n_named++
            named[n_named] = name
            named_place[n_named] = FILENAME ":" FNR
        }
    }
}

function note_comment(line,   before) {
    if (line ~ /^ +\*    /)
        return
    gsub(/"[^"]*"/, " ", line)
    note_files(line)
    note_fields(line)
    gsub(/[A-Za-z0-9_\/*.-]+\.(c|h|cl|awk|sh|py|txt|md|bin|json|csv|safetensors)([^A-Za-z0-9_]|$)/, " ", line)
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*(\(\))?/)) {
        before = substr(line, RSTART - 2, 2)
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (name ~ /^[A-Za-z].*\(\)$/ || name ~ /[a-z]_[a-z][a-z]/ || before == "->") {
            sub(/\(\)$/, "", name)
            note(name)
        }
    }
}

BEGIN {
    split_into(known, "exec vasprintf prefetch")
    split_into(is_file, "llm.c NAME.c embedded.c modules.c") # a project, a placeholder, and what the build makes
}

FNR == 1 {
    in_head = 1
    block = ""
    name = FILENAME
    gsub(/.*\/|\.[a-z]*$/, "", name)
    known[name] = 1
    name = FILENAME
    sub(/.*\//, "", name)
    is_file[name] = 1
}

{
    split_line($0)
    note_code(code)
    note_pointed(code)
    note_definition(code)
    note_bodies(code)
    note_comment(comment)
    if (comment != "")
        note_block(comment)
    if (FILENAME ~ /\.h$/ && !in_head)
        note_quoted(comment)
    if (FILENAME ~ /\.h$/ && /^#include "/)
        note_include($0)
    in_head = in_head && in_comment
}

END {
    for (i = 1; i <= n; i++)
        if (!(mentioned[i] in known))
            print place[i] ": " mentioned[i]
    for (i = 1; i <= n_quoted; i++)
        if (!is_within(quoted_file[i], quoted[i]) && !((folder_of(quoted_file[i]), quoted[i]) in of_folder))
            print quoted_place[i] ": neither the header nor its folder has `" quoted[i] "`"
    for (i = 1; i <= n_named; i++)
        if (!(named[i] in is_file))
            print named_place[i] ": there is no file " named[i]
    for (i = 1; i <= n_fields; i++)
        if (!(fields[i] in is_pointed))
            print field_place[i] ": no code has " fields[i]
    for (i = 1; i <= n_defined; i++)
        if (!is_there(defined_in[i], defined[i]))
            print defined_place[i] ": " defined_in[i] " does not have " defined[i]
    for (i = 1; i <= n_launchers; i++)
        if (!((launcher[i], launched[i]) in names_kernels))
            print launcher_place[i] ": " launcher[i] " does not launch kernels of " launched[i]
    if (n_fields < 20 || n_defined < 30 || n_launchers < 6)
        print "only " n_fields + 0 " fields, " n_defined + 0 " things in files and " n_launchers + 0 \
            " files that launch kernels were found in comments"
    if (n < 100)
        print "only " n + 0 " names were found in comments"
}
