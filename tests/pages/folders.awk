# folders.awk - do the tables of reference-folders.md that list src/ name its folders and files, and only those?
#
#     ls src/*/*/*.[ch] | awk -f tests/pages/folders.awk - tutorials/reference-code.md tutorials/reference-folders.md
#
# A table begins with a row | ROOM | ... | or | ROOM: WORDS | ... |, where src/ROOM has folders.  A row | `FOLDER/` |
# ... | is about the folder src/ROOM/FOLDER, and so are the rows below it whose first cell is empty.  There a single
# word in `...` is a file, without its ending; `trace_*` is each file whose name begins so.  Every .c file must be
# named, but for one that is named as the folder is: the row says what that is for.
#
# In a folder of the trainer, "*Skip at first" begins the files that no row of the spine, in reference-code.md, names.
#
# It prints what is missing or too much, a line each.

function name_all(start,   file, n) {
    for (file in is_file)
        if (index(file, start) == 1) {
            named[file] = 1
            n++
        }
    if (!n)
        print FILENAME ":" FNR ": no file begins with src/" start
}

FILENAME == "-" {
    split($0, part, "/")
    name = part[4]
    sub(/\.[ch]$/, "", name)
    rooms[part[2]] = 1
    folder = part[2] "/" part[3]
    folders[folder] = 1
    is_file[folder "/" name] = 1
    if ($0 ~ /\.c$/)
        is_c[folder "/" name] = 1
    if ($0 ~ /\.c$/ && name != part[3])
        needed[folder "/" name] = 1
    next
}

FILENAME ~ /reference-code/ {
    if (/^## /)
        in_spine = /^## The spine/
    if (in_spine && match($0, /^\| `src\/trainer\/[^`]*\.c`/))
        is_read[substr($0, 8, RLENGTH - 10)] = 1
    next
}

{ room_begins = 0 }
match($0, /^\| [a-z]+(: [a-z, ]+)? \|/) {
    room = substr($0, 3, RLENGTH - 4)
    sub(/:.*/, "", room)
    room_begins = 1
}
!/^\|/ || (room_begins && !(room in rooms)) {
    room = folder = ""
}

room != "" && match($0, /^\| `[a-z_]+\/` \|/) {
    folder = room "/" substr($0, 4, RLENGTH - 7)
    described[folder] = 1
    skipping = 0
    if (!(folder in folders))
        print FILENAME ":" FNR ": there is no folder src/" folder
}

room != "" && folder in folders {
    rest = $0
    sub(/^\|[^|]*\|/, "", rest)
    if (rest ~ /\*Skip at first/)
        skipping = 1
    while (match(rest, /`[^`]+`/)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        if (name ~ /^[a-z_0-9]+\*$/)
            name_all(folder "/" substr(name, 1, length(name) - 1))
        if (name !~ /^[a-z_0-9]+$/)
            continue
        named[folder "/" name] = 1
        if (room == "trainer" && (folder "/" name) in is_c && skipping == ((folder "/" name) in is_read))
            print FILENAME ":" FNR ": the spine " (skipping ? "reads" : "does not read") " src/" folder "/" name ".c"
        if (!(folder "/" name in is_file))
            print FILENAME ":" FNR ": src/" folder " has no file " name
    }
}

END {
    for (folder in folders)
        if (!(folder in described))
            print "no row describes src/" folder
    for (file in needed)
        if (!(file in named))
            print "no row names src/" file ".c"
}
