# numbers.awk - which numbers of a page's prose and tables come from nowhere?
#
#     awk -v compared=COUNT -f tests/pages/numbers.awk file=shown SHOWN file=exact EXACT file=loose LOOSE \
#         file=proof PROOF file=prose PROSE
#
# PROSE has paragraphs, as page.awk prints them ("text N ..."), and "measured N" for those whose numbers no test can
# see.  A number of paragraph N may come from
#
#     SHOWN      commands and lines of the page's blocks, and the lists that they read
#     PROOF      "N LINE": what the marks of paragraph N printed, or "S: LINE": those of section S
#     EXACT      what `yard plan` printed, if the unit is the same
#     code       of the paragraph itself, that quotes no line of EXACT, LOOSE or PROOF
#
# It may be rounded where it has decimals or a unit: 13.5 is 13.500 and 13.46, and 96 % is 96.2 %.  A count is itself.
# Not looked for are
#
#     whole numbers to 10 without a unit
#     parts of names and formulas      GPT-2, 1F1B, 32-bit, OpenCL 1.2, 12/N; years of papers; links; parts 12 and 14
#     numbers of code, `at least 12.000 ms`, if a command has printed the code; else they are looked for
#
# With "8.004 ms" in EXACT and "1:3 24" in PROOF
#
#     text 1:3  It takes 8 ms.                        is right: 8.004 ms, rounded to the digits that are given
#     text 1:3  All 24 tasks have ended.              is right, since a mark proves it
#     text 1:4  All 24 tasks have ended.              gives "number of no output: 24 in: ...All 24 tasks have ended."
#
# COUNT gets a line "number" for each number that was looked for, and "measured" for one that was not.

# ---- numbers of a text -----------------------------------------------------------------------------------------------

function decimals(word) { # how many digits stand behind the point
    if (!sub(/.*\./, "", word))
        return 0
    return length(word)
}

function unit_before(rest) { # the unit that a text begins with, as it is written there; "" if with none
    if (!match(rest, /^ ?(%|([num]|µ)?s|seconds|minutes|[KMG](iB|B)?|bytes|[KMGT]FLOP|tasks)/))
        return ""
    if (substr(rest, RLENGTH + 1) ~ /^[A-Za-z]/)
        return "" # only the beginning of a word
    return substr(rest, 1, RLENGTH)
}

function is_in_name(before, rest, unit) { # as in GPT-2, 1F1B, 32-bit, 12/N
    return before ~ /[A-Za-z_]-?$/ || (unit == "" && rest ~ /^(-|\/|·)?[A-Za-z_]/)
}

# The numbers of a text: number i is written as words[i], in units[i], and ends at ends[i].  Returns how many there
# are.
function find_numbers(text, words, units, ends,   n, end, rest, before, word, unit) {
    n = 0
    end = 0
    rest = text
    while (match(rest, /[0-9]+(,[0-9][0-9][0-9])*([.][0-9]+)?/)) {
        word = substr(rest, RSTART, RLENGTH)
        before = substr(text, 1, end + RSTART - 1)
        end = end + RSTART - 1 + RLENGTH
        rest = substr(text, end + 1)
        unit = unit_before(rest)
        if (is_in_name(before, rest, unit))
            continue
        sub(/ /, "", unit)
        sub(/µ/, "u", unit)
        n++
        words[n] = word
        units[n] = unit
        ends[n] = end
    }
    return n
}

function value_of(word) { # 1,024 is 1024
    gsub(/,/, "", word)
    return word + 0
}

# ---- numbers that are known ------------------------------------------------------------------------------------------

# Known number i has: known[i], its value; fine[i], its decimals; in_unit[i]; for_paragraph[i], or "" for all of them;
# and strict[i], whether a number of prose must have the same unit.
function collect(text, paragraph, only_units,   n, i, words, units, ends) {
    n = find_numbers(text, words, units, ends)
    for (i = 1; i <= n; i++) {
        if (only_units && units[i] == "")
            continue
        n_known++
        known[n_known] = value_of(words[i])
        fine[n_known] = decimals(words[i])
        in_unit[n_known] = units[i]
        for_paragraph[n_known] = paragraph
        strict[n_known] = only_units
    }
}

function belongs_to(i, paragraph) { # to that one, to its section, or to all
    if (for_paragraph[i] ~ /:$/)
        return index(paragraph, for_paragraph[i]) == 1
    return for_paragraph[i] == "" || for_paragraph[i] == paragraph
}

function units_agree(i, unit) {
    if (in_unit[i] == unit)
        return 1
    return !strict[i] && (in_unit[i] == "" || unit == "")
}

function is_known(word, unit, paragraph,   i, value, off) {
    value = value_of(word)
    off = 0 # a count is itself; what has decimals or a unit may be rounded
    if (decimals(word) > 0 || unit != "")
        off = 0.5 / 10 ^ decimals(word)
    for (i = 1; i <= n_known; i++) {
        if (!belongs_to(i, paragraph))
            continue
        if (!units_agree(i, unit) || fine[i] < decimals(word))
            continue
        if (value - off <= known[i] + 1e-9 && known[i] <= value + off + 1e-9)
            return 1
    }
    return 0
}

# ---- prose -----------------------------------------------------------------------------------------------------------

function is_printed(s,   i) {
    for (i = 1; i <= n_printed; i++)
        if (index(printed[i], s))
            return 1
    return 0
}

# A paragraph without its links and without its code, whose numbers are known then.  Code of several plain words that
# was not printed is left in: it seems to quote output, and its numbers are judged.
function strip(rest, paragraph,   kept, code) {
    gsub(/!?\[[^]]*\]\([^)]*\)/, "", rest)
    while (match(rest, /`[^`]*`/)) {
        code = substr(rest, RSTART + 1, RLENGTH - 2)
        kept = kept substr(rest, 1, RSTART - 1) "`"
        rest = substr(rest, RSTART + RLENGTH)
        gsub(/ +/, " ", code)
        if (code !~ /^[A-Za-z0-9 .,:]* [A-Za-z0-9 .,:]*$/)
            collect(code, paragraph, 0)
        else if (!is_printed(code))
            kept = kept code "`"
    }
    rest = kept rest
    gsub(/(et al\.|OpenCL|OpenCL C|PoCL|PyTorch|Debian) [0-9.]*[0-9](, [0-9.]*[0-9])*/, "", rest)
    gsub(/[Pp]arts? +[0-9]+(, [0-9]+)*( (and|to) [0-9]+)?/, "", rest)
    return rest
}

function judge(text, paragraph,   n, i, words, units, ends) {
    n = find_numbers(text, words, units, ends)
    for (i = 1; i <= n; i++) {
        if (units[i] == "" && words[i] !~ /[.]/ && value_of(words[i]) <= 10)
            continue # small counts are not looked for
        if (measured[paragraph] && units[i] != "tasks") {
            print "measured" >>compared
            continue
        }
        print "number" >>compared
        if (!is_known(words[i], units[i], paragraph))
            print "number of no output: " words[i] " in: ..." around(text, ends[i])
    }
}

function around(text, end,   before) { # 40 characters before that place, and 20 behind it
    before = substr(text, 1, end)
    return substr(before, length(before) - 40) substr(text, end + 1, 20)
}

# ---- the files -------------------------------------------------------------------------------------------------------

file == "shown" { collect($0, "", 0) }
file == "exact" || file == "loose" || file == "proof" {
    gsub(/[ \t]+/, " ")
    printed[++n_printed] = $0
}
file == "exact" { collect($0, "", 1) }
file == "proof" {
    paragraph = $1
    sub(/^[0-9:]+ /, "")
    collect($0, paragraph, 0)
}
file == "prose" && $1 == "measured" { measured[$2] = 1 }
file == "prose" && $1 == "text" {
    paragraph = $2
    sub(/^text [0-9:]+ +([0-9]+\. )?/, "")
    judge(strip($0, paragraph), paragraph)
}
