# edits.awk - what does a page tell the student to change, without that a mark of it makes the change?
#
#     awk -v compared=COUNT -f tests/pages/edits.awk PARTS         PARTS are page.awk's
#
#     text 1:7  Replace the 2 by a 3 and see.         gives "no test of this change: Replace the 2 by a 3 and see."
#     edit                                            unless a mark stands behind it, or in front of it
#     run ./yard plan --model tiny                    or a command, if the text names no file of src or cl
#
# COUNT gets a line "edit" for each mark.

BEGIN {
    # A paragraph tells a change if it begins with one of these words; a section, if its title does.
    first_words = "(Change it|Try|Your turn|Exercise|Replace|Leave out|Put|Give|Flip|Copy|Add|Write|Set|Remove)[ .:s]"
}

function tells_change(text) { # by its first word; in a section "Change it" by any such word, but in a list
    if (section && text !~ /^- / && text ~ /([Ll]eave|[Tt]ake) out|([Ww]rite|[Rr]eplace|[Pp]ut|[Aa]dd) |`make`/)
        return 1
    sub(/^([0-9]+\. |- )?(\*\*)?/, "", text)
    return text ~ "^" first_words
}

function settle() { # the last change that was told had its mark, or never gets it
    if (told != "" && !is_made)
        print "no test of this change: " substr(told, 1, 60)
    told = ""
}

$1 == "head" {
    settle()
    section = ($0 " ") ~ ("## " first_words)
}
$1 == "edit" {
    print "edit" >>compared
    if (told != "" && !is_made)
        is_made = 1 # the mark stands behind the text
    else
        mark_waits = 1 # for the text behind it
}
$1 == "run" && told !~ /(src|cl)\// { is_made = 1 }
$1 == "text" {
    sub(/^text [0-9:]+ +/, "")
    if (tells_change($0)) {
        settle()
        told = $0
        is_made = mark_waits
    }
    mark_waits = 0
}
END { settle() }
