# readme.awk - has the README more words than a front page has room for?
#
#     awk -f readme.awk README.md
#
# Words count outside of comments; a sign alone, as in a picture, is no word.
/^<!--/ { hidden = 1 }
!hidden {
    for (i = 1; i <= NF; i++)
        words += $i ~ /[!-~]/
}
/-->$/ { hidden = 0 }
END {
    if (words > 1250)
        print "README.md has " words " words"
}
