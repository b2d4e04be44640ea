# tested.awk - the files that test programs say, in the comment at their head, they test.
#
#     awk -f tests/style/tested.awk tests/unit/*/*.c
#
# A head with                                          gives
#
#     It tests read.c and write.c of                       src/planning/trace/read.c
#     src/planning/trace, and parts.c                      src/planning/trace/write.c
#     (src/planning/pass).                                 src/planning/pass/parts.c

FNR == 1 {
    in_head = 1
    head = ""
}
in_head {
    sub(/^ \* */, "")
    head = head " " $0
}
in_head && /\*\// {
    in_head = 0
    print_tested(head)
}

function print_tested(text,   found, folder) { # for each list of files and their folder
    while (match(text, /([a-z_]+\.c(, | and )?)+ (of |\()src\/[a-z_]+\/[a-z_]+/)) {
        found = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        folder = found
        sub(/.* (of |\()/, "", folder)
        print_files(found, folder)
    }
}

function print_files(text, folder) { # for each FILE.c of the text
    while (match(text, /[a-z_]+\.c/)) {
        print folder "/" substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
}
