#!/bin/sh
# drivers.sh TEST... - the tests on other OpenCL drivers than the system's, on pairs of them, and in a GPU's shape.
#
#     intel    Intel's CPU runtime, from the wheels intel-opencl-rt, intel-cmplr-lib-rt and tbb of PyPI
#     rusticl  Mesa's driver with llvmpipe, from Debian's mesa-opencl-icd
#     gpu      the system's first device as if it were a GPU: work-groups of 64, no vectors, CLBlast, contexts apart
#
# On each of these, this script runs the golden numbers, and every TEST that depends on the driver.  On every pair of
# drivers, it runs data-parallel training, which must have the losses of the system's driver alone.  `make test` needs
# none of this.
#
# Drivers are unpacked below build/drivers and found through OCL_ICD_VENDORS; the system's own stay as they are.  Only
# the builtins that Mesa looks for in /usr/lib/clc must be installed; a root installs libclc-15 here.  A driver that is
# not available is skipped with the reason.
set -u
top=$PWD/build/drivers # a folder for each driver that was fetched
tmp=$top/tmp
log=$tmp/log # what the last command printed
YARD=${YARD:-./yard}
failures= # ", NAME" of each check that failed
export TEST_TIMEOUT="${TEST_TIMEOUT:-900}" YARD_CACHE="$top/cache" # Intel's driver takes 15 s to compile all kernels
rm -rf "$tmp"
mkdir -p "$tmp" "$YARD_CACHE"
. tests/machines/driver_rows.sh

# ---- fetching --------------------------------------------------------------------------------------------------------

# A function fetch_NAME fetches the driver of that name.  It leaves the driver's libraries in FOLDER/lib, and in
# FOLDER/vendors a file that names the driver.  Where it cannot fetch the driver, it fails, and $reason says why.

fetch_intel() { # FOLDER; sets: reason
    reason='the wheels are for Linux on x86-64'
    [ "$(uname -sm)" = 'Linux x86_64' ] || return 1
    reason='pip cannot download intel-opencl-rt, intel-cmplr-lib-rt and tbb'
    timeout 300 python3 -m pip -q --disable-pip-version-check download --no-deps --only-binary=:all: \
        -d "$1/wheels" intel-opencl-rt intel-cmplr-lib-rt tbb >/dev/null 2>&1 || return 1
    for wheel in "$1"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$1/wheels" || return 1
    done
    cp -a "$1"/wheels/*.data/data/lib/. "$1/lib"
    rm -rf "$1"/lib/libOpenCL* "$1/wheels" # the loader is the system's
    echo "$1/lib/libintelocl.so" >"$1/vendors/intel.icd"
}

fetch_rusticl() { # FOLDER; sets: reason
    builtins=/usr/lib/clc/spirv64-mesa3d-.spv
    reason='it comes by apt-get, which is not here'
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    if [ ! -e $builtins ] && [ "$(id -u)" -eq 0 ]; then
        timeout 120 apt-get install -qq -y --no-install-recommends libclc-15 >/dev/null 2>&1
    fi
    reason='libclc-15 is not installed'
    [ -e $builtins ] || return 1
    reason='apt-get cannot download mesa-opencl-icd'
    # apt-get -s only says what it would install: a line "Inst NAME ..." for each package that is missing here.
    missing=$(apt-get install -s --no-install-recommends mesa-opencl-icd 2>/dev/null | awk '/^Inst/ { print $2 }')
    # shellcheck disable=SC2086 # names of packages
    (cd "$1" && timeout 200 apt-get -qq download mesa-opencl-icd $missing >/dev/null 2>&1) || return 1
    for deb in "$1"/*.deb; do
        dpkg -x "$deb" "$1/unpacked" || return 1
    done
    reason='this mesa-opencl-icd has no rusticl'
    library=$(find "$1/unpacked" -name libRusticlOpenCL.so.1)
    [ -n "$library" ] || return 1
    cp -a "$(dirname "$library")/." "$1/lib"
    rm -rf "$1"/*.deb "$1/unpacked"
    echo "$1/lib/libRusticlOpenCL.so.1" >"$1/vendors/rusticl.icd"
}

have() { # NAME: the driver is there, perhaps fetched just now
    [ -e "$top/$1/complete" ] && return 0
    rm -rf "${top:?}/$1"
    mkdir -p "$top/$1/lib" "$top/$1/vendors"
    echo "fetch $1"
    if ! "fetch_$1" "$top/$1"; then
        echo "      skipped: no $1: $reason"
        return 1
    fi
    touch "$top/$1/complete"
}

# ---- running ---------------------------------------------------------------------------------------------------------

must_succeed() { # NAME WORDS...: runs the command WORDS, and prints how it went; sets: failures
    fact=$1
    shift
    if "$@"; then
        echo "ok    $fact"
    else
        failures="$failures, $fact"
        echo "FAIL  $fact; $log ends with:"
        tail -n 10 "$log" | sed 's/^/      | /'
    fi
}

with() { # 'NAME...' WORDS: run them where these drivers are the platforms, `system` being the system's first
    rm -rf "$tmp/vendors"
    mkdir "$tmp/vendors"
    libraries=
    for driver in $1; do
        if [ "$driver" = system ]; then
            cp "$system" "$tmp/vendors"
        else
            cp "$top/$driver"/vendors/*.icd "$tmp/vendors"
            libraries=$libraries$top/$driver/lib:
        fi
    done
    shift
    LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:-} OCL_ICD_VENDORS=$tmp/vendors RUSTICL_ENABLE=llvmpipe \
        timeout -k 10 "${LIMIT:-300}" "$@"
}

golden() { # NAME WORDS: `WORDS yard check` under that name
    name=$1
    shift
    "$@" "$YARD" check tests/data/gpt2-tiny.safetensors >"$log" 2>&1
    code=$? # worst_in has an exit code too
    must_succeed "$name: golden numbers: $(worst_in "$log")" [ $code -eq 0 ]
}

suite() { # NAME WITHOUT WORDS: `WORDS run.sh TEST...`, without the tests that match; sets: failures
    name=$1
    # shellcheck disable=SC2086 # paths of tests
    chosen=$(printf '%s\n' $tests | grep -Ev "/($2)\$")
    shift 2
    # shellcheck disable=SC2086 # paths of tests
    [ -z "$chosen" ] || LIMIT=7200 "$@" tests/lib/run.sh "$top/logs/$name" $chosen || failures="$failures, $name"
}

# The losses of WORDS, which train, are those of the system's driver, within the rounding of other orders.
same_losses() { # WORDS
    losses "$tmp/losses" "$@" && agree "$tmp/expected" "$tmp/losses"
}

# ---- the matrix ------------------------------------------------------------------------------------------------------

tests=$*
system=$(ls "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd 2>/dev/null | head -n 1)
if [ -z "$system" ]; then
    echo "no driver of the system's own to compare with"
    exit 1
fi
losses "$tmp/expected" with system "$YARD" train
must_succeed 'system: it trains' [ $? -eq 0 ]

drivers= # those that could be had
for one in intel rusticl; do
    have $one && drivers="$drivers $one"
done
for one in $drivers; do
    golden "$one" with "$one"
    case $one in
    rusticl) without='test_train|test_pace|test_audit|test_follow|test_kills' ;; # our own products, or minutes
    *) without=none ;;
    esac
    suite "$one" "$without" with "$one"
done

# Each pair of drivers, in one run: the first of the words with each behind it, then without the first.
# shellcheck disable=SC2086 # names of drivers
set -- system $drivers
while [ $# -gt 1 ]; do
    first=$1
    shift
    for second in "$@"; do
        must_succeed "$first + $second: losses" same_losses with "$first $second" "$YARD" train -d 0:0,1:0
    done
done

as_gpu() { # WORDS: run them on the system's driver in a GPU's shape; vectors of one float choose CLBlast too
    with system env YARD_VEC=1 YARD_WG=64 YARD_SEPARATE_CONTEXTS=1 "$@"
}

golden gpu as_gpu
must_succeed 'gpu: losses' same_losses as_gpu "$YARD" train
must_succeed 'gpu, two: losses' same_losses as_gpu "$YARD" train -d 0:0x2
# The tests of kernels set shapes of their own, one float among them.
suite gpu 'test_kernels.*' as_gpu

echo
if [ -n "$failures" ]; then
    echo "failed:${failures#,}"
    exit 1
fi
echo "all well on:$( [ -n "$drivers" ] && echo "$drivers," ) the system's driver as a GPU"
