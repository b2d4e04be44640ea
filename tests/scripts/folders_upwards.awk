# folders_upwards.awk - which includes go from a group of folders to a higher one?  It prints their lines.
#
#     awk -f folders_upwards.awk INCLUDES
#
# A line is "FILE HEADER", such as "planning/pass/edit.c trainer/step/list.h", which goes down.
BEGIN {
    level["trainer"] = 0
    level["planning"] = 1
    level["techniques"] = 2
    level["tools"] = 3
}
function level_of(path) {
    sub("/.*", "", path)
    return level[path]
}
level_of($2) > level_of($1)
