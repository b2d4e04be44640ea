# faults.awk - the functions in which tests say how to see them fail: "TEST FILES FUNCTION" for each.
#
#     awk -f faults.awk tests/unit/*/*.c
#
# A paragraph  "To see it fail: in fill_levels() of levels.c or of place.c, ..."  in the test tests/unit/x.c gives
#
#     tests/unit/x.c levels.c,place.c fill_levels
function tell(   words, n, i, files) {
    n = split(text, words, /[^a-z_0-9.()]+/)
    for (i = 1; i <= n; i++) {
        sub(/\.$/, "", words[i]) # the end of a sentence
        if (words[i] ~ /^[a-z_0-9]+\.cl?$/)
            files = files (files == "" ? "" : ",") words[i]
    }
    for (i = 1; i <= n; i++)
        if (files != "" && words[i] ~ /^[a-z_0-9]+\(\)$/)
            print FILENAME, files, substr(words[i], 1, index(words[i], "(") - 1)
    text = ""
}
/To see it fail:/ { is_asked = 1 }
is_asked { text = text " " $0 }
is_asked && (/^ \*$/ || /\*\//) {
    tell()
    is_asked = 0
}
