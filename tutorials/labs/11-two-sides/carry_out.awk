# carry_out.awk - a list of lists.awk, kind overlap, in which each update is where a letter says.
#
#     awk -v letters=DCL -f carry_out.awk LIST
#
# The last layer's letter comes first.  D: the update stays on the device.  C: it is on the host, right behind its
# layer's backward.  L: it is on the host, and last: behind all backwards, the first layer's first.
#
# Layer k has parameters w, gradients g, and Adam's state o, with its number behind the letter.  On the host it has m,
# which is w there, and h, which is g.

function letter_of(layer) {
    return substr(letters, length(letters) - layer, 1)
}

function update_on_host(layer, time,   state) { # two lines: the update, and its parameters go up
    state = "m" layer ",o" layer
    return "task update host.cpu " time " layer=" layer " role=update reads=" state ",h" layer " writes=" state "\n" \
        "copy up w" layer " m" layer " lane=gpu.upload layer=" layer "\n"
}

$1 == "tensor" {
    layer = substr($2, 2)
    bytes[$2] = $4
}
$1 == "tensor" && $2 ~ /^o/ && letter_of(layer) != "D" { $3 = "host" }
$1 == "tensor" && $2 ~ /^a/ && letter_of(layer) != "D" {
    print "tensor m" layer " host " bytes["w" layer] " parameters"
    print "tensor h" layer " host " bytes["w" layer] " gradients keep"
}

$1 == "task" && $2 == "update" && match($0, /layer=[0-9]+/) {
    layer = substr($0, RSTART + 6, RLENGTH - 6)
    match($0, /cpu=[^ ]*/)
    there = update_on_host(layer, substr($0, RSTART + 4, RLENGTH - 4))
    if (letter_of(layer) != "D")
        print "copy down h" layer " g" layer " lane=gpu.download layer=" layer
    if (letter_of(layer) == "C")
        printf "%s", there
    if (letter_of(layer) == "L")
        last = there last
    if (letter_of(layer) != "D")
        next
}
{ print }

END { printf "%s", last }
