# seconds.awk - "SECONDS TEST CHECK" for each check of a test program whose log says how long it took.
#
#     awk -v name=test_swap -f tests/lib/seconds.awk LOG
#
# The lines                                            give
#
#     # seconds: 3.22, of the CPU 2.90                     3.22 test_swap a_plan_is_proved
#     ok 2 - a_plan_is_proved

/^# seconds: / { seconds = $3 + 0 }
/ok [0-9]+ - / && seconds != "" {
    sub(/.*ok [0-9]+ - /, "")
    print seconds, name, $1
    seconds = ""
}
