# page.awk - the gallery as a page: what `entries` says, below each entry's picture the table of its rows.
#
#     awk -v title=TITLE -f page.awk kind=row ROWS kind=curve CURVES kind=entry entries >index.html
#
# CURVES are lines of gallery.sh's measure_curves, or none; each entry's are drawn below its rows.  ROWS are lines of
# gallery.sh's measure_all, with tabs between; the one
#
#     gpipe   step   period   (m+p-1)*(F+D+W)   33   p=4   ok 33 33
#
# becomes a row "step | (m+p-1)*(F+D+W) | 33 | 33 | period | p=4".  Entries without a row are left out.

BEGIN {
    FS = "\t"
    split("#06c #c40 #080 #808", color, " ")
}

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
    print "<!DOCTYPE html><meta charset=utf-8><title>Trainyard: " title "</title>"
    print "<style>body { font: 16px/1.5 sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em }"
    print "img { max-width: 100% } td, th { text-align: left; padding: 0 1em 0 0; vertical-align: top }"
    print ".wrong { background: #fcc } svg text { font-size: 13px }</style><h1>" html(title) "</h1>"
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

# ---- curves ----------------------------------------------------------------------------------------------------------

# Both axes are logarithmic: where the link is all one waits for, a curve falls as a straight line; where it costs
# nothing, it is level.  The picture leaves 70 on the left and 30 below for the numbers.

function across(rate) { # GB/s, from 1 to 500
    return 70 + 400 * log(rate) / log(500)
}

function down(ms) {
    return 10 + 250 * log(top / ms) / log(top / bottom)
}

function mark(x, y, text) {
    printf "<text x=%.0f y=%.0f>%s</text>", x, y, html(text)
}

function draw_axes(   ms) {
    printf "<svg width=760 height=300 fill=none stroke-width=2>"
    printf "<path stroke=#888 d=\"M70 10V260H470\"/><g fill=#000>"
    for (ms = bottom; ms <= top * 1.001; ms *= 10)
        mark(2, down(ms) + 4, sprintf("%g ms", ms))
    mark(across(1), 280, "1")
    mark(across(8), 280, "8")
    mark(across(32), 280, "32")
    mark(across(64), 280, "64")
    mark(across(450) - 10, 280, "450 GB/s")
    print "</g>"
}

function draw_curve(c,   i, rate, ms, points, dot) {
    for (i = 1; i <= points_of[name, c]; i++) {
        rate = point_rate[name, c, i]
        ms = point_ms[name, c, i]
        if (ms == "-")
            continue
        if (rate == "yours")
            dot = sprintf("<circle cx=%.1f cy=%.1f r=5 fill=%s />", across(yours + 0), down(ms), color[c])
        else
            points = points sprintf("%.1f,%.1f ", across(rate / 1e9), down(ms))
    }
    print "<polyline stroke=" color[c] " points=\"" points "\"/>" dot
    print "<g fill=" color[c] ">"
    mark(490, 10 + 22 * c, curve_title[name, c])
    print "</g>"
}

function show_curves(   c, i, ms) { # of the entry `name`
    top = 0
    bottom = 1e9
    for (c = 1; c <= curves[name]; c++)
        for (i = 1; i <= points_of[name, c]; i++) {
            ms = point_ms[name, c, i]
            if (ms == "-")
                continue
            if (ms > top)
                top = ms
            if (ms < bottom)
                bottom = ms
        }
    if (!top)
        return
    top = 10 ^ ceiling(log(top) / log(10))
    bottom = 10 ^ -ceiling(-log(bottom) / log(10))
    print "<p>A step, by the rate of the link" (yours == "" ? "" : "; the dots are yours: " yours) "</p>"
    draw_axes()
    for (c = 1; c <= curves[name]; c++)
        draw_curve(c)
    print "</svg>"
}

function ceiling(x) {
    return int(x) + (x > int(x))
}

# ---- texts -----------------------------------------------------------------------------------------------------------

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

kind == "row" {
    count[$1]++
    row[$1, count[$1]] = $0
    next
}
kind == "curve" {
    if (curve_title[$1, curves[$1]] != $2) {
        curves[$1]++
        curve_title[$1, curves[$1]] = $2
    }
    n = ++points_of[$1, curves[$1]]
    point_rate[$1, curves[$1], n] = $3
    point_ms[$1, curves[$1], n] = $4
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
    show_curves()
    next
}
/^  / { next }
/^$/ {
    end_paragraph()
    next
}
{ add_text($0) }
