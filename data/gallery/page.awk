# page.awk - the gallery as a page: what `entries` says, below each entry's picture the table of its rows.
#
#     awk -f page.awk ROWS entries >index.html
#
# ROWS are lines of gallery.sh's measure_all, with tabs between; the one
#
#     gpipe   step   period   (m+p-1)*(F+D+W)   33   p=4   ok 33 33
#
# becomes a row "step | (m+p-1)*(F+D+W) | 33 | 33 | period | p=4".  Entries without a row are left out.

BEGIN { FS = "\t" }

function html(s) {
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    return s
}

function code(s) {
    return "<code>" html(s) "</code>"
}

function show_head() {
    print "<!DOCTYPE html><meta charset=utf-8><title>Trainyard: a gallery of papers</title>"
    print "<style>body { font: 16px/1.5 sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em }"
    print "img { max-width: 100% } td, th { text-align: left; padding: 0 1em 0 0; vertical-align: top }"
    print ".wrong { background: #fcc }</style><h1>A gallery of papers</h1>"
    print "<p>A picture is a simulated step, and leads to its list. Below it: the formula, the number it gives,"
    print "and the number simulated. A row whose numbers disagree is red.</p>"
}

function show_row(row,   part, verdict, class, with) {
    split(row, part, "\t")
    split(part[7], verdict, " ") # ok or no, the formula's number, the simulated one
    class = verdict[1] == "ok" ? "" : " class=wrong"
    with = part[6] == "" ? "" : code(part[6])
    print "<tr" class "><td>" html(part[2]) "<td>" code(part[4]) "<td>" verdict[2] "<td>" verdict[3] \
        "<td>" code(part[3]) "<td>" with "</tr>"
}

function show_rows(   i) { # of the entry `name`
    print "<p><a href=\"" name ".txt\"><img src=\"" name ".png\" alt=\"" name "\"></a></p>"
    print "<table><tr><th><th>formula<th>gives<th>simulated<th>read from the simulation<th>with</tr>"
    for (i = 1; i <= count[name]; i++)
        show_row(row[name, i])
    print "</table>"
}

function add_text(line,   n, part, i) { # to the paragraph; what stands between two ` is code
    n = split(html(line), part, "`")
    for (i = 1; i <= n; i++)
        text = text (i % 2 ? part[i] : "<code>" part[i] "</code>")
    text = text "\n"
}

function end_paragraph() {
    if (text != "")
        print "<p>" text "</p>"
    text = ""
}

FNR == NR { # ROWS
    count[$1]++
    row[$1, count[$1]] = $0
    next
}
FNR == 1 { show_head() }
/^entry / {
    name = $0
    sub(/^entry /, "", name)
    title = name
    sub(/ .*/, "", name)
    sub(/^[^ ]* /, "", title)
    if (count[name])
        print "<h2 id=\"" name "\">" html(title) "</h2>"
    next
}
name == "" || !count[name] { next }
/^  make/ {
    end_paragraph()
    show_rows()
    next
}
/^  / { next }
/^$/ {
    end_paragraph()
    next
}
{ add_text($0) }
