# without_comments.awk - prints C without its comments: what is left of each line is on a line of its own.
#
#     awk -f tests/style/comments.awk -f tests/style/without_comments.awk FILE
#
#     /* Adds up. */
#     int sum(int a, int b) /* of two */     gives     int sum(int a, int b)
#
# So a place in what it prints has the line number that it has in the file.

{
    split_line($0)
    print code
}
