# draw.awk - numbers that follow from a seed, for the programs that draw lists for labs and hardware for the league:
#
#     awk -v seed=N -f tutorials/labs/lib/draw.awk -f PROGRAM
#
# They are those of Park and Miller (1988): the same with every awk, since no product needs more than 53 bits.  The
# program sets `state`, from 1 to 2147483646, before it draws.  The numbers follow one another, so the order of the
# draws decides what a seed gives.

function draw_state() { # the next of all numbers from 1 to 2147483646
    state = state * 16807 % 2147483647
    return state
}

function draw(low, high) { # a whole number
    return low + draw_state() % (high - low + 1)
}

function draw_share() { # a number between 0 and 1
    return draw_state() / 2147483647
}
