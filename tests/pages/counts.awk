# counts.awk - counts the lines that README.md says the sources have.
#
#     awk -f tests/pages/counts.awk README.md                what is wrong
#     awk -v fill=1 -f tests/pages/counts.awk README.md      the page, with the right numbers (`make counts` writes it)
#
# A row `| file | lines | ...` has the lines of a file, exactly.  One sentence has those of all code in src, without
# blank ones and comments: rounded to hundreds, and right within a twentieth.

function count_lines(path,   n, text) {
    n = 0
    while ((getline text <path) > 0)
        n++
    close(path)
    return n
}

function count_code(   n, text, in_comment, sources) {
    n = 0
    in_comment = 0
    sources = "cat src/*.c src/*/*/*.[ch]"
    while ((sources | getline text) > 0) {
        if (in_comment || text ~ /^ *\/\*/) # one that begins a line
            in_comment = text !~ /\*\//
        else if (text ~ /[^ \t]/)
            n++
    }
    close(sources)
    return n
}

function with_comma(n) { # 38200 as 38,200
    return sprintf("%d,%03d", n / 1000, n % 1000)
}

/^\| `[a-z\/_.]*` \| [0-9]+ \|/ {
    split($0, cell, " *[|] *")
    path = cell[2]
    gsub(/`/, "", path)
    lines = count_lines(path)
    if (!fill && lines != cell[3])
        print path " has " lines " lines, the README says " cell[3]
    sub(/\| [0-9]+ \|/, "| " lines " |")
}
/^`src` has about [0-9]+,[0-9]+ lines of code/ {
    said = $4
    sub(/,/, "", said)
    code = count_code()
    if (!fill && (code < 0.95 * said || code > 1.05 * said))
        print "src has " code " lines of code, the README says " said
    sub(/[0-9]+,[0-9]+/, with_comma(100 * int(code / 100 + 0.5)))
}
fill { print }
