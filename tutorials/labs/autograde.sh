#!/bin/sh
# autograde.sh N ARCHIVE - for a container: builds the student's copy in ARCHIVE anew, grades it as lab N, and prints
# one line of JSON on stdout.  SEED is the lecturer's.  What went wrong is on stderr.  Exit code 2, and no line: the
# machine cannot grade, and the student is not to blame.
set -u
if [ $# -ne 2 ]; then
    sed -n '2,4s/^# *//p' "$0" >&2
    exit 2
fi
labs=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/copy"
tar -xf "$2" -C "$work/copy" --no-same-owner >&2
tree=$(find "$work/copy" -maxdepth 2 -name Makefile | head -n 1)
tree=${tree%/Makefile}
rm -rf "${tree:-$work}/build" "${tree:-$work}/yard" # only sources count
ulimit -t 900 # seconds of a process
: >"$work/report"
[ -z "$tree" ] || JSON=1 timeout -k 5 1200 "$labs/lab.sh" grade "$1" "$tree" >"$work/report"
[ $? -ne 2 ] || exit 2

# The report's last line is the JSON, if the grader came so far; all else is for the student.
all=$(awk '/^part / { n += $2 } END { print n + 0 }' "$labs/$(printf %02d "${1#0}")"-*/grade)
json=$(tail -n 1 "$work/report")
case $json in
'{"scores": '*) sed '$d' "$work/report" >&2 ;;
*)
    cat "$work/report" >&2
    json="{\"scores\": {}, \"score\": 0, \"of\": $all}" ;;
esac
echo "$json"
