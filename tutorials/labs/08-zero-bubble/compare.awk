# compare.awk - does a student's formula give what a list has?  Prints "OF-THE-FORMULA OF-THE-LIST" where it does not.
#
#     awk -v p=4 -v m=8 -v F=1 -v D=1 -v W=1 -v what=bubble|kept -v step=MS -v bytes=BYTES -f FORMULA -f compare.awk
#
# FORMULA is a file such as  function formula() { return ((p - 1) * F) }.  The list has p stages and m micro-batches,
# its tasks take F, D and W ms, its period is `step`, and its first device holds at most `bytes` of activations.

function max(a, b) {
    return a > b ? a : b
}

function min(a, b) {
    return a < b ? a : b
}

BEGIN {
    got = formula()
    expected = step - m * (F + D + W)
    if (what == "kept")
        expected = bytes / (32 * 1048576) # what one micro-batch keeps takes 32 MiB in these lists
    if ((got - expected) ^ 2 > 1e-12)
        printf "%g %.0f", got, expected
}
