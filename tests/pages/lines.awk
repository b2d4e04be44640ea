# lines.awk - which lines of a page's blocks were not printed?
#
#     awk -f tests/pages/lines.awk file=exact EXACT SOURCES file=loose LOOSE file=said SAID
#
# EXACT and SOURCES are lines that count word for word; LOOSE are lines whose losses, times and rates differ from run
# to run; SAID is what the page shows, as said.awk prints it.  With "step 2: 8.000 ms, 24 tasks" in EXACT and "step 2/4
# loss 5.43" in LOOSE
#
#     say     step 2/4  loss 5.51                     is there: its loss is a fraction
#     sure     step 2: 8.001 ms, ...                  gives "not printed:      step 2: 8.001 ms, ..."
#     about     step 2/4  lo...                       is there: "..." at the end stands for the rest
#
# Spaces count as one.  A line that is "..." alone is not among SAID: it stands for lines that are left out.

function squeeze(s) {
    gsub(/[ \t]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}

function varies(number, before, after) { # from run to run, by what stands around it?
    if (before ~ /step (#.)?$/) # "step 3", and the 4 of "step 3/4"
        return 1
    if (after ~ /^ of [0-9]+ tasks overran/)
        return 1
    if (number ~ /[.][0-9]/)
        return after !~ /^ [KMG]iB/
    return after ~ /^ ([num]?s|%|[KMG]B.s|tok|GFLOP)/
}

function loosen(rest, all,   kept, number) { # with "#" for each number that varies, or for all
    while (match(rest, /[-+]?[0-9][0-9.]*(e[-+][0-9]+)?/)) {
        number = substr(rest, RSTART, RLENGTH)
        kept = kept substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (all || varies(number, kept, rest))
            number = "#"
        kept = kept number
    }
    return kept rest
}

function is_among(s, lines, n, whole,   i) { # whole: a line is s; else it begins with s
    for (i = 1; i <= n; i++) {
        if (whole && lines[i] == s)
            return 1
        if (!whole && index(lines[i], s) == 1)
            return 1
    }
    return 0
}

function was_printed(kind, line,   whole) {
    whole = !sub(/ ?\.\.\.$/, "", line)
    if (is_among(line, exact, n_exact, whole))
        return 1
    if (kind == "sure")
        return 0
    if (kind == "about")
        return is_among(loosen(line, 1), rough, n_loose, whole)
    return is_among(loosen(line, 0), loose, n_loose, whole)
}

file == "exact" { exact[++n_exact] = squeeze($0) }
file == "loose" {
    n_loose++
    loose[n_loose] = loosen(squeeze($0), 0)
    rough[n_loose] = loosen(squeeze($0), 1)
}
file == "said" {
    kind = $1
    sub(/^[a-z]+/, "")
    if (!was_printed(kind, squeeze($0)))
        print "not printed: " $0
}
