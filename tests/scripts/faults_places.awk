# faults_places.awk - which calls of one name touch the target `to`?
#
#     awk -v call=fsync -v folder=FOLDER -f faults_places.awk LOG       prints their numbers: "2 5 "
#
# A line of LOG, which `strace -y` has written, is, behind the thread's number,
#
#     openat(AT_FDCWD, "to/manifest.json", ...        or with a descriptor, and its path,  fsync(4</tmp/x/to>)
#
# The target is FOLDER/to.  Calls that look into a folder for what dead processes have left are counted, but not
# printed: a save does without them.
function touches_target() {
    if (/[( ]"to[\/."]/ || /[( ]"\."/) # by a name: to, or the folder that it is in
        return 1
    return $0 ~ "\\([0-9]*<" folder "(/to|>)" # by a descriptor
}
{ sub(/^[0-9]* */, "") }
index($0, call "(") == 1 {
    nth++
    if (touches_target() && !/O_DIRECTORY/)
        printf "%d ", nth
}
