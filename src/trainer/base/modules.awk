# modules.awk - the folders that register themselves (module.h), except those in `without` and those that need them.
#
#     awk -v without='plot view' -v as=table   -f modules.awk FILE.c...      build/modules.c
#     awk -v without='plot view' -v as=folders -f modules.awk FILE.c...      what is left out, "src/tools/plot"
#     awk -v without='plot view' -v as=note    -f modules.awk FILE.c...      which others are left out too, if any, and why
#
# The word "all" leaves out all folders but the trainer's.  FILEs are those that have a line
# `const struct module module_NAME = {`.  An unknown name ends it with exit code 2.
#
# Of a module of that name it knows folder[name], place[name] and needs[name], names between spaces.  order[1] to
# order[n] are the names.  A name is in out[] if it is left out; out[name] is the one because of which, or "" where that
# was asked for.

function value_of(line, field) { # of a line `    .place = 60,` or `    .needs = "pass predict",`
    sub(".*\\." field " = \"?", "", line)
    sub(/[",].*/, "", line)
    return line
}

/^const struct module module_/ {
    name = $4
    sub(/^module_/, "", name)
    folder[name] = FILENAME
    sub(/\/[^\/]*$/, "", folder[name])
    order[++n] = name
    place[name] = 0
}
name != "" && /\.place = / { place[name] = value_of($0, "place") + 0 }
name != "" && /\.needs = "/ { needs[name] = value_of($0, "needs") }
/};$/ { name = "" }

function sort_by_place(   i, k, moved) { # modules of one place stay in the order of their files
    for (i = 2; i <= n; i++) {
        moved = order[i]
        for (k = i; k > 1 && place[order[k - 1]] > place[moved]; k--)
            order[k] = order[k - 1]
        order[k] = moved
    }
}

function is_trainers(name) {
    return folder[name] ~ /^src\/trainer\//
}

function leave_out_all(   i) {
    for (i = 1; i <= n; i++)
        if (!is_trainers(order[i]))
            out[order[i]] = ""
}

function leave_out_asked(   i, n_words, word) {
    n_words = split(without, word, " ")
    for (i = 1; i <= n_words; i++) {
        if (!(word[i] in folder) || is_trainers(word[i])) {
            print "WITHOUT=" word[i] ": no folder of src/techniques or src/tools registers itself by that name" >"/dev/stderr"
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

function leave_out_needing(   i, more, missing) { # those that need one that is left out, until there are no more of them
    do {
        more = 0
        for (i = 1; i <= n; i++) {
            missing = find_missing(order[i])
            if (missing == "" || order[i] in out)
                continue
            out[order[i]] = missing
            more = 1
        }
    } while (more)
}

function print_table(   i, n_built, names) {
    print "/* Made by src/trainer/base/modules.awk from the folders that register themselves. */"
    print "#include \"trainer/base/module.h\"\n"
    for (i = 1; i <= n; i++)
        if (!(order[i] in out))
            print "extern const struct module module_" order[i] ";"
    print "\nconst struct module *const modules[] = {"
    for (i = 1; i <= n; i++) {
        if (order[i] in out) {
            names = names " " order[i]
            continue
        }
        print "    &module_" order[i] ","
        n_built++
    }
    print "};\nconst size_t n_modules = " n_built ";"
    print "const char left_out[] = \"" names "\";"
}

function print_folders(   i) {
    for (i = 1; i <= n; i++)
        if (order[i] in out)
            print folder[order[i]]
}

function print_note(   i, note) {
    for (i = 1; i <= n; i++) {
        if (!(order[i] in out) || out[order[i]] == "")
            continue
        if (note != "")
            note = note "; "
        note = note order[i] " goes along, since it needs " out[order[i]]
    }
    if (note != "")
        print note
}

END {
    sort_by_place()
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
}
