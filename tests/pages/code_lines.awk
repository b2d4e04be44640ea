# code_lines.awk - how many lines of code do C files have?  A line that is blank or only comment is none.
#
#     awk -f tests/style/comments.awk -f tests/pages/code_lines.awk FILE...     prints the number, for all together
#
#     /* Adds up. */
#
#     int sum(int a, int b) /* of two */                  these seven lines of a file are 4 lines of code
#     {
#         puts("/* no comment");
#         /* Nothing overflows here. */
#         return a + b; }

{
    split_line($0)
    if (code ~ /[^ \t]/)
        lines++
}
END { print lines + 0 }
