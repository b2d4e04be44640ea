# pipelines.sh - compares plans of pipelines, for the graders of labs 7 and 8, which read it.
#
#     must_match_plans ORDER period|bytes|both
#
# The part gets no points unless the student's plan of --pipeline ORDER and the reference's have the same period, or the
# same bytes, or both.  Six meshes are compared: 2, 3 and 4 stages, each with two drawn numbers of micro-batches.

must_match_plans() { # ORDER period|bytes|both
    for stages in 2 3 4; do
        for again in 1 2; do
            micros=$(draw 1 $((3 * stages)))
            plan="plan --model tiny --layers $stages --batch $micros --micro-batch 1 --mesh pp=$stages
                   --pipeline $1 --clip 0 --hardware $TOP/data/hardware/server.txt --simulate --json"
            # shellcheck disable=SC2086 # the words of a command
            must_run $plan
            # shellcheck disable=SC2086 # the words of a command
            reference $plan
            what="--pipeline $1 --layers $stages --batch $micros --mesh pp=$stages"
            [ "$2" = bytes ] || must_match_fields "$what: the period in ms" step_ms "$TMP/out" "$TMP/reference.out"
            [ "$2" = period ] ||
                must_match_fields "$what: bytes of activations, by device" activations "$TMP/out" "$TMP/reference.out"
        done
    done
}
