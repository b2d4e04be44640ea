# guess.awk - how long will tests take?  "SECONDS TEST" for each, by what it took the last time, or 3.
#
#     printf '%s\n' TEST... | awk -f guess.awk SECONDS -
#
# SECONDS has lines "NAME SECONDS".  By the line "view.sh 12", the test tests/scripts/view.sh gives
#
#     12 tests/scripts/view.sh
FILENAME != "-" {
    took[$1] = $2
    next
}
NF {
    name = $1
    sub(/.*\//, "", name)
    print ((name in took) ? took[name] : 3), $1
}
