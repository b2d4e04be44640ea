#!/bin/sh
# if_changed.sh FILE WORDS... - FILE becomes what the command WORDS prints, if that is something else than before.
#
# Else FILE is not touched and keeps its time, so that make does not make anew what depends on it.  When the command
# fails, this script fails too, and FILE stays as it was.
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
