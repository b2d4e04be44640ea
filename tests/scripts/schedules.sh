#!/bin/sh
# schedules.sh - training on four devices by the schedules that PyTorch wrote (data/pytorch).
#
# This script checks that the bits are those of one device, whatever delays the ends of tasks have, and also with
# passes, whose lists must be proved.
#
#     SEEDS=100 tests/scripts/schedules.sh     100 more delays with each schedule (default 4)
#
# A delay is a number for --delay-seed, which lets tasks end late at random.  Most trainings have one of their own.
#
# LoopedBFS has sums of another order, and is refused.
#
# To see it fail: in write_turns() of schedule_order.c, turn the order of micro-batches round: micros - 1 - micro.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

seeds=${SEEDS:-4}

of_one() { # VERB OPTION...: the verb of yard, for the model on one device, if no option names more
    verb=$1
    shift
    yard "$verb" --model tiny --layers 8 --seq-len 16 --batch 8 --gemm own "$@"
}

of_four() { # VERB OPTION...: the same on four devices
    of_one "$@" -d 0:0x4 --mesh pp=4 --micro-batch 1
}

train_and_save() { # of_one|of_four FOLDER [OPTION...]: trains the model on so many devices, and saves it there
    devices=$1 folder=$2
    shift 2
    "$devices" train --data LICENSE --steps 3 --val-batches 1 --sample-tokens 0 --save "$folder" "$@"
}

has_bits_of() { # FOLDER FOLDER
    cmp "$1/model.safetensors" "$2/model.safetensors" >"$TMP/err" 2>&1
}

trains_as() { # FOLDER [OPTION...]: on four devices with these options the model has the bits of the one in FOLDER
    expected=$1
    shift
    train_and_save of_four "$TMP/four" "$@" && has_bits_of "$TMP/four" "$expected"
    code=$?
    rm -rf "$TMP/four"
    return "$code"
}

# ---- one device ------------------------------------------------------------------------------------------------------

for clip in 1 0; do
    check "one device trains with --clip $clip" train_and_save of_one "$TMP/one-clip$clip" --clip $clip
    check "one device trains with --untied --clip $clip" \
        train_and_save of_one "$TMP/untied-clip$clip" --untied --clip $clip
done

# ---- four devices ----------------------------------------------------------------------------------------------------

# The other trainings of a schedule have delays 1 to 7.
has_bits_with_delays() { # FILE: with $seeds delays more
    seed=8
    while [ "$seed" -lt $((8 + seeds)) ]; do
        trains_as "$TMP/one-clip1" --pipeline "$1" --delay-seed "$seed" || return 1
        seed=$((seed + 1))
    done
}

has_bits_with_passes() { # FILE DELAY FOLDER OPTION...: two checks with these passes, of the bits and the list
    schedule=$1 delay=$2 one=$3
    shift 3
    check "$schedule has the same bits with $*" trains_as "$one" --pipeline "$schedule" --delay-seed "$delay" "$@"
    check "$schedule: the list is proved with $*" of_four plan --pipeline "$schedule" "$@" --verify
}

for file in data/pytorch/*.csv; do
    case $file in
    *LoopedBFS*)
        refuse 2 'LoopedBFS.4.8.csv, row 1, cell 17: "4B7"' \
            train --model tiny --layers 8 -d 0:0x4 --mesh pp=4 --batch 8 --micro-batch 1 --pipeline "$file"
        continue ;;
    esac
    check "$file has the bits of one device" trains_as "$TMP/one-clip1" --pipeline "$file"
    check "$file --clip 0 has the bits of one device" \
        trains_as "$TMP/one-clip0" --pipeline "$file" --clip 0 --delay-seed 1
    check "$file --untied has the bits of one device" \
        trains_as "$TMP/untied-clip1" --pipeline "$file" --untied --delay-seed 2
    check "$file --untied --clip 0 has the bits of one device" \
        trains_as "$TMP/untied-clip0" --pipeline "$file" --untied --clip 0 --delay-seed 3
    has_bits_with_passes "$file" 4 "$TMP/one-clip1" --recompute full
    has_bits_with_passes "$file" 5 "$TMP/one-clip1" --swap layer
    has_bits_with_passes "$file" 6 "$TMP/one-clip0" --overlap all-cpu --clip 0
    has_bits_with_passes "$file" 7 "$TMP/one-clip1" --recompute selective --swap microbatch
    check "$file has them with $seeds delays more" has_bits_with_delays "$file"
done

# Two such pipelines, which share out all that ZeRO-3 shares.
check 'one device trains with --grad-groups 2' \
    train_and_save of_one "$TMP/one" --batch 16 --grad-groups 2 --micro-batch 1
for file in DualPipeV InterleavedZeroBubble; do
    name="$file with dp=2 and --zero 3"
    check "$name trains" \
        train_and_save of_one "$TMP/eight" -d 0:0x8 --mesh dp=2,pp=4 --batch 16 --micro-batch 1 --zero 3 \
        --pipeline data/pytorch/$file.4.8.csv
    check "$name has the bits of one device" has_bits_of "$TMP/eight" "$TMP/one"
    rm -rf "$TMP/eight"
done

# The passes rewrite the list of a schedule too.
proved_as_list() { # OPTION...: of a pass
    check "a schedule as a list is proved with $*" \
        yard plan --list data/pytorch/GPipe.4.8.csv "$@" --simulate --verify
}
proved_as_list --recompute full
proved_as_list --swap auto --device-mem 15M
finish
