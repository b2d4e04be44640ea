#!/bin/sh
# gpu.sh - what a GPU does with this program, as one text report: build/gpu-report.txt.
#
#     make gpu                    the first GPU among the OpenCL platforms
#     make gpu DEVICE=1:0         that device, whatever it is
#     YARD_VEC=1 YARD_WG=64 YARD_SEPARATE_CONTEXTS=1 make gpu         no GPU: the first device as if it were one
#     make gpu-pack               leaves build/gpu-kit, for a machine without the packages and without a network
#
# The report says which machine it is, and then has rows.  A row is a question to the device: how it went (ok, FAIL,
# skipped or not run), its name, what it took, its figure, and the commands that were run for it.  Times of kernels and
# the sum follow.
#
#     ok      golden numbers             9 s  worst 1.4e-07, ln_f.bias
#             $ ./yard check tests/data/gpt2-tiny.safetensors -d 0:0
#     FAIL    swap layer                 3 s  3 of 59 tensors differ
#             $ ./yard train --model nano ... --swap layer --save build/gpu/state
#           | (the last lines that they printed)
#     ...
#     30 ok, 1 failed, 0 skipped, 0 not run; 402 s; build/gpu-report.txt
#
# To add a row, write its function in gpu_rows.sh, and a line `row NAME SECONDS FUNCTION WORDS...` in ask_all() below.
#
# A row that fails stops no other.  All end within GPU_SECONDS (520): each row has a limit, those of most worth come
# first, and what no longer fits is listed as not run.  Exit code 1 when a row failed, 3 when there is no GPU.
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
kernel_tests=$(ls tests/unit/trainer/test_kernels*.c | sed 's|.*/||; s|\.c$||')
tmp=build/gpu # with a row's `figure` and `commands`, and the `results` of all rows
log=$tmp/log  # what the row's commands print
begin=$(date +%s)
end=$((begin + ${GPU_SECONDS:-520}))
. tests/machines/driver_rows.sh
. tests/machines/gpu_rows.sh

# ---- the machine -----------------------------------------------------------------------------------------------------

no_gpu() {
    echo "no GPU here: $1.  To take the first device as if it were one:" \
        "YARD_VEC=1 YARD_WG=64 YARD_SEPARATE_CONTEXTS=1 make gpu"
    exit 3
}

# A driver that no .icd file names gets one.  Its folder also holds what it loads.
find_drivers() {
    for library in /usr/lib/*-linux-gnu/libnvidia-opencl.so.* /usr/lib64/libnvidia-opencl.so.* \
        /usr/local/nvidia/lib*/libnvidia-opencl.so.* /usr/lib/wsl/lib/libnvidia-opencl.so.* \
        /opt/rocm*/lib/libamdocl64.so /usr/lib/*-linux-gnu/intel-opencl/libigdrcl.so; do
        [ -e "$library" ] || continue
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}$(dirname "$library")
        export LD_LIBRARY_PATH
        register_driver "$library"
    done
}

# .icd files that are made lie beside copies of the system's, since OCL_ICD_VENDORS takes their folder's place.
registered=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}
register_driver() { # LIBRARY, unless its name without a version is in some .icd file
    stem=$(basename "$1" | sed 's/\.so.*//')
    grep -qs "$stem" "$registered"/*.icd $tmp/vendors/*.icd && return
    mkdir -p $tmp/vendors
    cp "$registered"/*.icd $tmp/vendors 2>/dev/null
    echo "$1" >"$tmp/vendors/$stem.icd"
    export OCL_ICD_VENDORS="$PWD/$tmp/vendors"
}

list_missing() { # packages
    src/make/packages.sh --name build tests
}

prepare_programs() { # ./yard and the tests of kernels, with the kit where packages are missing; sets: missing
    missing=$(list_missing)
    if [ -n "$missing" ] && [ -d "$kit" ]; then
        use_kit
        missing=$(list_missing)
        case $missing in
        *driver*) no_gpu "no OpenCL driver is installed" ;; # the kit has none
        *compiler*)
            take_programs_of_kit
            return ;;
        esac
    fi
    build
}

use_kit() { # its libraries are seen by the compiler, and then by the loader
    export CPATH="$kit/include" LIBRARY_PATH="$kit/lib" LD_LIBRARY_PATH="$kit/lib:${LD_LIBRARY_PATH:-}"
}

take_programs_of_kit() { # where nothing can be compiled; sets: YARD, programs
    YARD=$kit/bin/yard programs=$kit/bin
    chmod +x "$programs"/*
}

build() {
    set -- "$YARD"
    for test in $kernel_tests; do
        set -- "$@" "$programs/$test"
    done
    $MAKE --no-print-directory TEST_NEEDS=tests "$@" >$tmp/build.log 2>&1 && return
    tail -n 20 $tmp/build.log
    if [ -n "$missing" ]; then
        echo "Or, on a machine with a network: make gpu-pack.  Then copy its build/gpu-kit here."
    fi
    exit 1
}

list_devices() { # a line of JSON for each device
    "$YARD" devices --json | tr '{' '\n' | grep '"id"'
}

choose_device() { # $device is P:D, $about what `yard devices --json` says of it; sets: device, about
    list_devices >$tmp/devices 2>$log
    device=${DEVICE:-$(grep '"type":"GPU"' $tmp/devices | json_value - id)}
    [ -n "$device" ] || [ -z "${YARD_VEC:-}" ] || device=$(json_value $tmp/devices id)
    cat $log
    [ -n "$device" ] || no_gpu "OpenCL devices: $(json_values $tmp/devices name | paste -s -d , - | sed 's/^$/none/')"
    about=$(grep "\"id\":\"$device\"" $tmp/devices) || no_gpu "yard devices lists no $device"
}

# ---- what a row is ---------------------------------------------------------------------------------------------------

say() { # WORDS: on the screen and in the report
    echo "$*"
    echo "$*" >>$report
}

figure() { # WORDS: the row's line shows them
    echo "$*" >$tmp/figure
}

pass_over() { # WHY: its code, 77, makes a row "skipped"
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
    if [ "$state" = FAIL ]; then
        say "$(grep -v '^ok [0-9]' $log | tail -n 12 | sed 's/^/      | /')"
    fi
    echo "$state" >>$tmp/results
}

set_limit() { # SECONDS: the row ends at $row_end, and is $cut_off if that ends it; sets: row_end, cut_off
    row_end=$((start + $1))
    cut_off=FAIL
    if [ $row_end -gt $end ]; then # the end of all rows, for which this one is not to blame
        row_end=$end
        cut_off='not run'
    fi
}

judge_row() { # CODE; sets: state
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

# ---- the report ------------------------------------------------------------------------------------------------------

describe_device() { # the lines of `yard devices` about it, below that of its platform
    "$YARD" devices | awk -v id="$device" -f tests/machines/device_lines.awk
}

begin_report() {
    revision=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
    shape='YARD_(VEC|WG|SEPARATE_CONTEXTS|KERNELS|BUILD_OPTIONS|CACHE)'
    echo "make gpu, $(date -u '+%F %R') UTC, revision $revision" >$report
    say "$(uname -srm), $(getconf _NPROCESSORS_ONLN) cores, built in $(($(date +%s) - begin)) s"
    say "$(env | grep -E "^($shape|OCL_ICD_VENDORS|CPATH)=" | sort)"
    say "$(describe_device)"
    say ''
}

ask_all() { # those of most worth first; bench and choose_size() give later rows their $model
    one="-d $device" two="-d ${device}x2" on="-d $device --data self --val-batches 1 --sample-tokens 0"
    row 'golden numbers' 150 golden # compiles most kernels
    row gradients 90 gradients
    row kernels 200 kernels
    row 'not serial' 60 has_serial_bits "$one" ''
    row 'bench, peaks' 90 bench --model tiny --gemm clblast --steps 3
    choose_size
    row "training, $model" 120 trains
    row 'trace summary' 30 summary
    row 'planned from a profile' 90 planned
    row 'copies under kernels' 90 copies
    row 'overlap all-cpu' 60 on_the_cpu "$one" '--overlap all-cpu'
    row 'overlap local' 60 on_the_cpu "$one" '--overlap local'
    row 'overlap plan' 60 on_the_cpu "$one" '--overlap plan'
    row 'recompute full' 60 has_serial_bits "$one" '--recompute full'
    row 'swap layer' 60 has_serial_bits "$one" '--swap layer'
    row 'swap auto' 60 less_memory
    row snapshot 60 has_serial_bits "$one" "--snapshot $tmp/state.snap --snapshot-slots 5"
    row 'attention flash' 60 flash
    row 'zero 1' 60 has_serial_bits "$two" ''
    row 'zero 2' 60 has_serial_bits "$two" '--zero 2'
    row 'zero 3' 60 has_serial_bits "$two" '--zero 3'
    row 'broadcast-queues 3' 60 has_serial_bits "$two" '--broadcast-queues 3'
    row pipeline 60 has_serial_bits "$two --mesh pp=2 --micro-batch 1" ''
    row 'tensor parallel' 60 has_serial_bits "$two --mesh tp=2" ''
    row 'two as one, own products' 60 in_own_shape \
        has_serial_bits "$one --gemm own --micro-batch 2 --grad-groups 2" "$two --grad-groups 1"
    row 'many at once' 90 on_the_cpu "$two" "--zero 3 --broadcast-queues 3 --recompute full --swap layer \
        --overlap local --snapshot $tmp/state.snap --snapshot-slots 5"
    row 'GPU and CPU in one run' 60 pair
    row 'kept kernels' 60 cache
    row "flash, $model" 120 trains --attention flash
    [ "$model" = nano ] || row "bench, $model" 120 bench --model "$model" --gemm clblast
    row 'bench, own products' 90 in_own_shape bench --model tiny --gemm own --steps 3
}

tell_kernel_times() { # of the traced training
    say ''
    awk -v flops="$(peak 'FMA peak:*')" -v copy="$(peak copy)" -f tests/machines/kernel_times.awk \
        $tmp/summary.json >>$report 2>&1
    echo >>$report
}

count() { # STATE: how many rows ended so
    grep -c "^$1\$" $tmp/results
}

rm -rf $tmp
mkdir -p $tmp
: >$tmp/summary.json
: >$tmp/results
find_drivers
prepare_programs
choose_device
begin_report
ask_all
tell_kernel_times
say "$(count ok) ok, $(count FAIL) failed, $(count skipped) skipped, $(count 'not run') not run;" \
    "$(($(date +%s) - begin)) s; $report"
[ "$(count ok)" -gt 0 ] && [ "$(count FAIL)" -eq 0 ]
