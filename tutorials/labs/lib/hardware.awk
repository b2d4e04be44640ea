# hardware.awk - draws the hardware of a judgement of the league: that of FILE, with each rate and each time multiplied
# by a number from 0.8 to 1.25.
#
#     awk -v seed=S -v nth=N -f tutorials/labs/lib/draw.awk -f tutorials/labs/lib/hardware.awk FILE
#
# prints the N-th draw of seed S.  All lines but those of rates and times stay as they are, so that
#
#     devices = 8                                  devices = 8
#     launch = 5e-6            # an assumption     launch = 4.84944e-06
#     link upload = 22e9 10e-6 # PCIe 4.0 x16      link upload = 1.80843e+10 10e-6 # PCIe 4.0 x16

BEGIN {
    state = (seed * 7919 + nth * 104729) % 2147483646 + 1
    for (i = 0; i < 5; i++) # the first numbers of neighbouring seeds are alike
        draw_share()
}

/^(flops|bandwidth|launch|host_bandwidth|host_launch|link [a-z]+) *=/ {
    at = index($0, "=")
    value = substr($0, at + 1)
    sub(/^ */, "", value)
    rest = ""
    if (value ~ /^[^ ]+ +[0-9]/) # the time that a copy takes at least stays
        rest = substr(value, index(value, " ") + 1)
    factor = exp((2 * draw_share() - 1) * log(1.25))
    printf "%s= %.6g %s\n", substr($0, 1, at - 1), value * factor, rest
    next
}
{ print }
