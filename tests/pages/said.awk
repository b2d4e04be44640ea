# said.awk - the lines that a page says its commands print: "say" becomes "sure" where a block has commands `yard plan`
# and no others, since what they print is known word for word.  What a measured profile prints is not.
#
#     awk -f tests/pages/said.awk PARTS >SAID          PARTS are page.awk's
#
#     shown ./yard plan --model tiny
#     say     simulated step: 8.000 ms                sure     simulated step: 8.000 ms
#     about     FMA peak: 52 GFLOP/s                  about     FMA peak: 52 GFLOP/s

/^(text|head)/ { plans = others = 0 } # the next block has commands of its own
/^shown/ {
    if (/yard plan/ && !/--profile/)
        plans++
    else
        others++
}
/^say/ && plans && !others { sub(/^say/, "sure") }
/^(about|say|sure)/ { print }
