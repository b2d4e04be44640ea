# gallery_random.awk - the gallery's entries of four pipelines, each with its first row in five random sizes.
#
#     awk -v seed=N -f gallery_random.awk data/gallery/entries
#
# The first row of an entry is its step, such as "row step: period = (m+p-1)*(F+B) = 33".  It becomes five rows such as
#
#     row step: period = (m+p-1)*(F+B) with p=3 m=8 F=4 D=2 W=2
#
# W is at most F and D, where zero bubble's formulas hold.
function draw(from, to) {
    return from + int(rand() * (to - from + 1))
}
BEGIN { srand(seed) }
$1 == "entry" {
    is_asked = $2 ~ /^(gpipe|1f1b|zb-h1|zb-h2)$/
    rows = 0
}
is_asked && ($1 == "entry" || $1 == "make") { print }
is_asked && $1 == "row" {
    rows++
    if (rows > 1)
        next
    options = ""
    if (/ with /)
        options = substr($0, index($0, " with ") + 6)
    sub(/ = [0-9.]+( with .*)?$/, "")
    for (i = 0; i < 5; i++) {
        p = draw(2, 8)
        m = draw(2 * p, 3 * p)
        W = draw(1, 4)
        F = draw(W, 6)
        D = draw(W, 6)
        print $0 " with p=" p " m=" m " F=" F " D=" D " W=" W " " options
    }
}
