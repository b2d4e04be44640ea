# embed_bytes.awk - writes the C file that carries a file of bytes inside the program.
#
#     awk -v file=letters.png -v name=embedded_letters -f src/make/embed_bytes.awk > build/letters.png.c
#
# embedded_letters_size says how many bytes there are.  od prints each byte as an octal number, and these become the
# escapes of a string literal: see embed.awk.

BEGIN {
    print "/* Made by src/make/embed_bytes.awk. */"
    print "#include <stddef.h>"
    print "extern const unsigned char " name "[];"
    print "extern const size_t " name "_size;"
    print "const unsigned char " name "[] ="

    od = "od -An -v -to1 '" file "'"
    while ((od | getline) > 0) {
        sub(/ *$/, "")
        gsub(/ +/, "\\")
        print "    \"" $0 "\""
    }
    if (close(od) != 0)
        exit 1

    print "    ;"
    print "const size_t " name "_size = sizeof " name " - 1;"
}
