# gallery.awk - writes a step file of the gallery: what its entry says as a comment, then the list of its generator.
#
#     awk -v name=zb-h1 [-v set="p=8 m=32"] -f gallery.awk -f generators/... entries         (all generators)
#
# An entry of `entries`                           and its step file (tutorials/reference-lists.md has the words)
#
#     entry ring Ring all-reduce                      # Ring all-reduce
#       make ring n=2 S=80 rate=1e9                   #   made by ring n=2 S=80 rate=1e9
#                                                     device r0 memory=8000G
#                                                     link r0 up 1e9
#                                                     ...
#                                                     tensor w0 r0 80 parameters
#                                                     task backward r0.compute 0ms role=backward reads=w0 writes=g0
#
# The line `make GENERATOR NAME=VALUE ...` calls the function of that name, in a file of `generators`.  It finds the
# values in value["NAME"]; `set` gives some of them others.  A generator prints the list line by line.
#
# Names behind three blanks in a list of parameters are local variables, as always in awk.

function set_values(text,   words, i, word, pair) { # its words NAME=VALUE
    words = split(text, word)
    for (i = 1; i <= words; i++)
        if (word[i] ~ /^[A-Za-z]+=/) {
            split(word[i], pair, "=")
            value[pair[1]] = pair[2]
        }
}

function print_comment(   i) { # the lines of the entry, without blank ones at the end
    while (line[lines] == "")
        lines--
    for (i = 1; i <= lines; i++)
        print line[i] == "" ? "#" : "# " line[i]
    print ""
}

function generate() {
    if (generator == "pipeline")
        pipeline()
    else if (generator == "ring")
        ring()
    else if (generator == "chain_of_sends")
        chain_of_sends()
    else if (generator == "zero")
        zero()
    else if (generator == "layers")
        layers()
    else if (generator == "forward_and_back")
        forward_and_back()
    else if (generator == "revolve")
        revolve()
    else if (generator == "storing")
        storing()
    else if (generator == "layer_stream")
        layer_stream()
    else if (generator == "step_file")
        step_file()
    else
        refuse("generator " generator)
}

BEGIN { MiB = 1048576 }
$1 == "entry" {
    mine = $2 == name
    sub(/^entry +[^ ]+ +/, "")
    if (mine)
        print "# " $0
    next
}
!mine || $1 == "picture" || $1 == "curve" { next }
$1 == "make" {
    generator = $2
    set_values($0)
    set_values(set)
    sub(/make/, "  made by")
}
$1 == "row" { sub(/row/, " ") }
{
    lines++
    line[lines] = $0
}
END {
    print_comment()
    generate()
}
