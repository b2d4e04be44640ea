# headings.awk - is what a header promises in the file that it names?
#
#     awk -f tests/style/headings.awk src/*/*/*.[ch]
#
# A heading of a header may name files of its folder: a line of dashes, or a comment that begins with a file's name.
#
#     /* ---- readlist.c, writelist.c: step files ------------ */
#     /* png.c: publish a picture ... */
#     void fill_levels(struct list *list); /* levels.c: fills in ... */
#
# Every function that is declared below it, up to the next heading, is defined in one of these files; a comment behind
# a function is of this one alone.  It prints the others, a line each.

FNR == 1 {
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    in_header = FILENAME ~ /\.h$/
    n_files = 0
}

# ---- headings --------------------------------------------------------------------------------------------------------

function note_files(heading,   file) { # those that it names are the files of what is declared below it
    n_files = 0
    while (match(heading, /[a-z0-9_\/]+\.c/)) {
        file = substr(heading, RSTART, RLENGTH)
        heading = substr(heading, RSTART + RLENGTH)
        files[++n_files] = path_of(file)
    }
}

in_header && /^\/\* ----/ { note_files($0) }
in_header && match($0, /^\/\* [a-z0-9_\/]+\.c(, [a-z0-9_\/]+\.c)*[:.,]/) {
    note_files(substr($0, 1, RLENGTH)) # only the names that the comment begins with
}

# ---- functions -------------------------------------------------------------------------------------------------------

function path_of(file) { # as a heading names it
    return file ~ /\// ? "src/" file : folder file
}

function all_files(   i, all) { # of the heading, between spaces
    all = files[1]
    for (i = 2; i <= n_files; i++)
        all = all " " files[i]
    return all
}

function name_of(line) { # of the function that the line declares or defines; "": it does neither
    sub(/\/\*.*/, "", line)
    if (line !~ /^[a-zA-Z_][a-zA-Z0-9_ *]*\(/ || line ~ /^(static|typedef|extern|_Static_assert)/)
        return ""
    sub(/\(.*/, "", line)
    sub(/.*[ *]/, "", line)
    return line
}

!in_header && !/;$/ {
    name = name_of($0)
    if (name != "")
        defined[name, FILENAME] = 1
}

in_header {
    name = name_of($0)
    named_here = ""
    if (match($0, /; *\/\* [a-z0-9_\/]+\.c[:.,]/)) {
        named_here = substr($0, RSTART, RLENGTH - 1)
        sub(/.* /, "", named_here)
        named_here = path_of(named_here)
    }
    if (name == "" || (n_files == 0 && named_here == ""))
        next
    n_checked++
    where[n_checked] = FILENAME ": " name "()"
    what[n_checked] = name
    named[n_checked] = named_here
    if (named_here == "")
        named[n_checked] = all_files()
}

END {
    for (k = 1; k <= n_checked; k++) {
        found = 0
        n = split(named[k], files, " ")
        for (i = 1; i <= n; i++)
            if ((what[k], files[i]) in defined)
                found = 1
        if (!found)
            print where[k] " stands below a heading that names " named[k] ", and is not defined there"
    }
    if (n_checked < 100)
        print "only " n_checked + 0 " functions have a heading that names a file"
}
