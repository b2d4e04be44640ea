# gdb_split.awk - takes a debugger's page apart: each of its transcripts (see gdb.sh) becomes a file TO1, TO2, ...
#
#     awk -v to=TO -f gdb_split.awk PAGE
#
# A transcript                                     becomes
#
#     ```gdb                                           $ gdb --args ./yard devices
#     gdb --args ./yard devices                        > break main
#     (gdb) break main                                 = Breakpoint 1 at ...
#     Breakpoint 1 at ...
#     ```
/^```gdb/ {
    inside = 1
    n++
    file = to n
    next
}
/^```/ { inside = 0 }
!inside || /^ *$/ || /^ *\.\.\.$/ { next }
/^gdb / {
    print "$ " $0 >file
    next
}
/^\(gdb\) / {
    sub(/^\(gdb\) /, "")
    print "> " $0 >file
    next
}
{ print "= " $0 >file }
