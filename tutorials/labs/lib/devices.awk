# devices.awk - how many devices a mesh has: the product of its numbers.
#
#     awk -f tutorials/labs/lib/devices.awk MESHES
#
# A line "dp=2,pp=4" gives the line "8".
{
    devices = 1
    parts = split($0, part, /[,=]/) # dp 2 pp 4
    for (number = 2; number <= parts; number += 2)
        devices *= part[number]
    print devices
}
