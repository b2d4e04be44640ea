# code_lines.awk - how many lines of code do C files have?  Lines that are blank or only comment are none.
#
#     awk -f tests/pages/code_lines.awk FILE...           prints the number, for all of them together
#
#     /* Adds up. */
#
#     int sum(int a, int b) /* of two */                  these seven lines are 4 lines of code
#     {
#         puts("/* no comment");
#         /* Nothing overflows here. */
#         return a + b; }

# The line without its comments.  `in_comment` says whether it begins within one, and then whether the next one does.
function code_of(line,   code, end, found) {
    code = ""
    while (line != "") {
        if (in_comment) {
            end = index(line, "*/")
            if (!end)
                return code
            line = substr(line, end + 2)
            in_comment = 0
            continue
        }
        if (!match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\*/))
            return code line
        found = substr(line, RSTART, RLENGTH)
        code = code substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (found == "/*")
            in_comment = 1
        else
            code = code found
    }
    return code
}

FNR == 1 { in_comment = 0 }
code_of($0) ~ /[^ \t]/ { lines++ }
END { print lines + 0 }
