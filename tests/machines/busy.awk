# busy.awk - of a trace, how many records it has, and how busy the first lane for kernels was.
#
#     awk -f tests/machines/busy.awk SUMMARY
#
# SUMMARY is what `yard trace summary` prints.  Its lines
#
#     records  420 ended, 0 unfinished, 0 lost, 7 with approximate times
#     0:0 compute                   0.464   70.9%  batch 5%, launch 19%, nothing to do 5%
#
# give "420 records, 7 with approximate times, compute busy 70.9%".

/^records/ {
    records = $2
    approximate = $(NF - 3)
}
/ compute / && busy == "" { busy = $4 }
END { print records " records, " approximate " with approximate times, compute busy " busy }
