#!/bin/sh
# memory.sh - the memory map that `yard plan` prints; and a GPU's memory: how much of it is the budget, and what is said
# where it does not do.
#
# No GPU is needed: a library that is loaded before OpenCL's answers as one would, or fails as one does.
#
#     SHIM_GPU=1         the device is a GPU         SHIM_MEMORY=BYTES   of its own, SHIM_UNIFIED=1: the host's
#     SHIM_PIECE=BYTES   of one allocation at most
#     SHIM_FAIL=fill     filling a buffer fails      SHIM_FAIL=finish    and so does waiting for that
. tests/run/helpers.sh

unset YARD_VEC YARD_WG # it plays a GPU of a shape of its own

# ---- the memory map -------------------------------------------------------------------------------------------------

# It agrees with the list: the first and the last task that name a tensor, where its name is used once.  Of each task
# the list has a line with its number and a line "READS -> WRITES".  The map has a tensor's tasks in columns 6 and 7.
"$YARD" plan --model tiny --print >"$TMP/plan"
other_lives() {
    awk '
        /^ *[0-9]+  [a-z]/ { task = $1 }
        / -> / && /^         / { # what the task reads and writes
            gsub(/->|,/, " ")
            gsub(/@[^ ]*/, "")
            for (i = 1; i <= NF; i++) {
                if (!($i in first))
                    first[$i] = task
                last[$i] = task
            }
        }
        /^memory map/ { in_map = 1 }
        in_map && $NF in first && $5 == "activations" {
            uses[$NF]++
            begin[$NF] = $6
            end[$NF] = $7
        }
        END {
            for (tensor in uses) {
                if (uses[tensor] > 1)
                    continue
                n++
                if (begin[tensor] != first[tensor] || end[tensor] != last[tensor])
                    print tensor ": tasks " first[tensor] " to " last[tensor] ", but the map says " begin[tensor] \
                        " to " end[tensor]
            }
            if (n < 5)
                print "only " n " tensors could be compared"
        }' "$TMP/plan"
}
finds_nothing 'yard plan: the memory map holds every tensor from its first task to its last' other_lives

wide_lines() {
    awk 'length > 110 { print length ": " $0 }' "$TMP/plan"
}
finds_nothing 'yard plan fits a terminal' wide_lines

# ---- a GPU ----------------------------------------------------------------------------------------------------------

build_shim "a GPU's memory" <<'END'
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int filled; /* since the last wait */
static int fails(const char *what) { return getenv("SHIM_FAIL") && !strcmp(getenv("SHIM_FAIL"), what); }
static void answer(const char *name, void *value, size_t bytes)
{
    unsigned long long number = getenv(name) ? strtoull(getenv(name), NULL, 10) : 0;
    if (getenv(name) && value)
        memcpy(value, &number, bytes);
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t bytes, void *value, size_t *all)
{
    cl_int (*next)(cl_device_id, cl_device_info, size_t, void *, size_t *) = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    cl_int code = next(id, what, bytes, value, all);
    if (what == CL_DEVICE_TYPE && getenv("SHIM_GPU") && value)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    if (what == CL_DEVICE_GLOBAL_MEM_SIZE)
        answer("SHIM_MEMORY", value, sizeof(cl_ulong));
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        answer("SHIM_PIECE", value, sizeof(cl_ulong));
    if (what == CL_DEVICE_HOST_UNIFIED_MEMORY && getenv("SHIM_GPU") && value)
        *(cl_bool *)value = getenv("SHIM_UNIFIED") != NULL;
    return code;
}

/* As NVIDIA's driver does: it ends when of two parts of a buffer that overlap the older is released first, and its
 * fills with short patterns are of 32 bits. */
enum { MOST = 100000 };
static struct part {
    cl_mem of, mem;
    size_t begin, end;
} parts[MOST];
static int n_parts;

cl_mem clCreateSubBuffer(cl_mem of, cl_mem_flags flags, cl_buffer_create_type type, const void *what, cl_int *code)
{
    cl_mem (*next)(cl_mem, cl_mem_flags, cl_buffer_create_type, const void *, cl_int *) =
        dlsym(RTLD_NEXT, "clCreateSubBuffer");
    const cl_buffer_region *r = what;
    cl_mem mem = next(of, flags, type, what, code);
    if (n_parts < MOST)
        parts[n_parts++] = (struct part){of, mem, r->origin, r->origin + r->size};
    return mem;
}

cl_int clReleaseMemObject(cl_mem mem)
{
    cl_int (*next)(cl_mem) = dlsym(RTLD_NEXT, "clReleaseMemObject");
    int i = n_parts - 1;
    while (i >= 0 && parts[i].mem != mem)
        i--;
    for (int k = i + 1; i >= 0 && k < n_parts && getenv("SHIM_GPU"); k++)
        if (parts[k].of == parts[i].of && parts[k].begin < parts[i].end && parts[i].begin < parts[k].end)
            abort();
    if (i >= 0) {
        n_parts--;
        memmove(parts + i, parts + i + 1, (size_t)(n_parts - i) * sizeof parts[0]);
    }
    return next(mem);
}

cl_int clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *p, size_t p_bytes, size_t at, size_t bytes,
                           cl_uint n, const cl_event *wait, cl_event *done)
{
    cl_int (*next)(cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,
                   cl_event *) = dlsym(RTLD_NEXT, "clEnqueueFillBuffer");
    filled = 1;
    if (getenv("SHIM_GPU") && p_bytes < 16)
        abort();
    return fails("fill") ? CL_MEM_OBJECT_ALLOCATION_FAILURE : next(q, m, p, p_bytes, at, bytes, n, wait, done);
}

cl_int clFinish(cl_command_queue q)
{
    cl_int (*next)(cl_command_queue) = dlsym(RTLD_NEXT, "clFinish");
    cl_int code = next(q);
    int lazy = filled && fails("finish");
    filled = 0;
    return lazy ? CL_OUT_OF_RESOURCES : code;
}
END

yard() { # 'NAME=VALUE ...' WORDS: yard WORDS on a device that the shim changes so; its exit code is left in $code
    settings=$1
    shift
    env $settings LD_PRELOAD="$TMP/shim.so" "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
}

says() { # WHAT TEXT: there is that text in the output
    [ $code -eq 0 ] && grep -qF -- "$2" "$TMP/out"
    result $? "$1"
}

refuses() { # CODE WHAT TEXT...: it ends with that code and one sentence, with these parts
    what=$2
    check "$what: the exit code is $1; it was $code" [ $code -eq "$1" ]
    check "$what: it says one sentence" [ "$(grep -c '^yard: ' "$TMP/err")" -eq 1 ]
    shift 2
    for part in "$@"; do
        check "$what: it says '$part'" grep -qF -- "$part" "$TMP/err"
    done
}
mib=1048576 gpu='SHIM_GPU=1 SHIM_MEMORY=12884901888 SHIM_PIECE=3221225472'
tiny='train --model tiny --steps 2 --sample-tokens 0 --val-batches 1'

# ---- budgets --------------------------------------------------------------------------------------------------------

yard "$gpu" devices
says 'a GPU of 12 GiB has a budget of 11' 'memory 12.0 GiB by its driver, budget 11.0 GiB'
yard "$gpu" plan --model tiny -d 0:0
says 'a plan shows the budget of a GPU of 12 GiB' ' 11264.0'
yard "$gpu" plan --model tiny --memory -d 0:0
says 'the table of strategies shows the budget of a GPU of 12 GiB' ' 11264.0'
yard "$gpu" plan --model gpt2 --mesh dp=2 -d 0:0x2 --memory
sed -n '/^recompute/,$p' "$TMP/out" >"$TMP/table"
[ -s "$TMP/table" ] && ! grep -q '.\{81\}' "$TMP/table"
result $? 'the table of strategies has no more than 80 columns, where there are GiB too'
yard "$gpu" plan --model tiny -d 0:0 --device-mem 12G
says '--device-mem is taken as it is' ' 12288.0'
yard "$gpu SHIM_MEMORY=$((512 * mib)) SHIM_PIECE=$((512 * mib))" plan --model gpt2 -d 0:0
refuses 2 'a refusal says whence the budget is' 'the budget of 448 MiB (of 512 MiB; the rest is left to the driver)'
yard "A=" plan --model tiny -d 0:0
own=$(sed -n 's/^0:0 .* train .* //p' "$TMP/out")
yard "$gpu SHIM_UNIFIED=1 SHIM_MEMORY=9999999999999" plan --model tiny -d 0:0
says "an integrated GPU has what a CPU has, of the host's memory" " ${own:-none}"

# ---- allocations ----------------------------------------------------------------------------------------------------

yard SHIM_FAIL=fill $tiny -d 0:0
refuses 2 'a buffer that is not there when it is filled' 'device 0:0 cannot allocate ' \
    '(CL_MEM_OBJECT_ALLOCATION_FAILURE): use a smaller model'
yard SHIM_FAIL=finish $tiny -d 0:0
refuses 2 'a buffer that is not there when filling it ends' 'device 0:0 cannot allocate ' \
    '(CL_OUT_OF_RESOURCES): use a smaller model'
yard "$gpu SHIM_PIECE=$((8 * mib))" plan --model nano -d 0:0 --seq-len 512 --batch 4
refuses 2 'a matrix that is larger than an allocation' \
    'device 0:0: task attn.scores (layer 0' 'tensor attn.att needs ' \
    'in one piece, the device allows 8.00 MiB; use --attention flash, a smaller --micro-batch or --seq-len'
yard "$gpu SHIM_PIECE=$((2 * mib))" plan --model nano -d 0:0 --vocab 20000 --batch 1
refuses 2 'a parameter that is larger than an allocation' \
    'the state that is kept from step to step does not fit: tensor ' ' in one piece' '; use a smaller model'

# ---- parts of buffers -----------------------------------------------------------------------------------------------

yard "$gpu" train --model nano --batch 4 --steps 2 --sample-tokens 0 --val-batches 1 --recompute full -d 0:0x2
says "NVIDIA's driver: of parts that overlap the newest is released first, and fills have long patterns" 'step 2/2'

# ---- work-groups ----------------------------------------------------------------------------------------------------

yard "$gpu" $tiny --gemm own -d 0:0
refuses 2 'our own products on a GPU' 'is a GPU, where --gemm own computes one work-item at a time: use --gemm clblast'
yard "$gpu YARD_VEC=4" $tiny --gemm own -d 0:0
says 'our own products on a GPU run in a shape that is forced' 'step '

# ---- memory of the host ---------------------------------------------------------------------------------------------

# The host's slabs are buffers that the GPU can map: none is larger than its largest.
swap='--model nano --batch 8 --micro-batch 2 --swap layer --steps 2 --sample-tokens 0 --val-batches 1 -d 0:0'
yard "$gpu" train $swap
says 'a GPU swaps' 'step '
grep '^step' "$TMP/out" | sed 's/  lr.*//' >"$TMP/one"
yard "$gpu SHIM_PIECE=$((3 * mib))" train $swap
grep '^step' "$TMP/out" | sed 's/  lr.*//' | cmp - "$TMP/one" >"$TMP/err"
result $? 'a GPU that swaps has the same numbers in smaller slabs'
yard "$gpu SHIM_PIECE=$((3 * mib))" plan --model nano --batch 8 --micro-batch 2 --swap layer -d 0:0 --print
says "the host of such a GPU has several slabs" 'host                  1 '

finish
