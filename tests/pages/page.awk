# page.awk - takes a page apart: the commands of its blocks and marks, the lines that they must print, its paragraphs.
#
#     awk -f tests/pages/page.awk tutorials/01-first-run.md >PARTS
#
# A page                                          gives a line for each part, in the page's order
#
#     ## Change it                                    head ## Change it
#     <!-- numbers: echo 3 tasks -->                  numbers 1:1 echo 3 tasks
#     The step has 3 tasks.                           text 1:1  The step has 3 tasks.
#
#     head TITLE            a heading
#     text N PARAGRAPH      paragraph N in one line; the items of a numbered list are paragraphs that share an N.  N is
#                           S:P, paragraph P of the page, in its section S
#     run COMMAND           to be run: of a block, or of a mark "test"
#     shown COMMAND         a command to be run that a block shows
#     say LINE              a line that a block shows as printed
#     about LINE            a line that a block below a mark "measured" shows as printed: its numbers need not agree
#     edit                  a mark "test" or "by hand": something that the text tells to change is taken care of
#     numbers N COMMAND     marks that belong to paragraph N, the one behind them; walk.sh says what they mean.  A mark
#                           "section" has S: for N, and belongs to all paragraphs of section S
#     measured N            a table whose first line is that of a mark "tables" has one too
#     unknown KIND          a mark of no such kind.  (Of "curves", which gallery.sh fills, nothing is printed.)
#
# Its patterns are tried from top to bottom, and each that knows what a line is ends with `next`.

function end_paragraph() {
    if (text != "")
        print "text " section ":" paragraph " " text
    text = ""
}

# ---- commands and marks, which may go on in the next line ------------------------------------------------------------

function begin_mark() { # its line is <!-- KIND: WORDS
    end_paragraph()
    kind = line
    sub(/: .*/, "", kind)
    sub(/^<!-- /, "", kind)
    sub(/^<!-- [a-z ]*: /, "", line)
    gathering = 1
}

function begin_command() {
    kind = "block"
    gathering = 1
}

function end_mark() {
    if (kind == "test" || kind == "by hand")
        print "edit"
    if (kind == "test")
        print "run " line
    if (kind == "measured")
        measured = "next"
    if (kind == "tables")
        is_measured[line] = 1
    if (kind == "numbers")
        print "numbers " section ":" (paragraph + 1) " " line
    if (kind == "section")
        print "numbers " section ": " line
    if (kind !~ /^(test|by hand|measured|numbers|section|tables|curves)$/)
        print "unknown " kind
}

function end_command() {
    sub(/    *[^ ].*$/, "", line) # a remark beside the command
    sub(/ +#.*/, "", line)
    print "run " line
    print "shown " line
}

function gather() { # one more line of a command or mark
    if (sub(/\\$/, "", line)) {
        so_far = line
        return
    }
    if (kind != "block" && line !~ /-->$/) {
        so_far = line " "
        return
    }
    gathering = 0
    so_far = ""
    sub(/ *-->$/, "", line)
    if (kind == "block")
        end_command()
    else
        end_mark()
}

# ---- the lines of a page ---------------------------------------------------------------------------------------------

/^```/ { # pictures, what is typed into gdb, sample text
    end_paragraph()
    fenced = !fenced
    next
}
fenced { next }

{
    line = $0
    sub(/^ +/, "", line)
    if (gathering)
        line = so_far line
}
!gathering && /^<!-- [a-z ]*: / { begin_mark() }
!gathering && text == "" && /^ +(\.\/yard|YARD_[A-Z_]*=1|make|python3 tutorials)/ { begin_command() }
!gathering && text == "" && /^ +(cmp|cat|grep |head -n|sed|rm -f)/ { begin_command() }
gathering {
    gather()
    next
}

# `measured` is "next" between a mark and what it belongs to, and "block" from there on, where that is a block.
/^    / && text == "" {
    if (measured != "")
        measured = "block"
    if (!/^ *\.\.\.$/)
        print (measured == "" ? "say " : "about ") $0
    next
}
/^#/ {
    end_paragraph()
    section++
    print "head " $0
    next
}
/^ *$/ {
    end_paragraph()
    next
}
text == "" {
    paragraph++
    if (measured == "next" || $0 in is_measured)
        print "measured " section ":" paragraph
    measured = ""
}
/^[0-9]+\. / { end_paragraph() } # the next item
{ text = text " " $0 }

END { end_paragraph() }
