# gpu_rows.sh - the questions that gpu.sh asks a device, a function for each kind of row.  gpu.sh reads it by
# `. tests/machines/gpu_rows.sh`; its ask_all() has the rows.
#
# A function runs yard's commands and answers by its exit code: 0 ok, 77 skipped, else FAIL.  It has these of gpu.sh:
#
#     run WORDS...       runs them within the row's time; the report shows them
#     quietly WORDS...   runs them within the row's time; the report does not show them
#     figure WORDS...    what the row's line shows
#     pass_over WHY      figure WHY, and the code 77: `pass_over WHY; return`
#
# and the variables $device (P:D), $about (what `yard devices --json` says of it), $log (what the row's commands have
# printed), $tmp, and $on (options of a long training there).  For example, the row "gradients" is
#
#     gradients() {
#         run "$YARD" check --gradients -d $device || return
#         figure "$(sed -n 's/^passed: //p' $log)"
#     }

# ---- does it compute what it should? ---------------------------------------------------------------------------------

golden() { # loss, gradients and updates are those that PyTorch computed
    run "$YARD" check tests/data/gpt2-tiny.safetensors -d "$device"
    code=$?
    figure "$(worst_in "$log" | tail -n 1)"
    return $code
}

gradients() { # they agree with finite differences
    run "$YARD" check --gradients -d "$device" || return
    figure "$(sed -n 's/^passed: //p' "$log")"
}

show_alone() { # the driver whose first device is the chosen one, which is 0:0 then
    name=$(echo "$about" | json_value - name)
    for icd in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd; do
        rm -rf "$tmp/alone"
        mkdir "$tmp/alone"
        cp "$icd" "$tmp/alone"
        # shellcheck disable=SC2030 # for this one command
        first=$(export OCL_ICD_VENDORS="$PWD/$tmp/alone" && list_devices 2>/dev/null | grep '"id":"0:0"' |
            json_value - name)
        [ "$first" = "$name" ] || continue
        # shellcheck disable=SC2031 # for all that come after
        export OCL_ICD_VENDORS="$PWD/$tmp/alone"
        return
    done
    pass_over "no driver has this device as its first"
}

kernels() { # the tests of kernels pass: each kernel against plain C
    [ "$device" = 0:0 ] || show_alone || return # the tests take 0:0
    export TMP="$tmp" YARD CMOCKA_MESSAGE_OUTPUT=TAP
    code=0
    for test in $kernel_tests; do
        run "$programs/$test" || code=$?
    done
    all=$(awk -F '[.][.]' '/^1[.][.]/ { n += $2 } END { print n + 0 }' "$log") # of lines 1..N
    failed=$(sed -n 's/^not ok [0-9]* - /, not /p' "$log" | tr -d '\n')
    figure "$(grep -c '^ok' "$log") of $all tests, each in six shapes$failed"
    return $code
}

# ---- does it give the bits of the serial run? ------------------------------------------------------------------------

nano='--model nano --batch 4 --steps 4 --clip 0 --val-batches 1 --sample-tokens 0'

median() { # NAME LOG: of a value that each step has
    json_values "$2" "$1" | sort -n | awk '
        { x[NR] = $1 }
        END { printf "%.1f", x[int((NR + 1) / 2)] }'
}

# The serial run with these options, in the folder $serial, unless it is there already; sets: serial.
train_serial() { # OPTIONS
    serial=$tmp/serial$(echo "$1" | tr ' :/' '_')
    if [ -d "$serial" ]; then
        return 0
    fi
    rm -rf "$serial.new"
    # shellcheck disable=SC2086 # options
    run "$YARD" train $nano $1 --serial --save "$serial.new" || return
    mv "$serial.new" "$serial"
}

has_serial_bits() { # 'OPTIONS' 'PASSES': parameters and AdamW's state are those of the serial run without passes
    train_serial "$1" || return
    rm -rf "$tmp"/state*
    # shellcheck disable=SC2086 # options
    run "$YARD" train $nano $1 $2 --save "$tmp/state" --log "$tmp/state.jsonl" || return
    if ! quietly "$YARD" ckpt diff "$serial" "$tmp/state"; then
        figure "$(grep ' differ' "$log" | tail -n 1)"
        return 1
    fi
    cmp "$serial/model.safetensors" "$tmp/state/model.safetensors" || return
    if [ -e "$tmp/state.snap" ]; then
        quietly "$YARD" ckpt diff "$serial" "$tmp/state.snap" || return
    fi
    tensors=$(sed -n 's/.*: 0 of \([0-9]*\) tensors differ/\1/p' "$log" | tail -n 1)
    figure "$tensors tensors to the bit, $(median ms "$tmp/state.jsonl") ms a step"
}

on_the_cpu() { # updates on the CPU give the device's bits only where that rounds as the CPU does
    case $about in
    *'"correctly_rounded_divide_sqrt":true'*) has_serial_bits "$@" ;;
    *) pass_over "the device rounds divide and square root in its own way, and so the CPU's updates have other bits" ;;
    esac
}

peak_bytes() { # OPTIONS: of training; nothing where it does not fit
    timeout 20 "$YARD" plan "$@" -d "$device" --json 2>/dev/null | json_value - together
}

less_memory() { # the same bits where swapping must make do with 70 % of the peak
    budget=$(peak_bytes --model nano --batch 4 --clip 0 | awk '{ printf "%d", 0.7 * $1 }')
    has_serial_bits "-d $device" "--swap auto --device-mem $budget" || return
    figure "$(cat "$tmp/figure") in 70 % of the memory"
}

# In a forced shape a GPU computes our products too: slowly, with bits that no number of devices changes.
in_own_shape() {
    export YARD_VEC=1
    "$@"
}

flash() { # its bits follow from the options alone, and its losses are near those of plain attention
    if ! "$YARD" train --help | grep -q -e '--attention '; then
        pass_over "this program has no --attention"
        return
    fi
    has_serial_bits "-d $device --attention flash" '' || return
    losses "$tmp/plain" quietly "$YARD" train -d "$device" || return
    losses "$tmp/flash" quietly "$YARD" train -d "$device" --attention flash && agree "$tmp/plain" "$tmp/flash"
}

pair() { # two platforms in one run: the losses are those of one
    other=$(grep '"type":"CPU"' "$tmp/devices" | json_values - id | grep -v "^${device%:*}:" | head -n 1)
    if [ -z "$other" ]; then
        pass_over "no CPU driver beside the device's"
        return
    fi
    losses "$tmp/one" run "$YARD" train -d "$device" || return
    losses "$tmp/both" run "$YARD" train -d "$device,$other" && agree "$tmp/one" "$tmp/both" || return
    figure "$device and $other: the last loss $(tail -n 1 "$tmp/both"), alone $(tail -n 1 "$tmp/one")"
}

cache() { # the second start takes its kernels from YARD_CACHE
    rm -rf "$tmp/cache" && mkdir "$tmp/cache"
    export YARD_CACHE="$tmp/cache"
    golden && golden && figure "$(cat "$tmp/figure"); $(ls "$tmp/cache" | wc -l) files kept"
}

# ---- how fast is it? -------------------------------------------------------------------------------------------------

# Its lines "projections, weighted by FLOPs: own 61.2 % of peak, CLBlast 93.1 % of peak" and "training: 8.2 ms per
# step (median ..." give the words ", products 93.1 %, training 8.2 ms per step" of the figure.
bench() { # OPTIONS...
    run "$YARD" bench "$@" -d "$device"
    code=$?
    ! grep -q '^FMA peak' "$log" || cp "$log" "$tmp/bench.txt" # peak() reads it
    more=$(sed -n 's/^proj.* \([0-9.]*\) %.*/, products \1 %/p; s/^training: \(.*\) (median.*/, training \1/p' "$log" |
        tr -d '\n')
    figure "$(peak 'FMA peak:*') GFLOP/s, $(peak copy) GB/s$more"
    return $code
}

peak() { # NAME: GFLOP/s or GB/s, of the last bench
    sed -n "s/.*$1 \([0-9.]*\) G.*/\1/p" "$tmp/bench.txt" 2>/dev/null | tail -n 1
}

is_true() { # of an expression of awk
    awk "BEGIN { exit !($1) }"
}

# $model and $batch: the largest of which 20 steps take a minute at a quarter of the FMA peak, in 80 % of the memory.
choose_size() { # sets: model, batch
    memory=$(echo "$about" | json_value - memory)
    while read -r model batch gflop; do # gflop: of a sequence, forward and backward
        is_true "20 * $batch * $gflop < 60 * 0.25 * 0$(peak 'FMA peak:*')" || continue
        bytes=$(peak_bytes --model "$model" --vocab 256 --batch "$batch" </dev/null)
        is_true "$bytes + 0 && $bytes < 0.8 * $memory" && return
    done <<SIZES
gpt2 16 581
gpt2 8 581
gpt2 4 581
gpt2 2 581
gpt2 1 581
char 8 17.4
nano 12 0.34
SIZES
    model=nano batch=12
}

trains() { # OPTIONS: of $model; after 20 steps the loss is lower than at first
    # shellcheck disable=SC2086 # options
    run "$YARD" train --model "$model" --batch "$batch" $on "$@" --steps 20 --trace "$tmp/train.trace" \
        --log "$tmp/train.jsonl" || return
    json_values "$tmp/train.jsonl" loss >"$tmp/losses"
    figure "$model, $batch sequences: loss $(sed -n 1p "$tmp/losses") to $(sed -n 20p "$tmp/losses")," \
        "$(median ms "$tmp/train.jsonl") ms a step, $(median tokens_per_s "$tmp/train.jsonl") tokens/s"
    awk 'NR == 1 { first = $1 } END { exit !(NR == 20 && $1 < first) }' "$tmp/losses"
}

planned() { # a step that is simulated from measured times, beside the median of those that ran
    run "$YARD" profile -o "$tmp/gpu.profile" --model "$model" --batch "$batch" -d "$device" --data self || return
    run "$YARD" plan --simulate --profile "$tmp/gpu.profile" --model "$model" --batch "$batch" --vocab 256 || return
    figure "$(sed -n 's/^simulated step: \([0-9.]* ms\).*/\1/p' "$log"), run: $(median ms "$tmp/train.jsonl") ms"
}

summary() { # of that training's trace, for which tell_kernel_times() needs it too
    run "$YARD" trace summary "$tmp/train.trace" >"$tmp/summary.txt" || return
    quietly "$YARD" trace summary --json "$tmp/train.trace" >"$tmp/summary.json" || return
    figure "$(awk -f tests/machines/busy.awk "$tmp/summary.txt")"
}

copies() { # of the time in which copies ran, the share in which a kernel ran too
    few=$batch # sequences
    [ "$few" -lt 4 ] || few=4
    # shellcheck disable=SC2086 # options
    run "$YARD" train --model "$model" --batch "$few" $on --steps 6 --swap layer --trace "$tmp/copies.trace" || return
    run "$YARD" trace export "$tmp/copies.trace" --steps 2: --chrome "$tmp/copies.json" || return
    awk -v device="$device" -f tests/machines/copies_under_kernels.awk "$tmp/copies.json" >"$tmp/figure"
}
