# json.sh - reads the values of fields out of JSON, where a script needs no more than that.  Scripts read it by
# `. tests/lib/json.sh`; helpers.sh and the labs' lab.sh do so for those that they serve.
#
#     json_values FILE NAME     the values of all fields of that name, a line each, in the order of the file
#     json_value FILE NAME      the first of them
#
# FILE may be - for standard input, and may have several texts, such as the lines of a log.  A value is a number, a word
# as true, or a string, which is printed without its quotes.  An object or a list is printed as an empty line.
# A name and its value must stand on one line.  For a file that is not there, nothing is printed.
#
#     $ echo '{"step": 1, "loss": 2.5, "of": {"name": "a, b"}}{"step": 2, "loss": 2.25}' | json_values - loss
#     2.5
#     2.25
#     $ echo '{"step": 1, "of": {"name": "a, b"}}' | json_value - name
#     a, b

# The quotes split a line into fields: strings have even numbers, and what stands between two strings has odd ones.
#
#     {"step": 1, "of": {"name": "a, b"}}
#       $2   = step    $4   = of    $6   = name    $8 = a, b
#       $3   = : 1,    $5   = : {   $7   = :
#
# So a string is a name if a colon comes after it.  A quote or a backslash in a string is hidden as a character that
# JSON cannot have until the value is printed.
json_values() { # FILE NAME
    awk -F '"' -v name="$2" '
        {
            gsub(/\\\\/, "\001")
            gsub(/\\"/, "\002")
        }
        {
            for (i = 2; i < NF; i += 2) {
                if ($i != name || $(i + 1) !~ /^ *:/)
                    continue
                value = $(i + 1)
                sub(/^ *: */, "", value)
                is_string = value == "" && i + 2 < NF
                if (is_string)
                    value = $(i + 2)
                else
                    sub(/[] ,{}[].*/, "", value)
                gsub(/\002/, "\"", value)
                gsub(/\001/, "\\", value)
                print value
            }
        }' "$1" 2>/dev/null
}

json_value() { # FILE NAME
    json_values "$1" "$2" | head -n 1
}
