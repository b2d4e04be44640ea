# results.awk - the record of a grade (see grading.sh) as a line of JSON for an autograder.
#
#     awk -F '\t' -v form=plain|autolab|gradescope -f tutorials/labs/lib/results.awk RECORD
#
# A record                                     and its line, with form=plain
#
#     0   2   "the peak"   "it is not 7"       {"scores": {"the peak": 0, "the period": 3}, "score": 3, "of": 5}
#     3   3   "the period" ""
#
# Titles and reasons are strings of JSON already.
{
    comma = NR > 1 ? ", " : ""
    scores = scores comma $3 ": " $1
    tests = tests comma "{\"name\": " $3 ", \"score\": " $1 ", \"max_score\": " $2 ", \"output\": " $4 "}"
    got += $1
    most += $2
}
END {
    if (form == "autolab")
        print "{\"scores\": {" scores "}}"
    else if (form == "gradescope")
        print "{\"score\": " got + 0 ", \"tests\": [" tests "]}"
    else
        print "{\"scores\": {" scores "}, \"score\": " got + 0 ", \"of\": " most + 0 "}"
}
