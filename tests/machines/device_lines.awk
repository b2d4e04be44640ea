# device_lines.awk - what `yard devices` prints about one device, below the line of its platform.
#
#     yard devices | awk -v id=1:0 -f tests/machines/device_lines.awk
#
# Of the lines                                 remain
#
#     platform 0: Portable Computing Language
#       -d 0:0    pthread-skylake-avx512
#     platform 1: NVIDIA CUDA                  platform 1: NVIDIA CUDA
#       -d 1:0    NVIDIA H100                    -d 1:0    NVIDIA H100
#           memory 80.0 GiB ...                      memory 80.0 GiB ...

/^platform/ {
    platform = $0
    is_asked = 0
}
$1 == "-d" {
    is_asked = $2 == id
    if (is_asked)
        print platform
}
is_asked { print }
