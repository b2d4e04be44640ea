# usage.sh - the usage of a program of the labs is the comment at its head.  lab.sh, board.sh and autograde.sh read
# it, before they go to another folder, since $0 may be a path from here.

show_usage() { # prints the comment, up to the first line that is none, without its marks; and ends
    sed -n '1d; /^#/!q; s/^# \{0,1\}//p' "$0"
    exit 2
}
