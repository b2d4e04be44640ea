# json_string.awk - a text becomes a string of JSON: a "b" becomes "a \"b\"", and the end of a line \n.
#
#     printf '%s\n' "$text" | awk -f tutorials/labs/lib/json_string.awk
#
# The text has no control characters but tabs and ends of lines.
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    gsub(/\t/, "\\t")
    text = text (NR > 1 ? "\\n" : "") $0
}
END { printf "\"%s\"", text }
