#!/bin/sh
# kineto.sh - the converter tutorials/pytorch/kineto2yard.py.
#
# This script checks that the converter makes a step file of a PyTorch trace, which takes the time that the trace took;
# that a changed step file takes the time that was worked out by hand; and that a file which is no such trace is refused
# in one sentence.
#
# PYTHON is a Python 3.
#
# To see it fail: in find_late() of kineto2yard.py, leave out the gap.
. tests/lib/helpers.sh

python=${PYTHON:-python3}
trace=tutorials/pytorch/two-streams.json

"$python" -c '' 2>/dev/null || skip_all 'a trace becomes a step file' "$python is not installed"

convert() { # TRACE OPTIONS...: makes the step file $TMP/list of it
    "$python" tutorials/pytorch/kineto2yard.py "$@" >"$TMP/list" 2>"$TMP/said" && return
    cp "$TMP/said" "$TMP/err" # where a check that fails finds what to show
    return 1
}

takes() { # MS LIST OPTIONS...: a step of this step file takes that time
    ms=$1
    shift
    "$YARD" plan --simulate --list "$@" >"$TMP/out" 2>"$TMP/err"
    grep '^simulated step' "$TMP/out" >>"$TMP/err"
    grep -qF "simulated step: $ms ms," "$TMP/out"
}

becomes() { # MS TRACE OPTIONS...: a step of its step file takes that time
    expected=$1
    shift
    convert "$@" && takes "$expected" "$TMP/list"
}

# ---- a trace and its step file ---------------------------------------------------------------------------------------

# One step of the trace, in microseconds from its begin, which is 20 before the batch's op and 1270 before the next
# one's begin.  Every task of the GPU begins 2 after what it waited for; what it waited for is in brackets.
#
#     stream 9    batch 48-108 [its launch]
#     stream 7    linear 110-210 [batch]   relu 262-412 [nobody knows: relu could begin at 212]   linear 414-512
#                 backward 514-714, 716-864, 866-986      AdamW 1140-1240 [second all-reduce]     loss 1242-1250
#     stream 20   all-reduces 716-966 [first backward], 988-1138 [last backward]
#     host        ... until 204, waits for the loss, goes on at 1250, and with the next step at 1270
check 'the step of a trace takes what is known of it: all but 0.050 ms' becomes 1.220 $trace
check 'what is late without a cause in the trace is said' \
    grep -q '^measured: 1.270 ms; late without a cause in the trace: 0.050 ms, of 1 tasks$' "$TMP/said"
check 'three steps of a trace as one list take three times as long' becomes 3.810 $trace --unknown --steps 1-3
check 'the step of a trace takes what was measured with --unknown' becomes 1.270 $trace --unknown

cat >"$TMP/edges" <<'END'
task ampere_sgemm_128x64_tn gpu.compute 100us after=Memcpy_HtoD,aten::linear
task unknown gpu.compute 48us after=aten::relu
task vectorized_elementwise_kernel gpu.compute 150us
task ncclDevKernel_AllReduce_Sum_f32 gpu.download 250us role=reduce after=ampere_sgemm_128x64_nt,nccl:all_reduce
task ncclDevKernel_AllReduce_Sum_f32 gpu.download 150us role=reduce after=ampere_sgemm_128x64_nt,nccl:all_reduce
task multi_tensor_apply_kernel gpu.compute 100us after=ncclDevKernel_AllReduce_Sum_f32,Optimizer.step_AdamW.step
task host host.cpu 20us after=Memcpy_DtoH
END
grep -xFf "$TMP/edges" "$TMP/list" >"$TMP/found"
finds_nothing 'launches, waits between streams and a blocked host are edges' diff "$TMP/edges" "$TMP/found"
grep '^lane' "$TMP/list" >"$TMP/lanes"
check 'streams are lanes by what they do most' holds 'lane gpu.upload gap=2us
lane gpu.compute gap=2us
lane gpu.download gap=2us' "$TMP/lanes"

# ---- what the step file is good for ----------------------------------------------------------------------------------

# The batch takes 30 less.  The second all-reduce still begins after the last backward, and takes 75 less.
check 'a link of twice the speed gives what one finds by hand' takes 1.165 "$TMP/list" --what-if link=2x
# The host has 46 before the batch's launch, and 20 after the loss.
check 'a host of twice the speed gives what one finds by hand' takes 1.237 "$TMP/list" --what-if cpu=2x
check 'without a change the list takes what was measured' takes 1.270 "$TMP/list"
check 'causes name the all-reduce' grep -q '^gpu compute .* link 12%, batch 10%' "$TMP/out"
check 'the critical path names the all-reduce' \
    grep -q '^ncclDevKernel_AllReduce_ *gpu download  *1  *0.150' "$TMP/out"

print_list() { # LIST TO
    "$YARD" plan --list "$1" --print-list >"$2" 2>"$TMP/err"
}
"$YARD" plan --list "$TMP/list" --verify >"$TMP/out" 2>"$TMP/err"
exit_code 'the list is proved' $? 0
check 'the list is printed' print_list "$TMP/list" "$TMP/once"
check 'the printed list is read and printed again' print_list "$TMP/once" "$TMP/twice"
check 'the printed lists are the same' cmp "$TMP/once" "$TMP/twice"
check 'the printed list takes as long' takes 1.270 "$TMP/twice"

# ---- other traces ----------------------------------------------------------------------------------------------------

# The second all-reduce waits for the first of two kernels of one name.
sed '/cudaEventRecord/s/"ts": 2420/"ts": 2376/' $trace >"$TMP/early.json"
early='a task whose name alone would mean another one'
check "$early: the trace is converted" convert "$TMP/early.json"
check "$early: it gets a number" grep -q '^task ampere_sgemm_128x64_nt~2 gpu.compute 200us' "$TMP/list"
check "$early: a wait has that number" \
    grep -q ' 150us role=reduce after=ampere_sgemm_128x64_nt~2,nccl:all_reduce$' "$TMP/list"

# Without the events that tell which stream waits.  An all-reduce of the step before is a guess too many.
grep -v cuda_sync $trace >"$TMP/guess.json"
name='where the trace does not tell which stream waits'
check "$name, the step takes as long" becomes 1.270 "$TMP/guess.json" --unknown
check "$name, waits are guessed" \
    grep -q "after=.*ncclDevKernel_AllReduce_Sum_f32~[0-9]*'\|after=.*ncclDevKernel_AllReduce_Sum_f32'" "$TMP/list"
event='{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 2, "ts": 2396, "dur": 1}'
sed "1a $event," "$TMP/guess.json" >"$TMP/beside.json" # before the second backward, which ran beside an all-reduce
check 'a task that ran beside another one did not wait for it' becomes 1.270 "$TMP/beside.json" --unknown

gzip -c $trace >"$TMP/trace.json.gz"
check 'a trace may be compressed' becomes 1.270 "$TMP/trace.json.gz" --unknown

# Without the marks of steps.  The list goes from 5 after the first begin to 11 before the end.
grep -v ProfilerStep $trace >"$TMP/all.json"
check 'a trace without steps is one list' becomes 3.794 "$TMP/all.json" --unknown

wide=$(printf '\343\202\253%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14) # 14 characters of 3 bytes each
sed "s/ampere_sgemm_128x64_tn/$wide/" $trace >"$TMP/wide.json"
PYTHONIOENCODING=utf-8 becomes 1.270 "$TMP/wide.json" --unknown
exit_code 'a name is no longer in bytes than step files allow' $? 0

# ---- what is no trace of one rank ------------------------------------------------------------------------------------

is_refused() { # TRACE PART OPTIONS...: in one sentence, with PART and without a step file
    refused=$1 part=$2
    shift 2
    ! convert "$refused" "$@" && [ ! -s "$TMP/list" ] && [ "$(wc -l <"$TMP/said")" -eq 1 ] &&
        grep -qF "kineto2yard: $refused $part" "$TMP/said"
}

check 'a file that is not there is refused' is_refused "$TMP/missing" 'is not a trace: '
: >"$TMP/empty"
check 'an empty file is refused' is_refused "$TMP/empty" 'is not a trace: '
head -c 700 "$TMP/trace.json.gz" >"$TMP/short.gz"
check 'the beginning of a compressed trace is refused' is_refused "$TMP/short.gz" 'is not a trace: '
echo '[1, 2]' >"$TMP/array"
check 'an array is refused' is_refused "$TMP/array" 'is not a trace: it has no list traceEvents'
echo '{"traceEvents": 7}' >"$TMP/seven"
check 'a number in place of the events is refused' is_refused "$TMP/seven" 'is not a trace: it has no list traceEvents'
echo '{"traceEvents": [7]}' >"$TMP/nothing"
check 'a number in place of an event is refused' is_refused "$TMP/nothing" 'has no work of a GPU'

check 'a step that the trace does not have is refused' is_refused $trace 'has no step 4, but 1, 2, 3' --steps 4
check 'a step that is no number is refused' is_refused $trace 'has no step x, but 1, 2, 3' --steps 2-x
check 'a step is refused where the trace has none' is_refused "$TMP/all.json" 'has no step 1, but none' --steps 1

refuse_change() { # NAME PART SCRIPT: two checks of the trace as sed changes it by SCRIPT
    sed "$3" $trace >"$TMP/changed.json"
    check "$1: sed changes the trace" differ $trace "$TMP/changed.json"
    check "$1: the trace is refused" is_refused "$TMP/changed.json" "$2"
}

span='span 4, Memcpy HtoD (Pinned -> Device)'
refuse_change 'no last line' 'is not a trace: ' '$d'
refuse_change 'a span without a time' "has no time ts in its $span" 's/"ts": 1048, //'
refuse_change 'a time that is text' "has no time ts in its $span" 's/"ts": 1048/"ts": "1048"/'
refuse_change 'a time that is no number' "has no time ts in its $span" 's/"ts": 1048/"ts": NaN/'
refuse_change 'a negative time' 'has no time dur in its span' 's/"dur": 98/"dur": -98/'
refuse_change 'a span without a name' 'has no name, or no object of args, in its span 10' \
    's/"name": "ampere_sgemm_128x64_tn", //'
refuse_change 'args that are no object' 'has no name, or no object of args, in its span' \
    's/"args": {"device": 0, "stream": 9, "correlation": 1}/"args": 1/'
refuse_change 'a second GPU' 'has work of several GPUs' 's/"device": 0, "stream": 20/"device": 1, "stream": 20/'
refuse_change 'no streams' 'has no work of a GPU' '/"stream":/d'
refuse_change 'no launches' 'has no work of a GPU' 's/"correlation"/"number"/'
finish
