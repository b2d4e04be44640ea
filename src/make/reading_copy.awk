# reading_copy.awk - writes what is to be read of the spine of tutorials/reference-code.md, a file for each part.
#
#     awk -v to=build/spine -f src/make/to_read.awk -f src/make/reading_copy.awk tutorials/reference-code.md
#
# The row  | `src/trainer/cmd/commands.c` | all but `find_command()` | 8 |  of part 1 becomes, in
# build/spine/01-a-word-becomes-a-command.txt,
#
#     ==== src/trainer/cmd/commands.c
#
#     ...
#        30  const struct subcommand *find_command(const char *name)
#        31  {
#        32      for (size_t i = 0; i < n_modules; i++)
#        33          for (size_t k = 0; k < modules[i]->n_commands; k++)
#        34              if (strcmp(modules[i]->commands[k].name, name) == 0)
#        35                  return &modules[i]->commands[k];
#        36      return NULL;
#        37  }
#     ...
#
# A number is that of the line in its file, and "..." stands for lines that can wait.  If something is wrong with the
# page, it is printed, and the exit code is 1.

# "### 4. Devices, lanes, contexts" is "4. Devices, lanes, contexts", in the file TO/04-devices-lanes-contexts.txt.
function begin_part(   title) {
    title = $0
    sub(/^### /, "", title)
    if (copy != "")
        close(copy)
    copy = tolower(title)
    gsub(/[^a-z0-9]+/, "-", copy)
    copy = to "/" (title ~ /^[0-9]\./ ? "0" : "") copy ".txt"
    print title >copy
}

# Prints what stands for the lines above line i that are not to be read, up to the last one that is: "..." if some of
# them can wait, or else a blank line for blank ones.
function print_gap(i, can_wait) {
    if (can_wait)
        print "..." >copy
    else if (i > 1 && line[i - 1] == "")
        print "" >copy
}

function print_row(   i, can_wait) {
    read_file(path)
    choose_lines(waits)
    print "\n==== " path "\n" >copy
    can_wait = 0
    for (i = 1; i <= n; i++) {
        if (to_read[i]) {
            print_gap(i, can_wait)
            printf "%5d  %s\n", i, line[i] >copy
            can_wait = 0
        } else if (line[i] != "") {
            can_wait = 1
        }
    }
    print_gap(n + 1, can_wait)
}

in_spine && /^### [0-9]/ { begin_part() }
row_ends { print_row() }
END { exit n_wrong > 0 }
