# commands.awk - which commands do shell scripts call, and which functions do they have?
#
#     awk -f tests/style/commands.awk SCRIPT...
#
# Of a script x.sh with the lines                  it prints "FILE LINE WORD", and for a function "FILE 0 NAME"
#
#     show() { sort "$1" | head -n 1; }                x.sh 0 show
#     if [ -f log ]; then                              x.sh 1 sort
#         env LC_ALL=C show "$(ls log*)"               x.sh 1 head
#     fi                                               x.sh 2 [
#                                                      x.sh 3 env
#                                                      x.sh 3 show
#                                                      x.sh 3 ls
#
# A word counts where the shell expects a command, if it is written out: "$program" is not.  What stands in single
# quotes, which eval and graders run, is not seen, nor are here-documents.
#
# Characters are read one by one.  Quotes and brackets may hold one another, so there is a stack of levels.  Of line 3:
#
#     read so far                       levels                         the last level expects
#
#     env                               commands                       options       env is printed
#     env LC_ALL=C                      commands                       options
#     env LC_ALL=C show                 commands                       arguments     show is printed
#     env LC_ALL=C show "               commands, quotes
#     env LC_ALL=C show "$(             commands, quotes, commands     a command
#     env LC_ALL=C show "$(ls           commands, quotes, commands     arguments     ls is printed
#     env LC_ALL=C show "$(ls log*)     commands, quotes
#     env LC_ALL=C show "$(ls log*)"    commands                       arguments
#
# A word is printed at the blank or sign that ends it.  The stack is `depth` high:
#
#     context[depth]     "commands", "quotes" for "...", "braces" for ${...}, "sum" for $((...))
#     before[depth]      the word in which this level began: a"b" is one word
#
# A level of commands also knows what is expected:
#
#     expected[depth]    "command"; "options" behind a word such as env, which options and NAME=VALUE may follow before
#                        the command does; "" where words are arguments
#     subject[depth]     between `case` and `in`
#     pattern[depth]     where a pattern of a case, or esac, is expected
#
# Besides there are, whatever the depth,
#
#     word               as far as it has been read; "$" stands for what is not written out
#     quoted             inside of '...'
#     redirected         the next word is a file, as behind >
#     heredoc            "<<" was read: its end is "named" next; is "waiting" for the line's end; "inside"
#     terminator         the word that ends it

function push(kind) {
    depth++
    context[depth] = kind
    expected[depth] = "command"
    pattern[depth] = 0
    subject[depth] = 0
    before[depth] = word
    word = ""
}

function pop() {
    if (context[depth] == "commands")
        end_word()
    word = before[depth] "$"
    depth--
}

# ---- words ----------------------------------------------------------------------------------------------------------

function is_assignment() {
    return word ~ /^[A-Za-z_][A-Za-z_0-9]*=/
}

function is_option() { # of env, timeout and the like, with the word that belongs to -u
    if (has_argument) {
        has_argument = 0
        return 1
    }
    has_argument = word == "-u"
    return word ~ /^[-0-9]/ || is_assignment()
}

function end_command_word() { # where a command is expected
    if (is_assignment() || word ~ /^(if|then|else|elif|do|while|until|!|\{)$/)
        return # it still is
    expected[depth] = ""
    if (word == "case") {
        subject[depth] = 1
        return
    }
    if (word ~ /^(fi|done|esac|\}|for)$/ || word !~ /^[A-Za-z0-9_.\/+:\[-]+$/)
        return
    print FILENAME, FNR, word
    if (word ~ /^(env|exec|eval|nohup|setsid|sudo|timeout|xargs)$/)
        expected[depth] = "options"
}

function use_word() {
    if (heredoc == "named") {
        heredoc = "waiting"
        terminator = word
        gsub(/[\\"']/, "", terminator)
    } else if (redirected) {
        redirected = 0
    } else if (pattern[depth]) {
        if (word == "esac") {
            pattern[depth] = 0
            expected[depth] = ""
        }
    } else if (subject[depth]) {
        if (word == "in") {
            subject[depth] = 0
            pattern[depth] = 1
        }
    } else if (expected[depth] == "options") {
        if (!is_option())
            end_command_word()
    } else if (expected[depth] == "command") {
        end_command_word()
    }
}

function end_word() {
    if (word != "")
        use_word()
    word = ""
}

function end_command() {
    end_word()
    if (!pattern[depth])
        expected[depth] = "command"
}

# ---- characters; `at` is where the line is read, and goes on by one behind each -------------------------------------

function read_in_single_quotes(c) {
    quoted = c != "'"
    if (heredoc == "named" && quoted)
        word = word c
}

function read_backslash() { # and what it protects
    continued = at == length($0)
    if (!continued)
        word = word "\\"
    at++
}

function read_double_quote() {
    if (context[depth] == "quotes")
        pop()
    else
        push("quotes")
}

function read_dollar(rest) { # what begins with it; returns whether there is anything
    if (substr(rest, 1, 3) == "$((") {
        push("sum")
        brackets[depth] = 2
        at += 2
        return 1
    }
    if (substr(rest, 1, 2) == "$(") {
        push("commands")
        at++
        return 1
    }
    if (substr(rest, 1, 2) == "${") {
        push("braces")
        at++
        return 1
    }
    return 0
}

function read_in_sum(c) {
    if (c == "(")
        brackets[depth]++
    if (c == ")")
        brackets[depth]--
    if (brackets[depth] == 0)
        pop()
}

function read_open_bracket() {
    if (word != "" && expected[depth] != "") { # of NAME()
        print FILENAME, 0, word
        word = ""
        at++
    } else if (!pattern[depth])
        push("commands")
}

function read_close_bracket() {
    if (!pattern[depth]) {
        pop()
        return
    }
    word = ""
    pattern[depth] = 0
    expected[depth] = "command"
}

function read_redirection(rest) {
    if (word ~ /^[0-9]$/)
        word = "" # the descriptor
    end_word()
    if (substr(rest, 1, 2) == "<<")
        heredoc = "named"
    else
        redirected = 1
    if (rest ~ /^(<<|>>)/)
        at++
}

function read_in_commands(c, rest) {
    if (c == "#" && word == "")
        at = length($0) # a comment
    else if (c == " " || c == "\t")
        end_word()
    else if (c == "(")
        read_open_bracket()
    else if (c == ")")
        read_close_bracket()
    else if (rest ~ /^;;/) {
        end_word()
        pattern[depth] = 1
        at++
    } else if (c == "&" && redirected)
        return # as in >&2
    else if (c ~ /[;|&]/)
        end_command()
    else if (c ~ /[<>]/)
        read_redirection(rest)
    else
        word = word c
}

function read_char(rest,   c) { # the first of the rest of the line
    c = substr(rest, 1, 1)
    if (quoted)
        read_in_single_quotes(c)
    else if (c == "\\")
        read_backslash()
    else if (c == "'" && context[depth] != "quotes") {
        quoted = 1
        word = word "'"
    } else if (c == "\"")
        read_double_quote()
    else if (read_dollar(rest))
        return
    else if (context[depth] == "sum")
        read_in_sum(c)
    else if (context[depth] == "quotes")
        word = word "$"
    else if (context[depth] == "commands")
        read_in_commands(c, rest)
    else if (c == "}")
        pop()
}

# ---- lines ----------------------------------------------------------------------------------------------------------

FNR == 1 { # a new script
    depth = 0
    context[0] = "commands"
    expected[0] = "command"
    pattern[0] = 0
    subject[0] = 0
    word = ""
    quoted = 0
    redirected = 0
    heredoc = ""
}
heredoc == "inside" {
    if ($0 == terminator)
        heredoc = ""
    next
}
{
    continued = 0
    for (at = 1; at <= length($0); at++)
        read_char(substr($0, at))
    if (quoted || continued || context[depth] != "commands")
        next
    end_command()
    redirected = 0
    if (heredoc == "waiting")
        heredoc = "inside"
}
