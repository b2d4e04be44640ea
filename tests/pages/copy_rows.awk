# copy_rows.awk - what the reading copy has: "PART" and "FILE LINES" for each, as the tables of the spine say it.
#
#     awk -f tests/pages/copy_rows.awk build/spine/*
#
# The part at the head of src/make/reading_copy.awk gives
#
#     1. A word becomes a command
#     src/trainer/cmd/commands.c 8
#
# and a line "FILE:NUMBER reads otherwise" for each line of the copy that is not that line of the file, or is blank.

function end_file() {
    if (path != "")
        print path, n_read
    path = ""
}

function begin_file(   n, text) {
    path = $2
    n_read = 0
    split("", line)
    while ((getline text <path) > 0)
        line[++n] = text
    close(path)
}

FNR == 1 {
    end_file()
    print
    next
}
/^==== / {
    end_file()
    begin_file()
    next
}
/^ *[0-9]+  / {
    n_read++
    if (substr($0, 8) != line[$1] || line[$1] == "")
        print path ":" $1 " reads otherwise"
}
END { end_file() }
