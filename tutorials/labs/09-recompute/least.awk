# least.awk - prints how many advances a chain of steps needs at least, where so many states have room.
#
#     awk -v steps=10 -v states=3 -f least.awk
#
# With s states and r repeats of any step, a chain may have as many steps as there are ways to choose s of s + r.  So
# repeats are as few as allow all steps.  Griewank and Walther (2000) prove how many advances there are then.

function choose(n, k,   i, ways) {
    ways = 1
    for (i = 1; i <= k; i++)
        ways = ways * (n - k + i) / i
    return int(ways + 0.5)
}

BEGIN {
    while (choose(states + repeats, states) < steps)
        repeats++
    print repeats * steps - choose(states + repeats, states + 1)
}
