#!/bin/sh
# gpu_kit.sh - leaves build/gpu-kit: what `make gpu` needs on a machine without the packages and without a network.
#
# The kit holds include/ and lib/ out of Debian's packages, and in bin/ the programs that gpu.sh runs, for a machine
# without a compiler.  Copy the kit to build/gpu-kit there.  It has less than 60 MiB, no links and no driver.
set -u
unset MAKEFLAGS MAKELEVEL # of the make that called this: its build takes all cores
kit=$PWD/build/gpu-kit
packages='ocl-icd-libopencl1 opencl-c-headers libclblast1 libclblast-dev zlib1g zlib1g-dev libjansson4 libjansson-dev
    libcmocka0 libcmocka-dev'
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "make gpu-pack needs apt-get and dpkg"
    exit 1
fi

rm -rf "$kit"
mkdir -p "$kit/debs/all" "$kit/include" "$kit/lib" "$kit/bin"
# shellcheck disable=SC2086 # names of packages
if ! (cd "$kit/debs" && timeout 300 apt-get -qq download $packages 2>/dev/null); then
    echo "apt-get cannot download these packages: $packages"
    exit 1
fi
for deb in "$kit"/debs/*.deb; do
    dpkg -x "$deb" "$kit/debs/all" || exit 1
done
for folder in "$kit/debs/all/usr/include" "$kit"/debs/all/usr/include/*-linux-gnu; do
    [ ! -d "$folder" ] || cp -R "$folder/." "$kit/include" || exit 1
done
find "$kit/debs/all" -name 'lib*.so.[0-9]' >"$kit/libraries"
while read -r library; do # the linker's libX.so is a copy of libX.so.N
    name=$kit/lib/$(basename "$library")
    cp -L "$library" "$name" && cp "$name" "${name%.so.*}.so" || exit 1
done <"$kit/libraries"
rm "$kit/libraries"
rm -rf "$kit/debs" "$kit"/include/*-linux-gnu

# Without SDL2, which the other machine may lack.
objects=build/gpu-objects
set --
for source in tests/unit/trainer/test_kernels*.c; do
    set -- "$@" "$objects/tests/$(basename "$source" .c)"
done
${MAKE:-make} --no-print-directory BUILD=$objects YARD="$kit/bin/yard" SDL2= "$kit/bin/yard" "$@" &&
    cp "$@" "$kit/bin" || exit 1
echo "$kit: $(du -sk "$kit" | awk '{ printf "%.1f MiB", $1 / 1024 }')"
