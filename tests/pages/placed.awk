# placed.awk - "PAGE FILE NAME" for each place where a page says which file has a function, a struct or another name.
#
#     awk -f placed.awk tutorials/*.md
#
#     The edge comes from `note_touch()` in         gives      PAGE depend.c note_touch()
#     `depend.c`.  `struct when` of `when.h` says              PAGE when.h struct when
#     which steps.

FNR == 1 { tell() }
/^$/ { tell() }
{
    page = FILENAME
    sub(/^ +/, "")
    paragraph = paragraph " " $0
}
END { tell() }

function tell(   found, name) { # all of the paragraph's
    while (match(paragraph, /`((struct |enum )?[a-z_0-9]+|[a-z_0-9]+\(\)`?,?)`? (in|of) `[a-z_0-9\/]+\.(c|h|cl)`/)) {
        found = substr(paragraph, RSTART + 1, RLENGTH - 2)
        paragraph = substr(paragraph, RSTART + RLENGTH)
        name = found
        sub(/`.*/, "", name)
        sub(/.*`/, "", found)
        print page, found, name
    }
    paragraph = ""
}
