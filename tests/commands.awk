# commands.awk - "FILE LINE WORD" for each word of shell scripts that stands where a command does and is written out, and
# "FILE 0 NAME" for each function.  It does not see commands in quotes, which eval and graders run.
#
# context[d] says where we are, d deep: "c" among commands, "d" in double quotes, "p" in ${...}, "a" in $((...)).
# Within "c", first[d] is 1 where a command may begin, and 2 behind a word like `env`, where it may after some options;
# subject[d] is set between `case` and `in`, pattern[d] where a pattern of that case begins.  w is the word so far.

function ends_with_option() { # of env, timeout and the like: w is one
    if (takes_one) { takes_one = 0; return 1 }
    takes_one = w == "-u"
    return w ~ /^[-0-9]/ || w ~ /^[A-Za-z_][A-Za-z_0-9]*=/
}

function end_word() {
    if (w == "") return
    if (heredoc == 1) { heredoc = 2; terminator = w; gsub(/[\\"']/, "", terminator) }
    else if (redirected) redirected = 0
    else if (pattern[d]) { if (w == "esac") pattern[d] = first[d] = 0 }
    else if (subject[d]) { if (w == "in") { subject[d] = 0; pattern[d] = 1 } }
    else if (first[d] == 2 && ends_with_option()) ;
    else if (first[d] && w !~ /^[A-Za-z_][A-Za-z_0-9]*=/ && w !~ /^(if|then|else|elif|do|while|until|!|\{)$/) {
        first[d] = 0
        if (w == "case") subject[d] = 1
        else if (w !~ /^(fi|done|esac|\}|for)$/ && w ~ /^[A-Za-z0-9_.\/+:\[-]+$/) {
            print FILENAME, FNR, w
            if (w ~ /^(env|exec|eval|nohup|setsid|sudo|timeout|xargs)$/) first[d] = 2
        }
    }
    w = ""
}

function enter(kind) { d++; context[d] = kind; first[d] = 1; pattern[d] = subject[d] = 0; outer[d] = w; w = "" }
function leave() { if (context[d] == "c") end_word(); w = outer[d] "$"; d-- } # a word with something in it
function next_command() { end_word(); if (!pattern[d]) first[d] = 1 }

FNR == 1 { d = 0; context[0] = "c"; first[0] = 1; pattern[0] = subject[0] = quoted = heredoc = redirected = 0; w = "" }
heredoc == 3 { if ($0 == terminator) heredoc = 0; next }
{
    continued = 0
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1); two = substr($0, i, 2); three = substr($0, i, 3); kind = context[d]
        if (quoted) { quoted = c != "'"; if (heredoc == 1 && quoted) w = w c }
        else if (c == "\\") { continued = i == length($0); if (!continued) w = w "\\"; i++ }
        else if (c == "'" && kind != "d") { quoted = 1; w = w "'" }
        else if (c == "\"" && kind == "d") leave()
        else if (c == "\"") enter("d")
        else if (three == "$((") { enter("a"); depth[d] = 2; i += 2 }
        else if (two == "$(") { enter("c"); i++ }
        else if (two == "${") { enter("p"); i++ }
        else if (kind == "p") { if (c == "}") leave() }
        else if (kind == "a") { depth[d] += (c == "(") - (c == ")"); if (!depth[d]) leave() }
        else if (kind == "d") w = w "$"
        else if (c == "#" && w == "") break
        else if (c == " " || c == "\t") end_word()
        else if (c == "(" && w != "" && first[d]) { print FILENAME, 0, w; w = ""; i++ } # name()
        else if (c == "(") { if (!pattern[d]) enter("c") }
        else if (c == ")" && pattern[d]) { w = ""; pattern[d] = 0; first[d] = 1 }
        else if (c == ")") leave()
        else if (two == ";;") { end_word(); pattern[d] = 1; i++ }
        else if (c == "&" && redirected) ; # >&2
        else if (c ~ /[;|&]/) next_command()
        else if (c ~ /[<>]/) {
            if (w ~ /^[0-9]$/) w = ""
            end_word()
            if (two == "<<") heredoc = 1; else redirected = 1
            i += two == "<<" || two == ">>" }
        else w = w c
    }
    if (quoted || continued || context[d] != "c") next
    next_command()
    redirected = 0
    if (heredoc == 2) heredoc = 3
}
