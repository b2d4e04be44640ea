# function_names.awk - prints the functions that C files define, one a line: "NAME FILE:LINE".
#
#     awk -v of=public -f tests/style/function_names.awk FILE...    those that other files may call
#     awk -v of=static -f tests/style/function_names.awk FILE...    those of a .c file alone
#
# A function begins at the left margin, and its name stands before the first parenthesis.  In a header a static function
# is public too, since each file that includes the header has it.
/^[a-z_][^=;({/]*[ *][a-z_0-9]+\(/ {
    before = $0
    sub(/\(.*/, "", before)
    is_static = /^static / && FILENAME ~ /\.c$/
    if (before ~ /^typedef / || is_static != (of == "static"))
        next
    n = split(before, words, /[ *]+/)
    print words[n], FILENAME ":" FNR
}
