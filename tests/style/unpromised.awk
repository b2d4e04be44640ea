# unpromised.awk - which commands that scripts call are not promised?  A line "FILE: PROGRAM is not promised" for each.
#
#     awk -f unpromised.awk known promised calls
#
# `known` has the words that are always there, `promised` is of promised.awk, and `calls` has lines of commands.awk:
# "call FILE PROGRAM".  What the page promises for some files only, those may call; what it promises for pages, pages.
FILENAME ~ /known$/ { known[$1] = 1 }
FILENAME ~ /promised$/ { who[$1] = who[$1] $0 }
FILENAME ~ /calls$/ {
    file = $2
    word = $3
    if (word in known || word ~ /\// || index(who[word], "`" file "`"))
        next
    if (file ~ /\.md$/ && who[word] ~ /pages/)
        next
    if (!said[file, word]++)
        print file ": " word " is not promised"
}
