# embed.awk - writes the C file that carries the kernels, the grammar of the stories and the sources (see embedded.h).
#
#     LC_ALL=C awk -f src/make/embed.awk KERNEL.cl... -- data/stories.txt TEXT... > build/embedded.c
#
# A line of a file becomes a string literal, which C compilers read a hundred times faster than a list of numbers, and
# people too.  LC_ALL=C: bytes pass as they are.  '?' is escaped because C11 knows trigraphs.

function literal(line) {
    gsub(/[\\"?]/, "\\\\&", line)
    gsub(/\r/, "\\015", line)
    return "    \"" line "\\n\""
}

function name_of(path) {
    sub(/.*\//, "", path)
    return path
}

# Every line of a file as string literals; an empty file gives an empty string.
function embed(path,   line) {
    print "    \"\""
    while ((getline line < path) > 0)
        print literal(line)
    close(path)
}

BEGIN {
    print "/* Made by src/make/embed.awk: change the files that it names, not this one. */"
    print "#include \"trainer/base/embedded.h\""

    for (i = 1; i < ARGC && ARGV[i] != "--"; i++) {
        printf "\nstatic const char kernel_%d[] = /* %s */\n", i, ARGV[i]
        embed(ARGV[i])
        print "    ;"
    }
    kernels = i - 1

    print "\nconst struct embedded_file embedded_kernels[] = {"
    for (i = 1; i <= kernels; i++)
        printf "    {\"%s\", kernel_%d, sizeof kernel_%d - 1},\n", name_of(ARGV[i]), i, i
    print "    {NULL, NULL, 0},\n};"

    print "\nconst char embedded_stories[] ="
    embed(ARGV[kernels + 2]) # behind the --
    print "    ;\nconst unsigned char embedded_text[] ="
    for (i = kernels + 3; i < ARGC; i++) {
        print literal("==== " ARGV[i] " ====")
        embed(ARGV[i])
    }
    print "    ;\nconst size_t embedded_text_size = sizeof embedded_text - 1;"
}
