#!/bin/sh
# memory.sh - the memory map that `yard plan` prints; and a GPU's memory: how much of it is the budget, and what is said
# where it does not do.
#
# No GPU is needed: a library that is loaded before OpenCL's answers as one would, or fails as one does.  Its variables,
# SHIM_GPU and so on, are explained in tests/support/shim_gpu.c.
. tests/run/helpers.sh
. tests/run/mistakes.sh

unset YARD_VEC YARD_WG # it plays a GPU of a shape of its own

# ---- the memory map -------------------------------------------------------------------------------------------------

"$YARD" plan --model tiny --print >"$TMP/plan"
other_lives() {
    awk -f tests/scripts/memory_lives.awk "$TMP/plan"
}
finds_nothing 'yard plan: the memory map holds every tensor from its first task to its last' other_lives

wide_lines() {
    awk 'length > 110 { print length ": " $0 }' "$TMP/plan"
}
finds_nothing 'yard plan fits a terminal' wide_lines

# ---- a GPU ----------------------------------------------------------------------------------------------------------

build_shim shim_gpu "a GPU's memory"

says() { # WHAT TEXT: there is that text in the output
    [ $code -eq 0 ] && grep -qF -- "$2" "$TMP/out"
    result $? "$1"
}

mib=1048576
shim="LD_PRELOAD=$TMP/shim.so"
gpu="$shim SHIM_GPU=1 SHIM_MEMORY=12884901888 SHIM_PIECE=3221225472"
tiny='train --model tiny --steps 2 --sample-tokens 0 --val-batches 1'

# ---- budgets --------------------------------------------------------------------------------------------------------

yard_with "$gpu" devices
says 'a GPU of 12 GiB has a budget of 11' 'memory 12.0 GiB by its driver, budget 11.0 GiB'
yard_with "$gpu" plan --model tiny -d 0:0
says 'a plan shows the budget of a GPU of 12 GiB' ' 11264.0'
yard_with "$gpu" plan --model tiny --memory -d 0:0
says 'the table of strategies shows the budget of a GPU of 12 GiB' ' 11264.0'
yard_with "$gpu" plan --model gpt2 --mesh dp=2 -d 0:0x2 --memory
sed -n '/^recompute/,$p' "$TMP/out" >"$TMP/table"
[ -s "$TMP/table" ] && ! grep -q '.\{81\}' "$TMP/table"
result $? 'the table of strategies has no more than 80 columns, where there are GiB too'
yard_with "$gpu" plan --model tiny -d 0:0 --device-mem 12G
says '--device-mem is taken as it is' ' 12288.0'
refuse_with "$gpu SHIM_MEMORY=$((512 * mib)) SHIM_PIECE=$((512 * mib))" 2 \
    'the budget of 448 MiB (of 512 MiB; the rest is left to the driver)' plan --model gpt2 -d 0:0
yard_with "$shim" plan --model tiny -d 0:0
own=$(sed -n 's/^0:0 .* train .* //p' "$TMP/out")
yard_with "$gpu SHIM_UNIFIED=1 SHIM_MEMORY=9999999999999" plan --model tiny -d 0:0
says "an integrated GPU has what a CPU has, of the host's memory" " ${own:-none}"

# ---- allocations ----------------------------------------------------------------------------------------------------

# A buffer may be missing only when it is filled, or only when filling it ends; a matrix or a parameter may be larger
# than any allocation.
refuse_with "$shim SHIM_FAIL=fill" 2 \
    'device 0:0 cannot allocate ...(CL_MEM_OBJECT_ALLOCATION_FAILURE): use a smaller model' $tiny -d 0:0
refuse_with "$shim SHIM_FAIL=finish" 2 \
    'device 0:0 cannot allocate ...(CL_OUT_OF_RESOURCES): use a smaller model' $tiny -d 0:0
matrix='tensor attn.att ... of task attn.scores (layer 0...does not fit. The device allows 8.00 MiB in one piece'
refuse_with "$gpu SHIM_PIECE=$((8 * mib))" 2 \
    "$matrix: use --attention flash, a smaller --micro-batch or --seq-len" \
    plan --model nano -d 0:0 --seq-len 512 --batch 4
refuse_with "$gpu SHIM_PIECE=$((2 * mib))" 2 \
    'of the state that is kept from step to step does not fit. The device ... in one piece: use a smaller model' \
    plan --model nano -d 0:0 --vocab 20000 --batch 1

# ---- parts of buffers -----------------------------------------------------------------------------------------------

yard_with "$gpu" train --model nano --batch 4 --steps 2 --sample-tokens 0 --val-batches 1 --recompute full -d 0:0x2
says "NVIDIA's driver: of parts that overlap the newest is released first, and fills have long patterns" 'step 2/2'

# ---- work-groups ----------------------------------------------------------------------------------------------------

refuse_with "$gpu" 2 'is a GPU, where --gemm own computes one work-item at a time: use --gemm clblast' \
    $tiny --gemm own -d 0:0
yard_with "$gpu YARD_VEC=4" $tiny --gemm own -d 0:0
says 'our own products on a GPU run in a shape that is forced' 'step '

# ---- memory of the host ---------------------------------------------------------------------------------------------

# The host's slabs are buffers that the GPU can map: none is larger than its largest.
swap='--model nano --batch 8 --micro-batch 2 --swap layer --steps 2 --sample-tokens 0 --val-batches 1 -d 0:0'
yard_with "$gpu" train $swap
says 'a GPU swaps' 'step '
grep '^step' "$TMP/out" | sed 's/  lr.*//' >"$TMP/one"
yard_with "$gpu SHIM_PIECE=$((3 * mib))" train $swap
grep '^step' "$TMP/out" | sed 's/  lr.*//' | cmp - "$TMP/one" >"$TMP/err"
result $? 'a GPU that swaps has the same numbers in smaller slabs'
yard_with "$gpu SHIM_PIECE=$((3 * mib))" plan --model nano --batch 8 --micro-batch 2 --swap layer -d 0:0 --print
says "the host of such a GPU has several slabs" 'host                  1 '

finish
