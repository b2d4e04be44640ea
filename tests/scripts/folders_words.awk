# folders_words.awk - the words that each folder of src adds to command lines.
#
#     awk -f folders_words.awk src/*/*/*.c      "plot command plot", "pace option pace"
#
# A folder's struct module names its command, or table of commands, and its table of options (module.h).  The tables may
# stand below that struct's file or in another file of the folder, which is why all files are read:
#
#     static const struct option of_runs[] = {         a table that only this file knows, or
#         {.name = "view",                             const struct subcommand trace_command = {  for other files too
#     ...
#     const struct module module_view = {
#         .commands = &command,
#         .options = of_runs,
#
# By the name of a module:
#
#     file[name]         the file that registers it
#     options[name]      the name in C of its table of options, and
#     commands[name]     that of its command, or table of commands; not there: it has none
#
# rows[FILE, TABLE] has the .name of each row of a table, with a space before each; if TABLE is not static, it is in
# rows[FOLDER, TABLE].

function folder_of(path) {
    sub(/\/[^\/]*$/, "", path)
    return path
}

# Of a line `    .options = of_runs,`, `    .commands = &own,` or `    {.name = "view",`.
function value_of(line, field) {
    sub(".*\\." field " = [\"&]?", "", line)
    sub(/[",].*/, "", line)
    return line
}

/^const struct module module_/ {
    name = $4
    sub(/^module_/, "", name)
    file[name] = FILENAME
    sorted[++n] = name
}
name != "" && /\.(options|commands) *=/ && !/^    \.(options|commands) = [^ ]+,/ {
    print FILENAME ", line " FNR ": this line must be like `    .options = of_runs,`" >"/dev/stderr"
    wrong = 1
    exit 2
}
name != "" && /\.options = / { options[name] = value_of($0, "options") }
name != "" && /\.commands = / { commands[name] = value_of($0, "commands") }
/};$/ { name = "" }

/^(static )?const struct (option|subcommand) .* = [{]$/ {
    table = /^static/ ? $5 : $4
    sub(/\[\]$/, "", table)
    place = /^static/ ? FILENAME : folder_of(FILENAME)
}
table != "" && /\.name = "/ { rows[place, table] = rows[place, table] " " value_of($0, "name") }
/};$/ { table = "" }

function print_rows(name, kind, table,   i, n_words, word, place) { # the table is in the module's file, or its folder
    place = (file[name], table) in rows ? file[name] : folder_of(file[name])
    if (!((place, table) in rows)) {
        print file[name] ": no rows of " table ", its table of " kind "s, are found in " place >"/dev/stderr"
        exit 2
    }
    n_words = split(rows[place, table], word, " ")
    for (i = 1; i <= n_words; i++)
        print name, kind, word[i]
}

END {
    if (wrong)
        exit 2
    for (i = 1; i <= n; i++) {
        if (sorted[i] in options)
            print_rows(sorted[i], "option", options[sorted[i]])
        if (sorted[i] in commands)
            print_rows(sorted[i], "command", commands[sorted[i]])
    }
}
