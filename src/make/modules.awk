# modules.awk - the folders that register themselves (module.h), except those in `without` and those that need them.
#
#     awk -v without='plot view' -v as=table   -f modules.awk FILE.c...      build/modules.c
#     awk -v without='plot view' -v as=folders -f modules.awk FILE.c...      what is left out, "src/tools/plot"
#     awk -v without='plot view' -v as=note    -f modules.awk FILE.c...      which others are left out too, and why
#     awk                        -v as=modules -f modules.awk FILE.c...      their order, and where each one's pass runs
#
# The word "all" leaves out all folders but the trainer's.  FILEs are those that have a line
# `const struct module module_NAME = {`.  An unknown name ends it with exit code 2.
#
# The modules stand in the order of their files, but each one after those that its `.after` names.  A name there that is
# unknown, or a circle, ends it with exit code 2 too.
#
# This program reads C by the shape of lines, and knows no other shapes than these.  A struct module begins with a line
# `const struct module module_NAME = {` and ends with a line `};`.  Between them, .after and .needs each stand on a line
# of their own, with the whole value and the comma behind it: `    .after = "pass predict",`.  Where a line of such a
# struct names one of them in another shape, or the struct has no end, a sentence says so, with exit code 2.  A struct
# that has only a .name may stand on one line.
#
# Each module has a name.  sorted[1] to sorted[n] are the names of all modules.  By name:
#
#     folder[name]       the module's folder
#     after[name]        the names of the modules that it must stand after, with a space between them
#     needs[name]        the names of the modules that it needs, with a space on both sides of each
#     out[name]          there only if the module is left out: the name of the module that it lacks, or "" if
#                        the user asked to leave it out
#
#     file[name]         the file that registers the module
#
# runs_at[FOLDER] is the number of the pass in that folder.

function value_of(line, field) { # of a line `    .runs_at = 60,` or `    .needs = "pass predict",`
    sub(".*\\." field " = \"?", "", line)
    sub(/[",].*/, "", line)
    return line
}

function folder_of(path) {
    sub(/\/[^\/]*$/, "", path)
    return path
}

function refuse(where, what) {
    print where ": " what >"/dev/stderr"
    wrong = 1
    exit 2
}

FNR == 1 && name != "" { refuse(file[name], "module_" name " must end with a line `};`") }
/^const struct module module_/ && !/ = \{$/ && !/ = \{\.name = "[a-z_0-9]+"};$/ {
    refuse(FILENAME ", line " FNR, "this line must end with `= {`, or be all of a struct that has only a .name")
}
name != "" && /\.(after|needs) *=/ && !/^    \.[a-z]+ = .*[^ ],/ {
    refuse(FILENAME ", line " FNR, "a field must stand on a line of its own, as in `    .after = \"pass\",`")
}
/^    \.runs_at = / { runs_at[folder_of(FILENAME)] = value_of($0, "runs_at") + 0 }
/^const struct module module_/ {
    name = $4
    sub(/^module_/, "", name)
    file[name] = FILENAME
    folder[name] = folder_of(FILENAME)
    sorted[++n] = name
}
name != "" && /^    \.(after|needs) = / && !/ = "[a-z ]*",/ {
    refuse(FILENAME ", line " FNR, "the names must be one text, which ends on this line")
}
name != "" && /\.after = "/ { after[name] = value_of($0, "after") }
name != "" && /\.needs = "/ { needs[name] = value_of($0, "needs") }
/^};$/ || /^const struct module module_.*};$/ { name = "" }

function complain(name, what) {
    print folder[name] ": .after = \"" after[name] "\": " what >"/dev/stderr"
    exit 2
}

# Is every module that this one must stand after already in `placed`?
function may_follow(name, placed,   k, n_before, before) {
    n_before = split(after[name], before, " ")
    for (k = 1; k <= n_before; k++) {
        if (!(before[k] in folder))
            complain(name, "no folder registers itself as " before[k])
        if (!(before[k] in placed))
            return 0
    }
    return 1
}

# A module of a circle: one that waits for another again and again must come to it.
function in_circle(by_file, placed,   i, k, n_before, before, name) {
    for (i = n; i >= 1; i--)
        if (!(by_file[i] in placed))
            name = by_file[i]
    for (i = 1; i <= n; i++) {
        n_before = split(after[name], before, " ")
        for (k = 1; before[k] in placed; k++)
            ;
        name = before[k]
    }
    return name
}

# Sorts the modules: each next one is the first, in the order of their files, that may follow those before it.
function sort_modules(   i, k, name, by_file, placed) {
    for (i = 1; i <= n; i++)
        by_file[i] = sorted[i]
    for (k = 1; k <= n; k++) {
        name = ""
        for (i = 1; i <= n && name == ""; i++)
            if (!(by_file[i] in placed) && may_follow(by_file[i], placed))
                name = by_file[i]
        if (name == "")
            break
        placed[name] = 1
        sorted[k] = name
    }
    if (k <= n)
        complain(in_circle(by_file, placed), "this folder and those that it names wait for each other")
}

function is_trainers(name) {
    return folder[name] ~ /^src\/trainer\//
}

function leave_out_all(   i) {
    for (i = 1; i <= n; i++)
        if (!is_trainers(sorted[i]))
            out[sorted[i]] = ""
}

function leave_out_asked(   i, n_words, word) {
    n_words = split(without, word, " ")
    for (i = 1; i <= n_words; i++) {
        if (!(word[i] in folder) || is_trainers(word[i])) {
            print "WITHOUT=" word[i] ": no folder besides the trainer's registers itself by that name" \
                >"/dev/stderr"
            exit 2
        }
        out[word[i]] = ""
    }
}

function find_missing(name,   k, n_needed, needed) { # one that the module needs and that is left out; "": there is none
    n_needed = split(needs[name], needed, " ")
    for (k = 1; k <= n_needed; k++)
        if (needed[k] in out)
            return needed[k]
    return ""
}

# Leaves out the modules that need one that is left out, until there are no more of them.
function leave_out_needing(   i, more, missing) {
    do {
        more = 0
        for (i = 1; i <= n; i++) {
            missing = find_missing(sorted[i])
            if (missing == "" || sorted[i] in out)
                continue
            out[sorted[i]] = missing
            more = 1
        }
    } while (more)
}

function print_table(   i, n_built, names) {
    print "/* Made by src/make/modules.awk from the folders that register themselves. */"
    print "#include \"trainer/base/module.h\"\n"
    for (i = 1; i <= n; i++)
        if (!(sorted[i] in out))
            print "extern const struct module module_" sorted[i] ";"
    print "\nconst struct module *const modules[] = {"
    for (i = 1; i <= n; i++) {
        if (sorted[i] in out) {
            names = names " " sorted[i]
            continue
        }
        print "    &module_" sorted[i] ","
        n_built++
    }
    print "};\nconst size_t n_modules = " n_built ";"
    print "const char left_out[] = \"" names "\";"
}

function print_folders(   i) {
    for (i = 1; i <= n; i++)
        if (sorted[i] in out)
            print folder[sorted[i]]
}

function print_note(   i, note) {
    for (i = 1; i <= n; i++) {
        if (!(sorted[i] in out) || out[sorted[i]] == "")
            continue
        if (note != "")
            note = note "; "
        note = note sorted[i] " goes along, since it needs " out[sorted[i]]
    }
    if (note != "")
        print note
}

function print_modules(   i, name) {
    print "module      pass runs at  stands after"
    for (i = 1; i <= n; i++) {
        name = sorted[i]
        printf "%-10s  %12s  %s\n", name, runs_at[folder[name]] ? runs_at[folder[name]] : "-", after[name]
    }
}

END {
    if (!wrong && name != "")
        refuse(file[name], "module_" name " must end with a line `};`")
    if (wrong)
        exit 2
    sort_modules()
    if (without == "all")
        leave_out_all()
    else
        leave_out_asked()
    leave_out_needing()
    if (as == "table")
        print_table()
    if (as == "folders")
        print_folders()
    if (as == "note")
        print_note()
    if (as == "modules")
        print_modules()
}
