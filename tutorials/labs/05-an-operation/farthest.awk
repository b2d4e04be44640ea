# farthest.awk - of two checkpoints, which mean of a gradient differs most?  It prints "TENSOR by ERROR" for the largest
# error above 1e-4, or for the first that is no number, or nothing.
#
#     awk -f farthest.awk DIFF
#
# DIFF is what `yard ckpt diff` prints.  A row has the tensor, its part (m: Adam's mean), two numbers, and the error.

$2 != "m" || has_nan { next }

$5 ~ /nan/ || $5 > 1e-4 && $5 > most {
    has_nan = $5 ~ /nan/
    most = $5 + 0
    far = $1 " by " $5
}

END { print far }
