# driver_rows.sh - what drivers.sh and gpu.sh both ask of a device.  They read it by `. tests/machines/driver_rows.sh`.
#
# $tmp is a folder, $log the file that takes what the program prints.
. tests/lib/json.sh

losses() { # FILE WORDS: `WORDS yard train`, its losses into FILE, a line each
    file=$1
    shift
    rm -f "$file.jsonl"
    "$@" --log "$file.jsonl" --model nano --layers 2 --seq-len 32 --batch 4 --steps 5 --sample-tokens 0 \
        --val-batches 1 --data README.md >"$log" 2>&1 || return
    json_values "$file.jsonl" loss >"$file"
}

agree() { # EXPECTED LOSSES: five or more, equal within the rounding of other orders
    paste "$1" "$2" >>"$log"
    paste "$1" "$2" | awk '
        {
            difference = $1 - $2
            if (difference ^ 2 > 1e-8 * $1 ^ 2 || $2 == "")
                wrong = 1
        }
        END { exit wrong || NR < 5 }'
}

# "passed: 59 tensors, the worst is ln_f.bias with 1.4e-07; tolerance 1.0e-05" gives "worst 1.4e-07, ln_f.bias".
worst_in() { # FILE: the largest error that `yard check` has printed there
    sed -n 's/.* is \(.*\) with \(.*\);.*/worst \2, \1/p' "$1"
}
