# modules.awk - the folders that register themselves (module.h), except those in `without` and those that need them.
#
#     awk -v without='plot view' -v as=table   -f modules.awk FILE.c...      build/modules.c
#     awk -v without='plot view' -v as=folders -f modules.awk FILE.c...      what is left out, "src/tools/plot"
#     awk -v without='plot view' -v as=note    -f modules.awk FILE.c...      which others are left out too, if any, and why
#
# The word "all" leaves out all folders but the trainer's.  FILEs are those that have a line
# `const struct module module_NAME = {`.  An unknown name ends it with exit code 2.

/^const struct module module_/ {
    name = $4
    sub(/^module_/, "", name)
    folder[name] = FILENAME
    sub(/\/[^\/]*$/, "", folder[name])
    order[++n] = name
    place[name] = 0
}
name != "" && /\.place = / {
    place[name] = $0
    sub(/.*\.place = /, "", place[name])
    sub(/[^0-9].*/, "", place[name])
}
name != "" && /\.needs = "/ {
    needs[name] = $0
    sub(/.*\.needs = "/, "", needs[name])
    sub(/".*/, "", needs[name])
}
/};$/ { name = "" }

END {
    for (i = 2; i <= n; i++) # by place
        for (k = i; k > 1 && place[order[k - 1]] + 0 > place[order[k]] + 0; k--) {
            name = order[k]
            order[k] = order[k - 1]
            order[k - 1] = name
        }
    asked = split(without, word, " ")
    if (without == "all") {
        asked = 0
        for (i = 1; i <= n; i++)
            if (folder[order[i]] !~ /^src\/trainer\//)
                out[order[i]] = ""
    }
    for (i = 1; i <= asked; i++) {
        if (!(word[i] in folder) || folder[word[i]] ~ /^src\/trainer\//) {
            print "WITHOUT=" word[i] ": no folder of src/techniques or src/tools registers itself by that name" >"/dev/stderr"
            exit 2
        }
        out[word[i]] = ""
    }
    do { # a folder that needs one of them is left out too
        more = 0
        for (i = 1; i <= n; i++) {
            parts = split(needs[order[i]], part, " ")
            for (k = 1; k <= parts; k++)
                if ((part[k] in out) && !(order[i] in out)) {
                    out[order[i]] = part[k]
                    more = 1
                }
        }
    } while (more)

    if (as == "table") {
        print "/* Made by src/trainer/base/modules.awk from the folders that register themselves. */"
        print "#include \"trainer/base/module.h\"\n"
        for (i = 1; i <= n; i++)
            if (!(order[i] in out))
                print "extern const struct module module_" order[i] ";"
        print "\nconst struct module *const modules[] = {"
        for (i = 1; i <= n; i++)
            if (!(order[i] in out)) {
                print "    &module_" order[i] ","
                built++
            }
        print "};\nconst size_t n_modules = " built ";"
    }
    for (i = 1; i <= n; i++) {
        if (!(order[i] in out))
            continue
        all = all " " order[i]
        if (as == "folders")
            print folder[order[i]]
        if (out[order[i]] != "")
            along = along (along == "" ? "" : "; ") order[i] " goes along, since it needs " out[order[i]]
    }
    if (as == "note" && along != "")
        print along
    if (as == "table")
        print "const char left_out[] = \"" all "\";"
}
