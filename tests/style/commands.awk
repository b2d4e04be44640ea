# commands.awk - which commands do shell scripts call, and which functions do they have?
#
#     awk -f tests/style/commands.awk SCRIPT...
#
# A script x.sh                                    gives
#
#     show() {                                         function x.sh show
#         sort "$1" | head -n 1                        call x.sh sort
#     }                                                call x.sh head
#     if [ -f log ]; then # is it here?                call x.sh [
#         env LC_ALL=C show "at $(ls log*)"            call x.sh env
#     fi                                               call x.sh show
#                                                      call x.sh ls
#
# A script's text goes through these steps, which are functions below.  A "@" stands for what a step took out.
#
#     as it is written              [ -z "$x" ] || show "at $(ls 'log'*)" 2>&1 # a remark
#     hide_quoted_and_comments      [ -z "$x" ] || show "at $(ls @*)" 2>&1
#     take_out_nested               [ -z @ ] || show @ 2>&1             and below it a new line: ls @*
#     hide_redirections             [ -z @ ] || show @
#     one command a line            [ -z @ ]
#                                   show @
#                                   ls @*
#
# At last print_command() finds the word of each line that is called.  A word is printed if it is written out:
# "$program" is not.  What stands in '...', which eval and graders run, is not seen, nor are here-documents.  The steps
# know no more of the shell than this project's scripts need: what misleads them gives words that no page promises, so
# that programs.sh complains.

# ---- lines -----------------------------------------------------------------------------------------------------------

FNR == 1 {
    print_commands() # of the script before
    script = FILENAME
    text = ""
    terminator = ""
}
terminator != "" { # inside of a here-document
    if ($0 == terminator)
        terminator = ""
    next
}
!/^ *#/ && match($0, /<<['\\]?[A-Z_]+/) { # the word is the last line of the here-document that begins
    terminator = substr($0, RSTART, RLENGTH)
    gsub(/[^A-Z_]/, "", terminator)
}
{ text = text $0 "\n" }
END { print_commands() }

# ---- steps -----------------------------------------------------------------------------------------------------------

function print_commands(   n, line, i) {
    hide_quoted_and_comments()
    print_functions()
    take_out_nested()
    hide_redirections()
    gsub(/;;/, "\n", text)
    hide_patterns()
    gsub(/[;|&()]/, "\n", text) # what stands between commands
    n = split(text, line, "\n")
    for (i = 1; i <= n; i++)
        print_command(line[i])
}

# Of                show 'the log' \"x\" "it's"    # a remark
# remains           show @ @x@ "it's"
function hide_quoted_and_comments(   kept, found) {
    kept = ""
    while (match(text, /#[^\n]*|'[^']*'|[\\]./)) {
        kept = kept substr(text, 1, RSTART - 1)
        found = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (found == "\\\n")
            kept = kept " " # the command goes on in the next line
        else if (found ~ /^\\/)
            kept = kept "@"
        else if (found ~ /^'/ && !is_in_string(kept))
            kept = kept "@"
        else if (found ~ /^#/ && !is_in_string(kept) && kept ~ /(^|[ \t\n])$/)
            continue
        else { # an apostrophe, or the # of $#
            kept = kept substr(found, 1, 1)
            text = substr(found, 2) text
        }
    }
    text = kept text
}

# Does a line that begins like this end within "...", and not within a $(...) of that?
function is_in_string(line) {
    sub(/.*\n/, "", line)
    gsub(/\$\([^()"]*\)/, "@", line)
    gsub(/"[^"(]*"/, "@", line)
    if (line ~ /\$\([^"]*$/)
        return 0
    return gsub(/"/, "", line) % 2 == 1
}

function print_functions(   name) { # NAME for each "NAME() {" or "NAME() (", which becomes the end of a line
    while (match(text, /[A-Za-z_][A-Za-z_0-9]*\(\) [{(]/)) {
        name = substr(text, RSTART, RLENGTH - 4)
        print "function", script, name
        text = substr(text, 1, RSTART - 1) "\n" substr(text, RSTART + RLENGTH)
    }
}

function take_out() { # what match() found last
    text = substr(text, 1, RSTART - 1) "@" substr(text, RSTART + RLENGTH)
}

# "...", ${...}, $((...)) and $(...) may hold one another, so the innermost is taken out first.
function take_out_nested(   before) {
    do {
        before = text
        take_out_variables()
        take_out_substitutions()
        take_out_strings()
    } while (text != before)
}

function take_out_variables() { # ${NAME} and ${NAME:-word}
    while (match(text, /\$\{[^{}("]*\}/))
        take_out()
}

function take_out_substitutions(   command) { # $(command), which becomes a new line; then $((sum)), which does not
    while (match(text, /\$\([^()"]*\)/)) {
        command = substr(text, RSTART + 2, RLENGTH - 3)
        take_out()
        text = text command "\n"
    }
    while (match(text, /\$\(\(([^()"]|\([^()"]*\))*\)\)/))
        take_out()
}

# "words" with no $( in them.  If one has, then the next " may begin a string within the brackets: that one is taken
# out, and the rest has to wait for the brackets.
function take_out_strings(   waiting) {
    waiting = ""
    while (match(text, /"[^"]*"/)) {
        if (index(substr(text, RSTART, RLENGTH), "$(")) {
            waiting = waiting substr(text, 1, RSTART)
            text = substr(text, RSTART + 1)
        } else {
            take_out()
            if (waiting != "")
                break
        }
    }
    text = waiting text
}

function hide_redirections() { # 2>&1 and <file
    gsub(/[0-9]*[<>]+[&|]?[^ \t\n;|&()]*/, " ", text)
}

# The pattern of a case is what stands in front of a ) that has no ( in its line.
function hide_patterns(   commands) {
    while (match(text, /\([^()]*\)/)) {
        commands = substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, 1, RSTART - 1) "\n" commands "\n" substr(text, RSTART + RLENGTH)
    }
    gsub(/[^\n]*\)/, "", text)
}

# ---- commands --------------------------------------------------------------------------------------------------------

function is_assignment(word) {
    return word ~ /^[A-Za-z_][A-Za-z_0-9]*=/
}

function print_command(line,   n, word, i) {
    n = split(line, word, " ")
    i = 1
    while (i <= n && (is_assignment(word[i]) || word[i] ~ /^(if|then|else|elif|do|while|until|!|\{)$/))
        i++ # a command follows
    if (word[i] ~ /^(fi|done|esac|for|case|\})$/)
        return # none does
    if (word[i] !~ /^[A-Za-z0-9_.\/+:\[-]+$/)
        return # it is not written out
    print "call", script, word[i]
    if (word[i] ~ /^(env|exec|eval|nohup|setsid|sudo|timeout|xargs)$/)
        print_command_behind(word, n, i + 1)
}

# Such a word is followed by options, with a name behind -u, then by another command.
function print_command_behind(word, n, i,   rest) {
    while (i <= n && (word[i] ~ /^[-0-9]/ || is_assignment(word[i]) || word[i - 1] == "-u"))
        i++
    rest = ""
    for (; i <= n; i++)
        rest = rest " " word[i]
    print_command(rest)
}
