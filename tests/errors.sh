#!/bin/sh
# errors.sh - what a user can get wrong: every mistake has its exit code and a sentence, and harms nothing that is saved.
#
#     refuse CODE 'part of the sentence' WORDS...      yard WORDS ends with CODE, saying "yard: ..." with that part
#
# YARD is the program, TMP an empty folder.  The report is TAP (see run.sh).
set -u
LC_ALL=C # sed and awk go over files of bytes here
export LC_ALL
number=0 failed=0
YARD=${YARD:-./yard}
TMP=${TMP:-$(mktemp -d)}
saved=$TMP/saved/model.safetensors

result() { # ok? name: one line of the report
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=$((failed + 1))
        echo "not ok $number - $2"
        sed 's/^/#   /' "$TMP/err" | head -n 8
    fi
}

refuse() {
    code=$1 part=$2
    shift 2
    $limit "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    got=$?
    wrong=0
    [ "$got" -eq "$code" ] || wrong=1
    grep -qF -- "$part" "$TMP/err" || wrong=1
    [ "$(grep -c '^yard: ' "$TMP/err")" -eq 1 ] || wrong=1 # one sentence, and it is ours
    result $wrong "$* -> $got: $part"
}
limit=
command -v timeout >/dev/null && limit='timeout 60'

train() { # train CODE 'part' OPTIONS...: on the smallest model, with something saved that must survive
    code=$1 part=$2
    shift 2
    refuse "$code" "$part" train --model tiny --steps 2 --sample-tokens 0 --val-batches 1 --save "$TMP/saved" "$@"
}

# ---- what is there before -------------------------------------------------------------------------------------------

"$YARD" train --model tiny --steps 2 --sample-tokens 0 --val-batches 1 --save "$TMP/saved" >"$TMP/out" 2>"$TMP/err"
result $? 'a model is trained and saved'
before=$(cksum <"$saved")
unharmed() { # nothing of the mistakes above changed it or left anything beside it
    [ "$(cksum <"$saved")" = "$before" ] && [ "$(ls -A "$TMP/saved")" = model.safetensors ]
    result $? "the saved model is as it was after $1"
}

# ---- words ----------------------------------------------------------------------------------------------------------

refuse 2 "there is no command 'tran'; did you mean 'train'?" tran
refuse 2 "there is no command '--steps'" --steps 5
refuse 2 'did you mean' train --stesp 5
refuse 2 'steps' train --steps
refuse 2 'steps' train --steps=
refuse 2 'not "ten"' train --steps ten
refuse 2 'steps' train --steps 0
refuse 2 'steps' train --steps 99999999999999999999
refuse 2 'seq-len' train --seq-len -1
refuse 2 'val-share' train --val-share 0.95
refuse 2 'lr' train --lr nan
refuse 2 'beta1' train --beta1 1.5
# numbers are judged as the 32-bit floats that they become
train 2 '--eps takes a number from 1.175494351e-38 to 1, not "1e-50"' --eps 1e-50
for option in lr lr-min clip weight-decay beta1 pace-scale; do
    train 2 "--$option takes" "--$option" 1e-50
done
train 2 'beta1' --beta1 0.99999999
train 2 'beta2' --beta2 1
refuse 2 'temperature' sample --temperature 1e-50
refuse 2 'eps' check tests/data/gpt2-tiny.safetensors --eps 1e-50
printf 'eps = 1e-50\n' >"$TMP/config"
refuse 2 'line 1: eps takes' train --config "$TMP/config"
refuse 2 'device-mem' train --device-mem 12Q
refuse 2 'schedule' train --schedule sine
refuse 2 'gemm' train --gemm fast
refuse 2 'serial' train --serial=yes
refuse 2 'prompt' train --prompt x
refuse 2 "'extra'" train extra
refuse 2 "'extra'" plan extra
refuse 2 "'extra'" devices extra
refuse 2 '--audit runs every task alone: add --serial' train --audit
refuse 2 '--data README.md brings its own vocabulary' plan --vocab 99 --data README.md
refuse 2 'brings its own sizes' plan --vocab 99 --init tests/data/llmc-tiny.bin
refuse 2 "option of another command, not of 'yard train'" train --vocab 99
refuse 2 '--stop-after saves and stops: add --save DIR' train --stop-after 5
train 2 '--stop-after 9 is behind the last step, 2' --stop-after 9
train 2 'warm-up' --warmup 2
train 2 'learning rate' --lr 1e-4 --lr-min 1e-3
printf 'steps = 5\nchanels = 3\n' >"$TMP/config"
refuse 2 'channels' train --config "$TMP/config"
refuse 2 "$TMP/config" train --config "$TMP/config"
refuse 4 "$TMP/none" train --config "$TMP/none"

# ---- sizes ----------------------------------------------------------------------------------------------------------

train 2 '--channels 30 is not a multiple of --heads 4: every head takes an equal part; try --heads 3' --channels 30 --heads 4
train 2 'the nearest that works is 6' --batch 7 --micro-batch 3
train 2 'the nearest that works is 4' --batch 5 -d 0:0x2
train 2 'the nearest that works is 2' --batch 1 -d 0:0x2
train 2 'billion parameters' --layers 1000 --channels 100000 --heads 1
train 2 'seq-len' --seq-len 1000000
unharmed 'wrong sizes'

# ---- data -----------------------------------------------------------------------------------------------------------

: >"$TMP/empty.txt"
printf 'too short' >"$TMP/short.txt"
printf 'a line that is fine\nand one that is not: \303(\n' >"$TMP/latin.txt"
mkdir "$TMP/nothing" "$TMP/mixed"
cp "$TMP/short.txt" "$TMP/mixed/a.txt"
cp tests/data/llmc-tokens.bin "$TMP/mixed/b.bin"
head -c 3001 tests/data/llmc-tokens.bin >"$TMP/cut.bin"
head -c 500 tests/data/llmc-tokens.bin >"$TMP/header.bin"
printf 'abc' >"$TMP/odd.bin"
train 4 "$TMP/none.txt" --data "$TMP/none.txt"
train 4 'none*.txt' --data "$TMP/none*.txt"
train 4 'has no files' --data "$TMP/nothing"
train 2 'mixes kinds of data' --data "$TMP/mixed"
train 2 'is empty' --data "$TMP/empty.txt"
train 2 'but a window of --seq-len 32 needs 33' --data "$TMP/short.txt"
train 2 'byte 41' --tokens chars --data "$TMP/latin.txt"
train 1 "$TMP/cut.bin" --data "$TMP/cut.bin"
train 1 "$TMP/header.bin" --data "$TMP/header.bin"
train 1 "$TMP/odd.bin" --data "$TMP/odd.bin"
train 2 '--order file takes' --data tests/data/llmc-tokens.bin --order file --batch 10000
train 2 'both must be text or both tokens' --data README.md --val-data tests/data/llmc-tokens.bin
train 2 'is empty' --val-data "$TMP/empty.txt"
train 2 "but the model's vocabulary is 67" --init tests/data/gpt2-tiny.safetensors --data tests/data/llmc-tokens.bin
unharmed 'wrong data'

# ---- models ---------------------------------------------------------------------------------------------------------

st=tests/data/gpt2-tiny.safetensors
llmc=tests/data/llmc-tiny.bin
head -c 300000 $st >"$TMP/cut.safetensors"
head -c 100 $st >"$TMP/header.safetensors"
head -c 5 $st >"$TMP/five.safetensors"
{ printf '\377\377\377\377\377\377\377\177' && tail -c +9 $st; } >"$TMP/huge.safetensors"
{ head -c 8 $st && printf '?' && tail -c +10 $st; } >"$TMP/json.safetensors"
# the same number of bytes, another shape, another name
sed 's/\[48, 144\]/[144, 48]/' $st >"$TMP/shape.safetensors"
sed 's/"h\.1\.ln_1\.weight"/"h.1.ln_7.weight"/' $st >"$TMP/name.safetensors"
sed 's/"h\.0\.ln_2\.bias"/"h.0.ln_7.bias"/' $st >"$TMP/bias.safetensors"
sed 's/n_head/n_hand/' $st >"$TMP/heads.safetensors"
head -c 2000 /dev/zero >"$TMP/zeros.bin" # tokens of any vocabulary
head -c 200000 $llmc >"$TMP/cut-llmc.bin"
{ head -c 4 $llmc && printf '\011' && tail -c +6 $llmc; } >"$TMP/version-llmc.bin"
{ printf 'xxxx' && tail -c +5 $llmc; } >"$TMP/magic-llmc.bin"
for file in cut.safetensors header.safetensors five.safetensors huge.safetensors json.safetensors; do
    train 1 "$TMP/$file" --init "$TMP/$file"
    refuse 1 "$TMP/$file" check "$TMP/$file"
done
train 1 'has shape [144, 48], expected [48, 144]' --init "$TMP/shape.safetensors" --data "$TMP/zeros.bin"
refuse 1 'has no tensor h.1.ln_1.weight' check "$TMP/name.safetensors"
refuse 1 'has no tensor h.0.ln_2.bias' check "$TMP/bias.safetensors"
refuse 1 'cannot tell how many heads' check "$TMP/heads.safetensors"
train 1 "$TMP/cut-llmc.bin" --init "$TMP/cut-llmc.bin"
train 1 'version' --init "$TMP/version-llmc.bin"
train 1 "$TMP/magic-llmc.bin" --init "$TMP/magic-llmc.bin"
train 4 "$TMP/none" --init "$TMP/none"
train 2 'brings its own sizes' --init $llmc --channels 64
train 2 'longer than the 64 positions' --init $llmc --seq-len 65
refuse 2 'needs --from' sample
refuse 4 "$TMP/none" sample --from "$TMP/none"
refuse 4 "$TMP/nothing" sample --from "$TMP/nothing"
refuse 1 "$TMP/cut.safetensors" sample --from "$TMP/cut.safetensors"
refuse 2 '--prompt is empty' sample --from "$saved" --prompt ''
refuse 2 'takes one reference file' check
refuse 1 'needs tokens and targets' check "$saved"
unharmed 'wrong models'

# ---- devices --------------------------------------------------------------------------------------------------------

refuse 2 'expected P:D' train -d 0
refuse 2 'expected P:D' train -d 0:0,
refuse 2 'expected P:D' train -d 0:0/0
refuse 2 'expected P:D' train -d gpu
refuse 3 'run `yard devices`' train -d 77:0
refuse 3 'run `yard devices`' train -d 0:99
refuse 2 'can be cut into at most' train -d 0:0/999
refuse 2 'more than 16 devices' train -d 0:0x17
refuse 2 'compute units' train -d 0:0,0:0
refuse 2 'mesh' train -d 0:0x2 --mesh dp=3
refuse 2 'mesh' train --mesh pp=2
refuse 2 'mesh' train --mesh rows
train 2 '--device-mem' --device-mem 200K
train 2 'task ' --device-mem 700K
train 2 'tensor ' --device-mem 700K
train 2 'KiB' --device-mem 700K
grep -q '^step ' "$TMP/out"
result $((! $?)) 'what does not fit is refused before the first step'
train 2 '--host-mem' --host-mem 1K
refuse 2 '--device-mem' plan --model gpt2 --device-mem 1G
OCL_ICD_VENDORS=/nonexistent
export OCL_ICD_VENDORS
refuse 3 'no OpenCL driver is installed' devices
train 3 'no OpenCL driver is installed'
unset OCL_ICD_VENDORS
if "$YARD" devices | grep -q 'Portable Computing Language'; then
    POCL_DEVICES= # PoCL then offers none
    export POCL_DEVICES
    refuse 3 'offer no device' devices
    refuse 3 'offer no device' devices --json
    grep -q '"devices":\[\]' "$TMP/out"
    result $? 'devices --json prints its empty list too'
    unset POCL_DEVICES
    cache=${POCL_CACHE_DIR-}
    for POCL_CACHE_DIR in "$TMP/short.txt" "$TMP/short.txt/x"; do # not below a regular file, not even as root
        export POCL_CACHE_DIR
        train 4 "cannot keep compiled kernels in $POCL_CACHE_DIR "
    done
    refuse 3 'set POCL_CACHE_DIR to a folder' devices --json
    unset POCL_CACHE_DIR
    (unset XDG_CACHE_HOME; HOME=$TMP/short.txt exec "$YARD" plan --model tiny) >"$TMP/out" 2>"$TMP/err"
    [ $? -eq 4 ] && grep -q "$TMP/short.txt/.cache/pocl/kcache" "$TMP/err"
    result $? 'an unusable HOME is named'
    POCL_CACHE_DIR=$cache # empty: as if it was not set
    export POCL_CACHE_DIR
    "$YARD" devices >"$TMP/out" 2>"$TMP/err"
    result $? 'an empty POCL_CACHE_DIR is none'
fi
unharmed 'wrong devices'

# ---- files that cannot be written -----------------------------------------------------------------------------------

# Below a regular file nothing can be made, not even by root.
below=$TMP/short.txt/x
train 4 "$below" --log "$below"
train 4 "$below" --trace "$below"
refuse 4 "$TMP/short.txt" train --model tiny --steps 2 --sample-tokens 0 --val-batches 1 --save "$below"
[ -c /dev/full ] && train 4 'is the disk full?' --log /dev/full
unharmed 'files that cannot be written'

# ---- kernels --------------------------------------------------------------------------------------------------------

cp -r cl "$TMP/cl"
YARD_KERNELS=$TMP/cl
export YARD_KERNELS
line=$(grep -n 'float sum = accumulate' "$TMP/cl/loss.cl" | cut -d: -f1)
sed "${line}s/float/flaot/" cl/loss.cl >"$TMP/cl/loss.cl"
train 1 "$TMP/cl/loss.cl:$line" # the compiler's own message, with the file and its line
cp cl/loss.cl "$TMP/cl/loss.cl"
sed 's/void add(/void sum(/' cl/elementwise.cl >"$TMP/cl/elementwise.cl"
train 1 'kernel add in cl/elementwise.cl: CL_INVALID_KERNEL_NAME'
sed 's/void add(/void add(int more, /' cl/elementwise.cl >"$TMP/cl/elementwise.cl"
train 1 'does the .cl file still take the same arguments?'
rm "$TMP/cl/elementwise.cl"
train 4 "$TMP/cl/elementwise.cl"
unset YARD_KERNELS
unharmed 'damaged kernels'

# ---- help -----------------------------------------------------------------------------------------------------------

"$YARD" --help >"$TMP/out" 2>"$TMP/err"
result $? 'yard --help'
for command in $(awk '/^  [a-z]/ { print $1 }' "$TMP/out"); do
    "$YARD" "$command" --help >"$TMP/help" 2>"$TMP/err" && grep -q "^usage: yard $command" "$TMP/help" && [ ! -s "$TMP/err" ]
    result $? "yard $command --help"
done
complete=0 # every option of the interface that this version has, and no line too long for a terminal
"$YARD" train --help >"$TMP/help" 2>"$TMP/err"
for option in model layers heads channels seq-len init config data tokens order val-data val-share val-every val-batches \
    batch micro-batch steps stop-after lr schedule warmup beta1 beta2 weight-decay clip seed devices mesh device-mem \
    host-mem gemm oversubscribe serial audit trace log save save-every; do
    grep -q -E -- "--$option( |$)" "$TMP/help" || { complete=1 && echo "no --$option in the help" >>"$TMP/err"; }
done
[ "$(awk 'length > 100' "$TMP/help" | wc -l)" -eq 0 ] || complete=1
result $complete 'yard train --help is complete'

echo "1..$number"
[ "$failed" -eq 0 ]
