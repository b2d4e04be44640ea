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
# A sentence that begins with "In `FILE`" is read only if a name follows, or such words as "the function": in other such
# sentences the reader is told to write something new.

BEGIN {
    NAME = "`((struct |enum )?[A-Za-z_0-9]+|[A-Za-z_0-9]+\\(\\))`"
    FILE = "`[a-z_0-9/]+\\.(c|h|cl)`"
    SENTENCE = "In " FILE ",? (the functions? |the fields? |the structs? |read )?`[^.;:]*"
    PHRASE = "(" NAME ",? (and )?)+(in |of |\\()" FILE
}
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
    while (match(text, SENTENCE)) {
        sentence = substr(text, RSTART + 4, RLENGTH - 4)
        text = substr(text, RSTART + RLENGTH)
        file = sentence
        sub(/`.*/, "", file)
        rest = substr(sentence, length(file) + 2)
        tell_names(rest, file)
    }
}

# "`NAME` in `FILE`", "`NAME` of `FILE`", "`NAME` (`FILE`"; and more names before the last, "`NAME`, `NAME` and `NAME`".
function tell_phrases(text,   names, file) {
    while (match(text, PHRASE)) {
        names = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        file = names
        sub(/`$/, "", file)
        sub(/.*`/, "", file)
        sub(/`[^`]*`$/, "", names)
        tell_names(names, file)
    }
}

function tell_names(text, file) {
    while (match(text, NAME)) {
        print page, file, substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
    }
}
