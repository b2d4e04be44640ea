# unpack.awk - writes the files of a patch that adds one folder to src/techniques, and prints the folder's name.
#
#     awk -v to=DIR -f tutorials/labs/lib/unpack.awk PATCH
#
# board.sh unpacks entries of the league by it, and not by `patch`, which knows links, renames and other folders.  Of
#
#     --- /dev/null
#     +++ b/src/techniques/mine/mine.c
#     @@ -0,0 +1,2 @@
#     +int x;
#     +int y;
#
# it writes DIR/mine/mine.c, of two lines, and prints "mine".  A patch that does anything else is refused: one sentence
# on stderr, and exit code 1.  Its patterns are tried from top to bottom, and each that knows a line ends with `next`.

function refuse(sentence) {
    print sentence | "cat 1>&2"
    exit 1
}

function is_allowed(path) {
    return path ~ /^b\/src\/techniques\/[a-z][a-z0-9_]*\/[a-z][a-z0-9_]*\.[ch]$/ && !(path in seen)
}

left > 0 { # lines of the file that is being written
    if ($0 !~ /^\+/)
        refuse("line " NR ": a pass only adds files, and this line does not begin with +")
    print substr($0, 2) >file
    left--
    next
}
/^@@ -0,0 \+1(,[0-9]+)? @@$/ && file != "" {
    left = $3 ~ /,/ ? substr($3, index($3, ",") + 1) : 1
    next
}
/^\+\+\+ / {
    path = $2
    if (!is_allowed(path))
        refuse("line " NR ": a pass is new files NAME.c and NAME.h in one folder of src/techniques")
    seen[path] = 1
    split(path, part, "/")
    if (folder != "" && part[4] != folder)
        refuse("line " NR ": a pass is one folder, and this is a second")
    if (folder == "")
        system("mkdir \"" to "/" part[4] "\"")
    folder = part[4]
    file = to "/" folder "/" part[5]
    next
}
/^(#.*|diff .*|index .*|new file mode 100644|--- \/dev\/null.*|\\ No newline at end of file|)$/ { next }
{ refuse("line " NR ": a pass is new files, and this line changes, renames or links one") }

END {
    if (left > 0)
        print "the patch ends within a file" | "cat 1>&2"
    else if (folder != "")
        print folder
}
