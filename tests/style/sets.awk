# sets.awk - which functions of a script set variables for other code, and do not say so?
#
#     awk -f tests/style/sets.awk SCRIPT...
#
# A variable of sh belongs to the whole script.  So a function that sets one for others names it, in the line of its
# head or in a comment right above: "sets: code, seconds".  A complaint is printed for a variable that a function sets,
# does not name, and that other code of the same file uses: code that never sets it, or that calls the function.
#
# A script                                         gives
#
#     look() { # FOLDER: sets: files                   script.sh: look() sets name, which the script uses
#         files=$(ls "$1")
#         name=$1
#     }
#     name=letters
#     look /tmp && echo "$name: $files"
#
# What two functions use for themselves, where neither calls the other, may have one name.  Calls of calls are not
# followed.  What a loop reads behind `|` is not looked at, since it runs in a shell of its own.  So does a function
# whose body stands in ( and ): it sets nothing for others.

FNR == 1 {
    report() # on the script before
    script = FILENAME
    part = "" # the function that a line is in; "" is the script itself
    above = ""
    split("", parts)
    split("", sets)
    split("", reads)
    split("", says)
    split("", uses)
    split("", calls)
}
{
    text = $0
    sub(/^(#|.*[ \t]# ).*/, "", text)
}
/^[a-z_0-9]+\(\) [{(]/ {
    part = $1
    sub(/\(\)/, "", part)
    has_own_shell = $2 == "("
    n_functions++
    note_said(above $0)
    sub(/^[a-z_0-9]+\(\) /, "", text)
}
{
    parts[part] = 1
    if (!has_own_shell)
        note_set(text)
    note_used(text)
    above = /^#/ ? $0 : ""
}
/^[})]/ {
    part = ""
    has_own_shell = 0
}
END {
    report()
    if (n_functions < 100)
        print "only " n_functions + 0 " functions were found"
}

function note_said(comment,   n, i, words) {
    if (!match(comment, /sets: [a-zA-Z_0-9, ]+/))
        return
    n = split(substr(comment, RSTART + 6, RLENGTH - 6), words, /[, ]+/)
    for (i = 1; i <= n; i++)
        says[part, words[i]] = 1
}

function note_set(text,   n, i, words, is_of_pipe) { # NAME=..., for NAME in ..., read -r NAME NAME
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) {
        if (words[i] ~ /^[a-z_][a-z_0-9]*=/ && (i == 1 || words[i - 1] ~ /^(&&|\|\||then|else|do|\{)$|[;)]$|^[a-z_]+=/))
            sets[part, substr(words[i], 1, index(words[i], "=") - 1)] = 1
        if (words[i - 1] == "for" && words[i + 1] == "in")
            sets[part, words[i]] = 1
    }
    is_of_pipe = text ~ /\| *(while|\{).* read -r /
    if (!sub(/^(.* )?read -r /, "", text))
        return
    sub(/ *[;<|].*/, "", text)
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) {
        reads[part, words[i]] = 1
        if (!is_of_pipe)
            sets[part, words[i]] = 1
    }
}

function note_used(text,   name) { # $NAME and ${NAME; any other word may be a call
    while (match(text, /[a-zA-Z_][a-zA-Z_0-9]*/)) {
        name = substr(text, RSTART, RLENGTH)
        if (RSTART > 1 && substr(text, RSTART - 1, 1) ~ /[${]/)
            uses[part, name] = 1
        else
            calls[part, name] = 1
        text = substr(text, RSTART + RLENGTH)
    }
}

function report(   key, pair, other) { # the complaints about a script
    for (key in sets) {
        split(key, pair, SUBSEP)
        for (other in parts)
            if (pair[1] != "" && other != pair[1] && !(key in says) && is_reached(pair[1], pair[2], other))
                print script ": " pair[1] "() sets " pair[2] ", which " (other ? other "()" : "the script") " uses"
    }
}

function is_reached(function_name, name, other) { # does `other` use the variable as that function has set it?
    if (!((other, name) in uses))
        return 0
    if ((other, function_name) in calls)
        return 1
    return !((other, name) in sets) && !((other, name) in reads)
}
