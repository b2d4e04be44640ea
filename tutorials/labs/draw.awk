# draw.awk - numbers that follow from a seed, for the programs that draw the lists of labs:
#
#     awk -v seed=N -f tutorials/labs/draw.awk -f PROGRAM
#
# They are those of Park and Miller (1988): the same with every awk, since no product needs more than 53 bits.  The
# program sets `state`, from 1 to 2147483646, before it draws.  The numbers follow one another, so the order of the
# draws decides what a seed gives.

function draw(low, high) { # a whole number
    state = state * 16807 % 2147483647
    return low + state % (high - low + 1)
}
