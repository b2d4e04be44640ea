# step.awk - the list of lab 1: three layers, their updates on the host or on the device, and one activation that leaves
# the device for a while.  awk -v seed=N -f step.awk

function draw(low, high) { state = state * 16807 % 2147483647; return low + state % (high - low + 1) }
function tensor(name, device, bytes, class) { printf "tensor %s %s %d %s\n", name, device, 1000 * bytes, class }
function task(name, lane, reads, writes) {
    line[++lines] = sprintf("task %s %s %d.%dms%s writes=%s", name, lane, draw(0, 2), draw(1, 9),
        reads == "" ? "" : " reads=" reads, writes) }
function copy(name, to, from) { line[++lines] = "copy " name " " to " " from }

BEGIN {
    state = seed * 104729 + 1
    for (i = 0; i < 5; i++) draw(0, 1)
    print "device gpu memory=1M share\nlane gpu.upload1"
    printf "link gpu up %d 100us\nlink gpu down %d 100us\n", 1000000 * draw(30, 90), 1000000 * draw(30, 90)
    tensor("hbatch", "host", b = draw(5, 30), "work keep"); tensor("batch", "gpu", b, "activations")
    task("read", "host.feed", "", "hbatch"); copy("send", "batch", "hbatch lane=gpu.upload1")
    away = draw(0, 1) # its activations leave
    for (l = 0; l < 3; l++) {
        tensor("w" l, "gpu", p = draw(10, 50), "parameters"); tensor("g" l, "gpu", p, "gradients")
        tensor("x" l, "gpu", x = draw(10, 60), "activations"); tensor("d" l, "gpu", draw(10, 40), "work")
        task("forward" l, "gpu.compute", "w" l "," (l ? "x" l - 1 : "batch"), "x" l)
        if (l == away) { tensor("hx", "host", x, "activations keep"); tensor("y", "gpu", x, "activations") }
        if (l == away + 1) copy("leave", "hx", "x" away)
        host[l] = draw(1, 3) < 3
        tensor("m" l, host[l] ? "host" : "gpu", 2 * p, "optimizer")
        if (host[l]) { tensor("hw" l, "host", p, "parameters"); tensor("hg" l, "host", p, "gradients keep") } }
    tensor("d3", "gpu", draw(10, 40), "work"); task("loss", "gpu.compute", "x2", "d3")
    for (l = 2; l >= 0; l--) {
        if (l == (away < 1 ? 1 : 2)) copy("return", "y", "hx")
        task("backward" l, "gpu.compute", "w" l ",d" l + 1 "," (l == away ? "y" : "x" l) (l ? "" : ",batch"),
            "g" l ",d" l)
        if (host[l]) {
            copy("down" l, "hg" l, "g" l); task("update" l, "host.cpu", "hg" l ",hw" l ",m" l, "hw" l ",m" l)
            copy("up" l, "w" l, "hw" l) }
        else task("update" l, "gpu.compute", "w" l ",g" l ",m" l, "w" l ",m" l) }
    for (i = 1; i <= lines; i++) print line[i] }
