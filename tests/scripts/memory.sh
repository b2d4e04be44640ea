#!/bin/sh
# memory.sh - the memory map that `yard plan` prints, and the memory of GPUs.
#
# This script checks that the map is right, that the budget is the right part of a GPU's memory, and that a sentence
# says where that is not enough.
#
# No GPU is needed: a library that is loaded before OpenCL's answers as a GPU's driver would, or fails as one does.
# tests/support/shim_gpu.c explains its variables, SHIM_GPU and so on.
#
# To see it fail: in read_device.c, let a GPU have what its host has: device->memory = most.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

unset YARD_VEC YARD_WG # that library plays a GPU of a shape of its own

# ---- the memory map --------------------------------------------------------------------------------------------------

yard plan --model tiny --print
exit_code 'yard plan prints a list and its memory map' $? 0
mv "$TMP/out" "$TMP/plan"
other_lives() {
    awk -f tests/scripts/memory_lives.awk "$TMP/plan"
}
finds_nothing 'yard plan: the memory map holds every tensor from its first task to its last' other_lives

wide_lines() {
    enough 60 "$TMP/plan" 'lines of yard plan --print' # the tiny model's list has a task every two lines
    awk 'length > 110 { print length ": " $0 }' "$TMP/plan"
}
finds_nothing 'yard plan fits a terminal' wide_lines

# ---- a GPU -----------------------------------------------------------------------------------------------------------

build_shim shim_gpu "a GPU's memory"

prints_with() { # VARIABLES 'TEXT' WORDS...: yard succeeds with these variables, and $TMP/out has that text
    its_variables=$1 text=$2
    shift 2
    yard_with "$its_variables" "$@" && grep -qF -- "$text" "$TMP/out"
}

mib=1048576
shim="LD_PRELOAD=$TMP/shim.so"
gpu="$shim SHIM_GPU=1 SHIM_MEMORY=12884901888 SHIM_PIECE=3221225472"

# ---- budgets ---------------------------------------------------------------------------------------------------------

check 'a GPU of 12 GiB has a budget of 11' \
    prints_with "$gpu" 'memory 12.0 GiB by its driver, budget 11.0 GiB' devices
check 'a plan shows the budget of a GPU of 12 GiB' prints_with "$gpu" ' 11264.0' plan --model tiny -d 0:0
check 'the table of strategies shows the budget of a GPU of 12 GiB' \
    prints_with "$gpu" ' 11264.0' plan --model tiny --memory -d 0:0
yard_with "$gpu" plan --model gpt2 --mesh dp=2 -d 0:0x2 --memory
wide_rows() {
    sed -n '/^recompute/,$p' "$TMP/out" >"$TMP/table"
    enough 5 "$TMP/table" 'rows of the table of strategies'
    awk 'length > 80 { print length ": " $0 }' "$TMP/table"
}
finds_nothing 'the table of strategies has no more than 80 columns, where there are GiB too' wide_rows
check '--device-mem is taken as it is' \
    prints_with "$gpu" ' 12288.0' plan --model tiny -d 0:0 --device-mem 12G
refuse_with "$gpu SHIM_MEMORY=$((512 * mib)) SHIM_PIECE=$((512 * mib))" 2 \
    'the budget of 448 MiB (of 512 MiB; the rest is left to the driver)' plan --model gpt2 -d 0:0
yard_with "$shim" plan --model tiny -d 0:0
own=$(sed -n 's/^0:0 .* train .* //p' "$TMP/out")
check "an integrated GPU has what a CPU has, of the host's memory: $own" \
    prints_with "$gpu SHIM_UNIFIED=1 SHIM_MEMORY=9999999999999" " ${own:-none}" plan --model tiny -d 0:0

# ---- allocations -----------------------------------------------------------------------------------------------------

# A buffer may be missing only when it is filled, or only when filling it ends; a matrix or a parameter may be larger
# than any allocation.
refuse_with "$shim SHIM_FAIL=fill" 2 \
    'device 0:0 cannot allocate ...(CL_MEM_OBJECT_ALLOCATION_FAILURE): use a smaller model' train --model tiny -d 0:0
refuse_with "$shim SHIM_FAIL=finish" 2 \
    'device 0:0 cannot allocate ...(CL_OUT_OF_RESOURCES): use a smaller model' train --model tiny -d 0:0
matrix='tensor attn.att ... of task attn.scores (layer 0...does not fit: the device allows 8.00 MiB in one piece'
refuse_with "$gpu SHIM_PIECE=$((8 * mib))" 2 \
    "$matrix; use --attention flash, a smaller --micro-batch (if above 1) or --seq-len" \
    plan --model nano -d 0:0 --seq-len 512 --batch 4
refuse_with "$gpu SHIM_PIECE=$((2 * mib))" 2 \
    'of the state that is kept from step to step does not fit: the device ... in one piece; use a smaller model' \
    plan --model nano -d 0:0 --vocab 20000 --batch 1

# ---- parts of buffers ------------------------------------------------------------------------------------------------

check "NVIDIA's driver: of parts that overlap the newest is released first, and fills have long patterns" \
    prints_with "$gpu" 'step 2/2' train --model nano --batch 4 --steps 2 --sample-tokens 0 --val-batches 1 \
    --recompute full -d 0:0x2

# ---- work-groups -----------------------------------------------------------------------------------------------------

refuse_with "$gpu" 2 'is a GPU, where --gemm own computes one work-item at a time: use --gemm clblast' \
    train --model tiny --gemm own -d 0:0
check 'our own products on a GPU run in a shape that is forced' \
    prints_with "$gpu YARD_VEC=4" 'step 2/2' \
    train --model tiny --steps 2 --sample-tokens 0 --val-batches 1 --gemm own -d 0:0

# ---- memory of the host ----------------------------------------------------------------------------------------------

# The host's slabs are buffers that the GPU can map: none is larger than its largest.
swaps_with() { # VARIABLES: a training swaps and ends
    prints_with "$1" 'step 2/2' train --model nano --batch 8 --micro-batch 2 --swap layer \
        --steps 2 --sample-tokens 0 --val-batches 1 -d 0:0
}
losses_and_norms() { # of the steps that were printed: "step 1/2  loss 5.5352  norm  2.960", each in a line
    sed -n '/^step/s/  lr.*//p' "$TMP/out"
}
check 'a GPU swaps' swaps_with "$gpu"
losses_and_norms >"$TMP/large-slabs"
check 'a GPU that swaps trains in smaller slabs' swaps_with "$gpu SHIM_PIECE=$((3 * mib))"
losses_and_norms >"$TMP/small-slabs"
check 'a GPU that swaps has the same numbers in smaller slabs' cmp "$TMP/large-slabs" "$TMP/small-slabs"
check 'the host of such a GPU has several slabs' \
    prints_with "$gpu SHIM_PIECE=$((3 * mib))" 'host                  1 ' \
    plan --model nano --batch 8 --micro-batch 2 --swap layer -d 0:0 --print

finish
