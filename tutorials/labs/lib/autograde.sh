#!/bin/sh
# autograde.sh N ARCHIVE - for a container: builds the student's copy in ARCHIVE anew, grades it as lab N, and prints
# one line of JSON on stdout, in the form FORM: plain (the default), autolab or gradescope.  What else the grader says
# is on stderr.  Exit code 2, and no line: the machine cannot grade, and the student is not to blame.
#
#     $ SEED=4711 tutorials/labs/lib/autograde.sh 7 lab7.tar
#     {"scores": {"GPipe: the period": 2, ...}, "score": 13, "of": 13}
#
# SEED draws the hidden cases; the default is 1.  In labs 1 and 4 it is the copy's own seed, where none is named.
set -u
FORM=${FORM:-plain}

lib=$(cd "$(dirname "$0")" && pwd)
. "$lib/usage.sh"

[ $# -eq 2 ] || show_usage >&2
case $FORM in
plain | autolab | gradescope) ;;
*) show_usage >&2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/copy"
tar -xf "$2" -C "$work/copy" --no-same-owner >&2
tree=$(find "$work/copy" -maxdepth 2 -name Makefile | head -n 1)
tree=${tree%/Makefile}
rm -rf "${tree:-$work}/build" "${tree:-$work}/yard" # only sources count
ulimit -t 900 # seconds of a process
: >"$work/report"
if [ -n "$tree" ]; then
    JSON=$FORM timeout -k 5 1200 "$lib/../lab.sh" grade "$1" "$tree" >"$work/report"
    if [ $? -eq 2 ]; then # the machine cannot grade
        exit 2
    fi
fi

# The report's last line is the JSON, if the grader came so far; all else is for the student.
json=$(tail -n 1 "$work/report")
case $json in
'{"score'*) sed '$d' "$work/report" >&2 ;;
*)
    cat "$work/report" >&2
    json=$(JSON=$FORM "$lib/../lab.sh" nothing "$1" "the archive has no Makefile, or grading took over 20 minutes" |
        tail -n 1) ;;
esac
printf '%s\n' "$json"
