# lost.awk - which wait does a list of the student's tables lack?  Prints "CONSUMER PRODUCER", or "none none".
#
#     paste -d '|' TABLES WHOLE | awk -F '|' -v list=N -f lost.awk
#
# Each line has a row of the student's table, and the same row of the whole one.  For example
#
#     6  compute    a3,a5   a4   -|   6  compute    a3,a5   a4   5
#
# gives "6 5".  What stands after the last two spaces of a row is whom the task waits for.

/^list/ { is_asked = $1 == "list " list }

is_asked && $1 != $2 {
    split($1, column, " ")
    consumer = column[1]
    sub(/^.*  /, "", $1)
    sub(/^.*  /, "", $2)
    n = split($2, producer, ", ")
    for (i = 1; i <= n; i++)
        if (index(", " $1 ",", ", " producer[i] ",") == 0)
            print consumer, producer[i]
    found = 1
}

END {
    if (!found)
        print "none none"
}
