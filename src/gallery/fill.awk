# fill.awk - prints a page with new curves.
#
#     awk -v command=COMMAND -f fill.awk PAGE
#
# Below a line  <!-- curves: NAME -->  the lines between the next two lines ``` become what the command
# "NAMES=NAME COMMAND" prints.  Exit code 1: such a command has failed.

/^<!-- curves: / {
    name = $3
    print
    next
}

name != "" && /^```$/ {
    print
    curves = "NAMES=" name " " command
    while ((curves | getline line) > 0)
        print line
    failed += close(curves) != 0
    name = ""
    is_old = 1
    next
}

is_old && !/^```$/ { next }

{
    is_old = 0
    print
}

END { exit failed > 0 }
