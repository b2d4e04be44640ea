# waits.awk - what each task of a printed list waits for: within the step, across its end, or both.
#
#     awk -v which=within|across|all -f waits.awk PRINT
#
# The line of a task in PRINT, with the producers that it waits for behind its MiB,
#
#     3  t4                         -     -  a compute1             0.00     0.002  2, 5' (1 implied)
#
# gives, with which=within,
#
#     task 3 t4 waits for: 2
#
# A producer with a quote is the task of the step before.

/^memory map/ { exit }

$1 ~ /^[0-9]+$/ && NF >= 8 { # the lane has two words, so producers begin with field 9
    producers = ""
    for (i = 9; i <= NF && $i !~ /\(/; i++) {
        sub(/,$/, "", $i)
        is_across = $i ~ /'/
        if (which == "all" || (which == "across") == is_across)
            producers = producers " " $i
    }
    if (producers == "")
        producers = " none"
    print "task", $1, $2 " waits for:" producers
}
