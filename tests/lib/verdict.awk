# verdict.awk - what became of a test, by its exit code and by the checks that it reported in TAP.
#
#     awk -v code=CODE -v seconds=LIMIT -f tests/lib/verdict.awk LOG          prints "OK BAD SKIPPED REASON"
#
# For example, of a test that ended with code 1, and should have ended within 60 s,
#
#     1..3
#     ok 1 - adds                                                         1 1 1 exit code 1
#     not ok 2 - subtracts
#     ok 3 - divides # SKIP there is no divisor
#
# How it ended says more than its checks:
#
#     the code is not 0, or fewer checks were reported than announced     one check is bad, if none is
#     the code is 0, and no check was announced or reported               one is well: a script may be a check itself
#     the code is 0, and 1..0 was announced                               none is: there are no checks for this part
#
# The reason counts if a check is bad.  What a program prints without an end of line may stand before a check, but no
# letter: "took 5 s" is no check.

/^1\.\.[0-9]+$/ {
    announced += substr($0, 4)
    if ($0 == "1..0")
        announces_none = 1
}
/(^|[^a-z])ok [0-9]+ .*# SKIP/ {
    skipped++
    next
}
/(^|[^a-z])not ok [0-9]+( |$)/ {
    bad++
    next
}
/(^|[^a-z])ok [0-9]+( |$)/ { ok++ }
END {
    reported = ok + bad + skipped
    well = code == 0
    reason = "exit code " code
    if (code == 124) # that of the program timeout
        reason = "took longer than " seconds " s"
    if (well && reported < announced) {
        well = 0
        reason = "ended after " reported " of " announced " checks"
    }
    if (!well && !bad)
        bad = 1
    if (well && !reported && !announces_none)
        ok = 1
    print ok + 0, bad + 0, skipped + 0, reason
}
