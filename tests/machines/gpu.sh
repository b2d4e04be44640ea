#!/bin/sh
# gpu.sh - what a GPU does with this program, as one text report: build/gpu-report.txt.
#
#     make gpu                    the first GPU among the OpenCL platforms
#     make gpu DEVICE=1:0         that device, whatever it is
#     YARD_VEC=1 YARD_WG=64 YARD_SEPARATE_CONTEXTS=1 make gpu         no GPU: the first device as if it were one
#     make gpu-pack               leaves build/gpu-kit, for a machine without the packages and without a network
#
# Each row is a question to the device, with its commands, its figure, and ok, FAIL, skipped or not run.  A row that
# fails stops no other.  All end within GPU_SECONDS (520): each row has a limit, those of most worth come first, and
# what no longer fits is listed as not run.  Exit code 1 when a row failed, 3 when there is no GPU.
#
# The kit is used when src/make/packages.sh misses something: CPATH and LIBRARY_PATH show it to the compiler,
# LD_LIBRARY_PATH to the loader.  Without a compiler the kit's own programs run.  A driver that lies on the disk
# without an .icd file, as in many containers, is registered through OCL_ICD_VENDORS.
set -u
YARD=${YARD:-./yard}
MAKE=${MAKE:-make}
unset MAKEFLAGS MAKELEVEL # of the make that called this: its builds take all cores
kit=$PWD/build/gpu-kit
report=build/gpu-report.txt
programs=build/tests # a folder with the tests of kernels
kernel_tests="test_kernels test_kernels_sums test_kernels_products test_kernels_attention"
tmp=build/gpu # with a row's `figure` and `commands`, and the `results` of all rows
log=$tmp/log  # what the row's commands print
begin=$(date +%s)
end=$((begin + ${GPU_SECONDS:-520}))
. tests/machines/driver_rows.sh

# ---- the machine ----------------------------------------------------------------------------------------------------

no_gpu() {
    echo "no GPU here: $1.  To take the first device as if it were one:" \
        "YARD_VEC=1 YARD_WG=64 YARD_SEPARATE_CONTEXTS=1 make gpu"
    exit 3
}

# A driver that no .icd file names gets one.  Its folder also holds what it loads.
find_drivers() {
    registered=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}
    for library in /usr/lib/*-linux-gnu/libnvidia-opencl.so.* /usr/lib64/libnvidia-opencl.so.* \
        /usr/local/nvidia/lib*/libnvidia-opencl.so.* /usr/lib/wsl/lib/libnvidia-opencl.so.* \
        /opt/rocm*/lib/libamdocl64.so /usr/lib/*-linux-gnu/intel-opencl/libigdrcl.so; do
        stem=$(basename "$library" | sed 's/\.so.*//')
        [ -e "$library" ] || continue
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$(dirname "$library")
        export LD_LIBRARY_PATH
        grep -qs "$stem" "$registered"/*.icd $tmp/vendors/*.icd && continue
        mkdir -p $tmp/vendors
        cp "$registered"/*.icd $tmp/vendors 2>/dev/null
        echo "$library" >"$tmp/vendors/$stem.icd"
        export OCL_ICD_VENDORS="$PWD/$tmp/vendors"
    done
}

build() { # ./yard and the tests of kernels, with the kit where packages are missing
    missing=$(src/make/packages.sh name build tests)
    if [ -n "$missing" ] && [ -d "$kit" ]; then
        export CPATH="$kit/include" LIBRARY_PATH="$kit/lib" LD_LIBRARY_PATH="$kit/lib:${LD_LIBRARY_PATH:-}"
        missing=$(src/make/packages.sh name build tests)
        case $missing in *driver*) no_gpu "no OpenCL driver is installed" ;; esac
        case $missing in *compiler*)
            YARD=$kit/bin/yard programs=$kit/bin
            chmod +x "$programs"/*
            return ;;
        esac
    fi
    set -- "$YARD"
    for test in $kernel_tests; do
        set -- "$@" "$programs/$test"
    done
    $MAKE --no-print-directory TEST_NEEDS=tests "$@" >$tmp/build.log 2>&1 && return
    tail -n 20 $tmp/build.log
    [ -z "$missing" ] || echo "Or, on a machine with a network: make gpu-pack.  Then copy its build/gpu-kit here."
    exit 1
}

list_devices() { # a line of JSON for each device
    "$YARD" devices --json | tr '{' '\n' | grep '"id"'
}

choose_device() { # $device is P:D, $about what `yard devices --json` says of it
    list_devices >$tmp/devices 2>$log
    device=${DEVICE:-$(grep '"type":"GPU"' $tmp/devices | json_value - id)}
    [ -n "$device" ] || [ -z "${YARD_VEC:-}" ] || device=$(json_value $tmp/devices id)
    cat $log
    [ -n "$device" ] || no_gpu "OpenCL devices: $(json_values $tmp/devices name | paste -s -d , - | sed 's/^$/none/')"
    about=$(grep "\"id\":\"$device\"" $tmp/devices) || no_gpu "yard devices lists no $device"
}

# ---- rows -----------------------------------------------------------------------------------------------------------

say() { # on the screen and in the report
    echo "$*"
    echo "$*" >>$report
}

figure() { # what the row's line shows
    echo "$*" >$tmp/figure
}

skip() { # WHY: its code, 77, makes a row "skipped"
    figure "$*"
    return 77
}

quietly() { # WORDS: run them within the row's time
    seconds=$((row_end - $(date +%s)))
    [ $seconds -gt 0 ] || return 124
    timeout --foreground -k 5 $seconds "$@"
}

run() { # WORDS: the report shows them too
    echo "        \$ $*" >>$tmp/commands
    quietly "$@"
}

row() { # NAME SECONDS WORDS: the function WORDS says by its exit code how it went
    name=$1
    start=$(date +%s)
    set_limit "$2"
    shift 2
    rm -f $tmp/figure $tmp/commands $log
    if [ $((end - start)) -lt 5 ]; then
        state='not run'
    else
        ("$@") >>$log 2>&1
        judge_row $?
    fi
    took=$(($(date +%s) - start))
    say "$(printf '%-7s %-24s %3d s  %s' "$state" "$name" $took "$(cat $tmp/figure 2>/dev/null)")"
    cat $tmp/commands >>$report 2>/dev/null
    [ "$state" != FAIL ] || say "$(grep -v '^ok [0-9]' $log | tail -n 12 | sed 's/^/      | /')"
    echo "$state" >>$tmp/results
}

set_limit() { # SECONDS: the row ends at $row_end, and is $cut_off if that ends it
    row_end=$((start + $1))
    cut_off=FAIL
    if [ $row_end -gt $end ]; then # the end of all rows, for which this one is not to blame
        row_end=$end
        cut_off='not run'
    fi
}

judge_row() { # CODE: sets $state
    state=FAIL
    if [ "$1" -eq 0 ]; then
        state=ok
    elif [ "$1" -eq 77 ]; then
        state=skipped
    elif [ "$(date +%s)" -ge $row_end ]; then
        state=$cut_off
        figure "cut off after $((row_end - start)) s"
    fi
}

golden() {
    run "$YARD" check tests/data/gpt2-tiny.safetensors -d $device
    code=$?
    figure "$(worst_in $log | tail -n 1)"
    return $code
}

gradients() {
    run "$YARD" check --gradients -d $device || return
    figure "$(sed -n 's/^passed: //p' $log)"
}

show_alone() { # the driver whose first device is the chosen one, which is 0:0 then
    name=$(echo "$about" | json_value - name)
    for icd in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd; do
        rm -rf $tmp/alone
        mkdir $tmp/alone
        cp "$icd" $tmp/alone
        first=$(export OCL_ICD_VENDORS="$PWD/$tmp/alone" && list_devices 2>/dev/null | grep '"id":"0:0"' |
            json_value - name)
        [ "$first" = "$name" ] || continue
        export OCL_ICD_VENDORS="$PWD/$tmp/alone"
        return
    done
    skip "no driver has this device as its first"
}

kernels() {
    [ $device = 0:0 ] || show_alone || return # the tests take 0:0
    export TMP="$tmp" YARD CMOCKA_MESSAGE_OUTPUT=TAP
    code=0
    for test in $kernel_tests; do
        run "$programs/$test" || code=$?
    done
    all=$(awk -F '[.][.]' '/^1[.][.]/ { n += $2 } END { print n + 0 }' $log)
    figure "$(grep -c '^ok' $log) of $all tests, each in six shapes$(
        sed -n 's/^not ok [0-9]* - /, not /p' $log | tr -d '\n')"
    return $code
}

nano='--model nano --batch 4 --steps 4 --clip 0 --val-batches 1 --sample-tokens 0'

median() { # NAME LOG: of a value that each step has
    json_values "$2" "$1" | sort -n | awk '
        { x[NR] = $1 }
        END { printf "%.1f", x[int((NR + 1) / 2)] }'
}

train_serial() { # OPTIONS: the serial run with these, in the folder $serial, unless it is there already
    serial=$tmp/serial$(echo "$1" | tr ' :/' '_')
    [ ! -d "$serial" ] || return 0
    rm -rf "$serial.new"
    run "$YARD" train $nano $1 --serial --save "$serial.new" || return
    mv "$serial.new" "$serial"
}

same_bits() { # 'OPTIONS' 'PASSES': parameters and AdamW's state are those of the serial run without passes
    train_serial "$1" || return
    rm -rf $tmp/state*
    run "$YARD" train $nano $1 $2 --save $tmp/state --log $tmp/state.jsonl || return
    if ! quietly "$YARD" ckpt diff "$serial" $tmp/state; then
        figure "$(grep ' differ' $log | tail -n 1)"
        return 1
    fi
    cmp "$serial/model.safetensors" $tmp/state/model.safetensors || return
    if [ -e $tmp/state.snap ]; then
        quietly "$YARD" ckpt diff "$serial" $tmp/state.snap || return
    fi
    tensors=$(sed -n 's/.*: 0 of \([0-9]*\) tensors differ/\1/p' $log | tail -n 1)
    figure "$tensors tensors to the bit, $(median ms $tmp/state.jsonl) ms a step"
}

on_the_cpu() { # updates on the CPU give the device's bits only where that rounds as the CPU does
    case $about in
    *'"correctly_rounded_divide_sqrt":true'*) same_bits "$@" ;;
    *) skip "the device rounds divide and square root in its own way, and so the CPU's updates have other bits" ;;
    esac
}

peak_bytes() { # OPTIONS: of training; nothing where it does not fit
    timeout 20 "$YARD" plan "$@" -d $device --json 2>/dev/null | json_value - together
}

less_memory() {
    budget=$(peak_bytes --model nano --batch 4 --clip 0 | awk '{ printf "%d", 0.7 * $1 }')
    same_bits "-d $device" "--swap auto --device-mem $budget" || return
    figure "$(cat $tmp/figure) in 70 % of the memory"
}

# In a forced shape a GPU computes our products too: slowly, with bits that no number of devices changes.
in_own_shape() {
    export YARD_VEC=1
    "$@"
}

flash() {
    "$YARD" train --help | grep -q -e '--attention ' || { skip "this program has no --attention"; return; }
    same_bits "-d $device --attention flash" '' || return
    losses $tmp/plain quietly "$YARD" train -d $device || return
    losses $tmp/flash quietly "$YARD" train -d $device --attention flash && agree $tmp/plain $tmp/flash
}

# Its lines "projections, weighted by FLOPs: own 61.2 % of peak, CLBlast 93.1 % of peak" and "training: 8.2 ms per
# step (median ..." give the words ", products 93.1 %, training 8.2 ms per step" of the figure.
bench() { # OPTIONS...
    run "$YARD" bench "$@" -d $device
    code=$?
    ! grep -q '^FMA peak' $log || cp $log $tmp/bench.txt
    more=$(sed -n 's/^proj.* \([0-9.]*\) %.*/, products \1 %/p; s/^training: \(.*\) (median.*/, training \1/p' $log |
        tr -d '\n')
    figure "$(peak 'FMA peak:*') GFLOP/s, $(peak copy) GB/s$more"
    return $code
}

peak() { # NAME: GFLOP/s or GB/s, of the last bench
    sed -n "s/.*$1 \([0-9.]*\) G.*/\1/p" $tmp/bench.txt 2>/dev/null | tail -n 1
}

is_true() { # of an expression of awk
    awk "BEGIN { exit !($1) }"
}

# $model and $batch: the largest of which 20 steps take a minute at a quarter of the FMA peak, in 80 % of the memory.
choose_size() {
    memory=$(echo "$about" | json_value - memory)
    while read -r model batch gflop; do # gflop: of a sequence, forward and backward
        is_true "20 * $batch * $gflop < 60 * 0.25 * 0$(peak 'FMA peak:*')" || continue
        bytes=$(peak_bytes --model $model --vocab 256 --batch $batch </dev/null)
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

trains() { # OPTIONS
    run "$YARD" train --model $model --batch $batch $on "$@" --steps 20 --trace $tmp/train.trace \
        --log $tmp/train.jsonl || return
    json_values $tmp/train.jsonl loss >$tmp/losses
    figure "$model, $batch sequences: loss $(sed -n 1p $tmp/losses) to $(sed -n 20p $tmp/losses)," \
        "$(median ms $tmp/train.jsonl) ms a step, $(median tokens_per_s $tmp/train.jsonl) tokens/s"
    awk 'NR == 1 { first = $1 } END { exit !(NR == 20 && $1 < first) }' $tmp/losses
}

planned() { # a step that is simulated from measured times, beside the median of the one that ran
    run "$YARD" profile -o $tmp/gpu.profile --model $model --batch $batch -d $device --data self || return
    run "$YARD" plan --simulate --profile $tmp/gpu.profile --model $model --batch $batch --vocab 256 || return
    figure "$(sed -n 's/^simulated step: \([0-9.]* ms\).*/\1/p' $log), run: $(median ms $tmp/train.jsonl) ms"
}

summary() {
    run "$YARD" trace summary $tmp/train.trace >$tmp/summary.txt || return
    quietly "$YARD" trace summary --json $tmp/train.trace >$tmp/summary.json || return
    figure "$(awk '
        /^records/ { said = $2 " records, " $(NF - 3) " with approximate times" }
        / compute / && !busy {
            busy = $4
            said = said ", compute busy " busy
        }
        END { print said }' $tmp/summary.txt)"
}

copies() { # of the time in which copies ran, the share in which a kernel ran too
    few=$batch # sequences
    [ $few -lt 4 ] || few=4
    run "$YARD" train --model $model --batch $few $on --steps 6 --swap layer --trace $tmp/copies.trace || return
    run "$YARD" trace export $tmp/copies.trace --steps 2: --chrome $tmp/copies.json || return
    awk -v device=$device -f tests/machines/copies_under_kernels.awk $tmp/copies.json >$tmp/figure
}

pair() { # two platforms in one run
    other=$(grep '"type":"CPU"' $tmp/devices | json_values - id | grep -v "^${device%:*}:" | head -n 1)
    if [ -z "$other" ]; then
        skip "no CPU driver beside the device's"
        return
    fi
    losses $tmp/one run "$YARD" train -d $device || return
    losses $tmp/both run "$YARD" train -d $device,$other && agree $tmp/one $tmp/both || return
    figure "$device and $other: the last loss $(tail -n 1 $tmp/both), alone $(tail -n 1 $tmp/one)"
}

cache() { # the second start takes its kernels from YARD_CACHE
    rm -rf $tmp/cache && mkdir $tmp/cache
    export YARD_CACHE=$tmp/cache
    golden && golden && figure "$(cat $tmp/figure); $(ls $tmp/cache | wc -l) files kept"
}

# ---- the report -----------------------------------------------------------------------------------------------------

rm -rf $tmp
mkdir -p $tmp
: >$tmp/summary.json
find_drivers
build
choose_device
echo "make gpu, $(date -u '+%F %R') UTC, revision $(git rev-parse --short HEAD 2>/dev/null || echo unknown)" >$report
say "$(uname -srm), $(getconf _NPROCESSORS_ONLN) cores, built in $(($(date +%s) - begin)) s"
say "$(env | grep -E '^(YARD_(VEC|WG|SEPARATE_CONTEXTS|KERNELS|BUILD_OPTIONS|CACHE)|OCL_ICD_VENDORS|CPATH)=' | sort)"
say "$("$YARD" devices | awk -v id="$device" '
    /^platform/ {
        platform = $0
        inside = 0
    }
    $1 == "-d" {
        inside = $2 == id
        if (inside)
            print platform
    }
    inside { print }')"
say ''
one="-d $device" two="-d ${device}x2" on="-d $device --data self --val-batches 1 --sample-tokens 0"
row 'golden numbers' 150 golden # compiles most kernels
row gradients 90 gradients
row kernels 200 kernels
row 'not serial' 60 same_bits "$one" ''
row 'bench, peaks' 90 bench --model tiny --gemm clblast --steps 3
choose_size
row "training, $model" 120 trains
row 'trace summary' 30 summary
row 'planned from a profile' 90 planned
row 'copies under kernels' 90 copies
row 'overlap all-cpu' 60 on_the_cpu "$one" '--overlap all-cpu'
row 'overlap local' 60 on_the_cpu "$one" '--overlap local'
row 'overlap plan' 60 on_the_cpu "$one" '--overlap plan'
row 'recompute full' 60 same_bits "$one" '--recompute full'
row 'swap layer' 60 same_bits "$one" '--swap layer'
row 'swap auto' 60 less_memory
row snapshot 60 same_bits "$one" "--snapshot $tmp/state.snap --snapshot-slots 5"
row 'attention flash' 60 flash
row 'zero 1' 60 same_bits "$two" ''
row 'zero 2' 60 same_bits "$two" '--zero 2'
row 'zero 3' 60 same_bits "$two" '--zero 3'
row 'broadcast-queues 3' 60 same_bits "$two" '--broadcast-queues 3'
row pipeline 60 same_bits "$two --mesh pp=2 --micro-batch 1" ''
row 'tensor parallel' 60 same_bits "$two --mesh tp=2" ''
row 'two as one, own products' 60 in_own_shape \
    same_bits "$one --gemm own --micro-batch 2 --grad-groups 2" "$two --grad-groups 1"
row 'many at once' 90 on_the_cpu "$two" "--zero 3 --broadcast-queues 3 --recompute full --swap layer --overlap local \
    --snapshot $tmp/state.snap --snapshot-slots 5"
row 'GPU and CPU in one run' 60 pair
row 'kept kernels' 60 cache
row "flash, $model" 120 trains --attention flash
[ $model = nano ] || row "bench, $model" 120 bench --model $model --gemm clblast
row 'bench, own products' 90 in_own_shape bench --model tiny --gemm own --steps 3

say ''
awk -v flops="$(peak 'FMA peak:*')" -v copy="$(peak copy)" -f tests/machines/kernel_times.awk \
    $tmp/summary.json >>$report 2>&1
echo >>$report
count() { grep -c "^$1\$" $tmp/results; }
say "$(count ok) ok, $(count FAIL) failed, $(count skipped) skipped, $(count 'not run') not run;" \
    "$(($(date +%s) - begin)) s; $report"
[ "$(count FAIL)" -eq 0 ]
