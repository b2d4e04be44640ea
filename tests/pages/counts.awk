# counts.awk - counts the lines that README.md and tutorials/reference-code.md say files, functions and folders have.
# Lines of code are those that are neither blank nor only comment; all lines are those of the file, as `wc -l` has them.
#
#     awk -f src/make/to_read.awk -f tests/pages/counts.awk README.md                 what is wrong, a line each
#     awk -v fill=1 -f src/make/to_read.awk -f tests/pages/counts.awk README.md       the page, with the right numbers
#
# `make counts` fills both pages, and counts.sh looks at what is wrong.  There are three kinds of numbers.
#
#     `src` has about 42,100 lines of code      a sentence of the README: lines of code, which code_lines.awk counts,
#                                               rounded to hundreds; right within a twentieth
#     | `src/main.c` | 49 | ... |               a row of the README: all lines of a file; right within a tenth
#     | `src/main.c` | `print_help()` | 43 |    a row of the spine: the lines that are to be read, which to_read.awk
#                                               finds; right within a tenth
#
# The spine has a limit: LONGEST_SPINE lines.

BEGIN {
    LONGEST_SPINE = 3500
    SHORTEST_SPINE = 2000 # with less, rows have not been recognised
    # What stands in front of a number of the README, and the files that it counts.
    sources["`src` has about"] = "src/*.c src/*/*/*.[ch]"
    sources["The trainer has"] = "src/trainer/*/*.[ch]"
    sources["planning"] = "src/planning/*/*.[ch]"
    sources["the techniques"] = "src/techniques/*/*.[ch]"
    sources["the tools"] = "src/tools/*/*.[ch]"
}

# ---- the README ------------------------------------------------------------------------------------------------------

function count_code(files,   command, number) {
    command = "awk -f tests/style/comments.awk -f tests/pages/code_lines.awk " files
    command | getline number
    close(command)
    return number
}

function is_off(n, said,   off) { # by more than 3 lines, and by more than a tenth: a small edit fails no test
    off = n - said
    return off * off > 9 && off * off > 0.01 * n * n
}

function with_comma(number) { # 38200 as 38,200
    return sprintf("%d,%03d", number / 1000, number % 1000)
}

function check_sentence(words,   said, code) { # "WORDS 38,200", which match() has found
    said = substr($0, RSTART + length(words) + 1, RLENGTH - length(words) - 1)
    code = count_code(sources[words])
    $0 = substr($0, 1, RSTART + length(words)) with_comma(100 * int(code / 100 + 0.5)) substr($0, RSTART + RLENGTH)
    sub(/,/, "", said)
    if (code < 0.95 * said || code > 1.05 * said)
        wrong(words " " said " lines of code: there are " code)
    found[words] = 1
}

page == "README.md" {
    for (words in sources)
        if (match($0, words " [0-9]+,[0-9]+"))
            check_sentence(words)
}

page == "README.md" && /^\| `[a-z\/_.]*` \| [0-9]+ \|/ {
    split($0, cell, " *[|] *")
    path = cell[2]
    gsub(/`/, "", path)
    read_file(path)
    if (is_off(n, cell[3]))
        wrong(path " has " n " lines in all, not " cell[3])
    sub(/\| [0-9]+ \|/, "| " n " |")
    rows++
}

# ---- the spine -------------------------------------------------------------------------------------------------------

function check_row(   sum) {
    read_file(path)
    sum = choose_lines(waits)
    if (is_off(sum, said))
        wrong(path ": " sum " lines in all, not " said)
    total += sum
    if (fill)
        sub(/\| [0-9]+ \|$/, "| " sum " |")
}

row_ends { check_row() }

# ---- the pages -------------------------------------------------------------------------------------------------------

{ has_been_read[page] = 1 }
fill { print }
END {
    page = "README.md"
    if (page in has_been_read) {
        for (words in sources)
            if (!(words in found))
                wrong("no number in the line of \"" words "\"")
        if (!rows)
            wrong("no row of a file")
    }
    page = "tutorials/reference-code.md"
    if (page in has_been_read && (total > LONGEST_SPINE || total < SHORTEST_SPINE))
        wrong("the spine has " total + 0 " lines")
}
