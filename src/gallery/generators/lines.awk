# lines.awk - lines of a step file, which the other generators print.
#
#     tensor("w0", "r0", 80, "parameters")                    tensor w0 r0 80 parameters
#     task("adam", "r0.compute", 1.5, "update", "g0", "w0")   task adam r0.compute 1.5ms role=update reads=g0 writes=w0
#     share("w0", 1, 4, 80)                                   w0[20:40], the second of four shares, for such a list
#
# It reads nothing.  tutorials/reference-lists.md has the words of a step file.

function tensor(name, device, bytes, class) {
    printf "tensor %s %s %.0f %s\n", name, device, bytes, class
}

function task(name, lane, ms, role, reads, writes) {
    if (reads != "")
        reads = " reads=" reads
    printf "task %s %s %gms role=%s%s writes=%s\n", name, lane, ms, role, reads, writes
}

function share(name, which, shares, bytes) { # one of the equal shares of a tensor that has so many bytes
    return sprintf("%s[%.0f:%.0f]", name, which * bytes / shares, (which + 1) * bytes / shares)
}

function refuse(what) {
    print "gallery.awk: no " what > "/dev/stderr"
    exit 1
}
