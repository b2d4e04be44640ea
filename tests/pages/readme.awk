# readme.awk - has the README more words than a front page has room for, or comments?
#
#     awk -f readme.awk README.md
#
# A sign alone, as in a picture, is no word.
/<!--/ { print "README.md has a comment in line " FNR ": its marks stand in tests/pages/marks/README.marks" }
{
    for (i = 1; i <= NF; i++)
        words += $i ~ /[!-~]/
}
END {
    if (words > 1250)
        print "README.md has " words " words"
}
