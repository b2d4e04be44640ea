# placed.awk - "PAGE FILE NAME" for each place where a page says which file has a function, a struct or another name.
#
#     awk -f placed.awk tutorials/*.md
#
#     The edge comes from `note_touch()` in         gives      PAGE depend.c note_touch()
#     `depend.c`.  `struct when` of `when.h` says              PAGE when.h struct when
#     which steps.  In `swap_parts.h`, `struct gap`         PAGE swap_parts.h struct gap
#     describes a gap, and `struct fate` says               PAGE swap_parts.h struct fate
#     what is done about it.
#
# A sentence that begins with "In `FILE`," is read only if a name, or "the function", follows the comma: in other such
# sentences the reader is told to write something new.

FNR == 1 { tell() }
/^$/ { tell() }
{
    page = FILENAME
    sub(/^ +/, "")
    paragraph = paragraph " " $0
}
END { tell() }

function tell() { # all of the paragraph's
    tell_sentences(paragraph)
    tell_phrases(paragraph)
    paragraph = ""
}

function tell_sentences(text,   sentence, file, rest) { # "In `FILE`, `NAME` ... `NAME`."
    while (match(text, /In `[a-z_0-9\/]+\.(c|h|cl)`, (the functions? )?`[^.;:]*/)) {
        sentence = substr(text, RSTART + 4, RLENGTH - 4)
        text = substr(text, RSTART + RLENGTH)
        file = sentence
        sub(/`.*/, "", file)
        rest = substr(sentence, length(file) + 2)
        while (match(rest, /`(struct |enum )?[a-z_0-9]+(\(\))?`/)) {
            print page, file, substr(rest, RSTART + 1, RLENGTH - 2)
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
}

function tell_phrases(text,   found, name) { # "`NAME` in `FILE`", "`NAME` of `FILE`"
    while (match(text, /`((struct |enum )?[a-z_0-9]+|[a-z_0-9]+\(\)`?,?)`? (in|of) `[a-z_0-9\/]+\.(c|h|cl)`/)) {
        found = substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
        name = found
        sub(/`.*/, "", name)
        sub(/.*`/, "", found)
        print page, found, name
    }
}
