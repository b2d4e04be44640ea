# embed_bytes.awk - writes the C file that carries a file of bytes inside the program.
#
#     od -An -v -to1 letters.png | awk -v name=embedded_letters -f src/make/embed_bytes.awk
#
# Its name_size says how many bytes there are.  They become a string literal: see embed.awk.

BEGIN {
    print "/* Made by src/make/embed_bytes.awk. */"
    print "#include <stddef.h>"
    print "extern const unsigned char " name "[];"
    print "extern const size_t " name "_size;"
    print "const unsigned char " name "[] ="
}

{
    sub(/ *$/, "")
    gsub(/ +/, "\\")
    print "    \"" $0 "\""
}

END {
    print "    ;"
    print "const size_t " name "_size = sizeof " name " - 1;"
}
