#!/bin/sh
# schedules.sh - training by the schedules that PyTorch wrote (data/pytorch), on four devices whose tasks end late at
# random: the bits are those of one device, whatever the delays; and with passes, whose lists are proved.
#
#     SEEDS=20       delays to try with each schedule
#
# LoopedBFS has sums of another order, and is refused.
. tests/run/helpers.sh

model="--model tiny --layers 8 --seq-len 16 --batch 8 --gemm own"
four="-d 0:0x4 --mesh pp=4 --micro-batch 1"
train() { # FOLDER [OPTION...]
    folder=$1
    shift
    "$YARD" train $model --data LICENSE --steps 3 --val-batches 1 --sample-tokens 0 --save "$folder" "$@" \
        >"$TMP/out" 2>"$TMP/err"
}
has_bits_of() { # FOLDER FOLDER
    cmp "$1/model.safetensors" "$2/model.safetensors" >"$TMP/err" 2>&1
}

for file in data/pytorch/*.csv; do
    case $file in
    *LoopedBFS*)
        train "$TMP/refused" $four --pipeline "$file"
        [ $? -eq 2 ] && grep -q "LoopedBFS.4.8.csv, row 1, cell 17: '4B7'" "$TMP/err"
        result $? "$file is refused, by its cell"
        continue ;;
    esac
    for tied in '' --untied; do
        for clip in 1 0; do
            one=$TMP/one$tied$clip
            [ -d "$one" ] || train "$one" $tied --clip $clip
            train "$TMP/four" $four --pipeline "$file" $tied --clip $clip && has_bits_of "$TMP/four" "$one"
            result $? "$file${tied:+ $tied} --clip $clip has the bits of one device"
            rm -rf "$TMP/four"
        done
    done
    seed=1
    while [ $seed -le "${SEEDS:-20}" ]; do
        train "$TMP/four" $four --pipeline "$file" --delay-seed $seed && has_bits_of "$TMP/four" "$TMP/one1" || break
        rm -rf "$TMP/four"
        seed=$((seed + 1))
    done
    [ $seed -gt "${SEEDS:-20}" ]
    result $? "$file has them with ${SEEDS:-20} delays (so far: $((seed - 1)))"
    for passes in '--recompute full' '--swap layer' '--overlap all-cpu --clip 0' \
        '--recompute selective --swap microbatch'; do
        one=$TMP/one1
        [ "${passes%--clip 0}" = "$passes" ] || one=$TMP/one0
        train "$TMP/four" $four --pipeline "$file" $passes && has_bits_of "$TMP/four" "$one"
        result $? "$file has the same bits with $passes"
        rm -rf "$TMP/four"
        "$YARD" plan $model $four --pipeline "$file" $passes --verify >"$TMP/out" 2>"$TMP/err"
        result $? 'whose list is proved'
    done
done

# Two such pipelines, which share out all that ZeRO-3 shares.
train "$TMP/one" --batch 16 --grad-groups 2 --micro-batch 1
for file in DualPipeV InterleavedZeroBubble; do
    train "$TMP/eight" -d 0:0x8 --mesh dp=2,pp=4 --batch 16 --micro-batch 1 --zero 3 \
        --pipeline data/pytorch/$file.4.8.csv && has_bits_of "$TMP/eight" "$TMP/one"
    result $? "$file with dp=2 and --zero 3 has the bits of one device"
    rm -rf "$TMP/eight"
done

# The passes rewrite the list of a schedule too.
for passes in '--recompute full' '--swap auto --device-mem 15M'; do
    "$YARD" plan --list data/pytorch/GPipe.4.8.csv $passes --simulate --verify >"$TMP/out" 2>"$TMP/err"
    result $? "a schedule as a list is proved with $passes"
done
finish
