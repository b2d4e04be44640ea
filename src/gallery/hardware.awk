# hardware.awk - reads how fast the links and the disk of a machine are, and prints a program of sed that puts them into
# a step file.
#
#     awk -v rates=FILE -f hardware.awk MACHINE >PROGRAM
#
# MACHINE is a description of hardware, or a profile of `yard profile`.  Its line
#
#     link upload = 25e9 10us
#
# makes of a step file's line "link gpu up 1e9 5us" the line "link gpu up 25e9 10us".  FILE gets the rates for people:
# "25 up, 25 down", in GB/s.  Exit code 1: MACHINE does not say both rates, or says one that is no number.

function is_rate(text) {
    return text ~ /^[0-9.]+([eE][-+]?[0-9]+)?$/ && text + 0 > 0
}

$1 == "link" && $3 == "=" {
    sub(/#.*/, "")
    rate[$2] = $4
    latency[$2] = $5
}

END {
    if (!is_rate(rate["upload"]) || !is_rate(rate["download"]) || ("disk" in rate && !is_rate(rate["disk"])))
        exit 1
    printf "s/^\\(link [^ ]* up\\) .*/\\1 %s %s/\n", rate["upload"], latency["upload"]
    printf "s/^\\(link [^ ]* down\\) .*/\\1 %s %s/\n", rate["download"], latency["download"]
    if ("disk" in rate)
        printf "s/^disk .*/disk %s %s/\n", rate["disk"], latency["disk"]
    printf "%.4g up, %.4g down\n", rate["upload"] / 1e9, rate["download"] / 1e9 >rates
}
