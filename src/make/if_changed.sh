#!/bin/sh
# if_changed.sh FILE WORDS... - FILE becomes what the command WORDS prints, if that is something else than before.
#
# Else FILE is not touched and keeps its time: so make does not make anew what depends on it.  When the command fails,
# FILE stays as it was, and so does this script fail.
set -u
file=$1
shift
new=$file.new$$ # several makes may run here at a time
mkdir -p "$(dirname "$file")"

if ! "$@" >"$new"; then
    rm -f "$new"
    exit 1
fi
if cmp -s "$new" "$file"; then
    rm "$new"
else
    mv "$new" "$file"
fi
