# comments.awk - tells the comments of C from its code.  The programs that need that read it before themselves:
#
#     awk -f tests/style/comments.awk -f tests/style/without_comments.awk FILE...     plain.py
#     awk -f tests/style/comments.awk -f tests/style/comment_names.awk FILE...        names.sh
#     awk -f tests/style/comments.awk -f tests/pages/code_lines.awk FILE...           plain.sh, counts.awk
#
# split_line(line) sets `code` and `comment`.  For example
#
#     line                                       code                     comment
#     int sum(int a, int b) /* of two            int sum(int a, int b)     of two
#      * numbers */ {                             {                        * numbers
#         puts("/* no comment");                     puts("/* no comment");
#
# `in_comment` says whether the line begins within a comment, and then whether the next one does.

FNR == 1 { in_comment = 0 }

function split_line(line,   end, found) {
    code = ""
    comment = ""
    while (line != "") {
        if (in_comment) {
            end = index(line, "*/")
            if (!end) {
                comment = comment " " line
                return
            }
            comment = comment " " substr(line, 1, end - 1)
            line = substr(line, end + 2)
            in_comment = 0
            continue
        }
        if (!match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\*/)) { # a string, a character, the beginning of a comment
            code = code line
            return
        }
        found = substr(line, RSTART, RLENGTH)
        code = code substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (found == "/*")
            in_comment = 1
        else
            code = code found
    }
}
