# readme.awk - has the README more words than a front page has room for?
#
#     awk -f readme.awk README.md
#
# A sign alone, as in a picture, is no word.
{
    for (i = 1; i <= NF; i++)
        words += $i ~ /[!-~]/
}
END {
    if (words > 1250)
        print "README.md has " words " words"
}
