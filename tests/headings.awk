# headings.awk - is what a header promises in the file that it names?
#
#     awk -f tests/headings.awk src/*/*/*.[ch]
#
# A heading of a header may name files of its folder: a line of dashes, or a comment that begins with a file's name.
#
#     /* ---- readlist.c, writelist.c: step files ------------ */
#     /* png.c: publish a picture ... */
#     void find_levels(struct step *s); /* levels.c: fills in ... */
#
# Every function that is declared below it, up to the next heading, is defined in one of these files; a comment behind
# a function is of this one alone.  It prints the others, a line each.

FNR == 1 {
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    in_header = FILENAME ~ /\.h$/
    n_files = 0
}

# ---- headings -------------------------------------------------------------------------------------------------------

in_header && (/^\/\* ----/ || /^\/\* [a-z0-9_\/]+\.c[:.,]/) {
    n_files = 0
    heading = $0
    if (!/^\/\* ----/) # only the names that the comment begins with
        match(heading, /^\/\* [a-z0-9_\/]+\.c(, [a-z0-9_\/]+\.c)*/)
    else
        RLENGTH = length(heading)
    heading = substr(heading, 1, RLENGTH)
    while (match(heading, /[a-z0-9_\/]+\.c/)) {
        file = substr(heading, RSTART, RLENGTH)
        files[++n_files] = path_of(file)
        heading = substr(heading, RSTART + RLENGTH)
    }
}

# ---- functions ------------------------------------------------------------------------------------------------------

function path_of(file) { # as a heading names it
    return file ~ /\// ? "src/" file : folder file
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
    for (i = 1; i <= n_files && named_here == ""; i++)
        named[n_checked] = named[n_checked] (i > 1 ? " " : "") files[i]
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
