# options.awk - takes options from a file of an entry of the league, those alone that an entry may set.
#
#     awk -v names='mesh|zero' -f tutorials/labs/lib/options.awk FILE
#
# prints each line NAME = VALUE anew, so that nothing else of FILE comes through:
#
#     mesh=dp=2,pp=4   # on 8 devices              mesh = dp=2,pp=4
#
# An option that `names` does not have, or a value with other characters than letters, digits, = and , is a fault: one
# sentence on stderr, and exit code 1.

function fault(sentence) {
    print "line " NR sentence | "cat 1>&2"
    exit 1
}

function trimmed(text) {
    gsub(/^[ \t]+|[ \t\r]+$/, "", text)
    return text
}

{ sub(/#.*/, "") }
NF == 0 { next }
{
    at = index($0, "=")
    name = trimmed(substr($0, 1, at - 1))
    value = trimmed(substr($0, at + 1))
    if (!at || name !~ "^(" names ")$")
        fault(" sets an option that is not an entry's to say")
    if (value !~ /^[A-Za-z0-9=,]+$/)
        fault(": the value of " name " has other characters than letters, digits, = and ,")
    print name " = " value
}
