# pipelines.sh - compares plans of pipelines, for the graders of labs 7 and 8, which read it.
#
#     same_plans ORDER period|bytes|both     no, unless the student's plan of --pipeline ORDER and the reference's are
#                                            the same in that, for six meshes: 2, 3 and 4 stages, each with two numbers
#                                            of micro-batches that are drawn

same_plans() { # ORDER period|bytes|both
    for stages in 2 3 4; do
        for again in 1 2; do
            micros=$(draw 1 $((3 * stages)))
            plan="plan --model tiny --layers $stages --batch $micros --micro-batch 1 --mesh pp=$stages
                   --pipeline $1 --clip 0 --hardware $TOP/data/hardware/server.txt --simulate --json"
            must_run $plan
            reference $plan
            what="$1, $stages stages, $micros micro-batches"
            [ "$2" = bytes ] || same_fields "$what: step_ms" step_ms "$TMP/out" "$TMP/reference.out"
            [ "$2" = period ] ||
                same_fields "$what: bytes of activations, by device" activations "$TMP/out" "$TMP/reference.out"
        done
    done
}
