#!/bin/sh
# restart.sh - the option --restart of `yard train`, by which the training runs in a child.
#
# This script checks that the parent starts a child that died again, from the newest snapshot, unless the same would
# happen once more.
#
# A case starts a run that would go on for ever, waits until its log says that it has come far enough, sends a signal to
# the parent, the child or both, and looks at what the next child goes on from, or how the run ended.
#
# To see it fail: in may_go_on() of restart.c, leave out not_finite.
. tests/lib/helpers.sh
. tests/lib/background.sh

if [ ! -r "/proc/$$/task/$$/children" ]; then
    skip_all 'trainings that run in a child' 'this system does not list the children of a process in /proc'
fi

find_trainer() { # the child of the run in the background
    tr -d ' ' <"/proc/$child/task/$child/children" 2>"$TMP/none"
}

start_group() { # WORDS...: yard WORDS and its child are a group of processes, which $child names
    start_command setsid "$YARD" "$@"
}

seconds_of() { # PART: of what a resumed run waited for, in $TMP/out
    sed -n "/^resumed /{n;s/.* $1 \([0-9.]*\).*/\1/p;}" "$TMP/out"
}

has_ended() { # PROCESS: it is gone, or a zombie (Z) or dead (X)
    [ -n "$1" ] || return 1
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.[ZX]' "/proc/$1/status"
}

ignore_children() { # WORDS...: yard WORDS inherits that SIGCHLD is ignored; ends this shell
    trap '' CHLD
    exec "$YARD" "$@"
}

ends_at_once() { # CODE 'part of the sentence' OPTIONS...: checks of a run that is not restarted
    expected=$1
    sentence=$2
    shift 2
    (train_by ignore_children --snapshot "$TMP/run.snap" --restart "$@") >"$TMP/out" 2>"$TMP/err"
    code=$?
    exit_code "--restart $*: the exit code is $expected" $code "$expected"
    check "--restart $*: it says '$sentence'" grep -qF -- "$sentence" "$TMP/err"
    check "--restart $*: nothing is restarted" lacks 'yard: restart' "$TMP/err"
}

# ---- a signal to end -------------------------------------------------------------------------------------------------

# A terminal sends SIGINT to the parent and to its child.  These are one signal for the run: a second one would end it
# at once, and not print what these checks look for.
for receiver in 'the parent' 'the parent and its child'; do
    name="--restart: SIGINT to $receiver"
    rm -f "$TMP/run.snap"
    train_by start_group --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --restart
    check "$name: a snapshot is stored before it" within 600 has_stored

    if [ "$receiver" = 'the parent' ]; then
        kill -INT "$child"
    else
        kill -INT "-$child"
    fi
    ended "$name" 130 '; the newest snapshot is of step '
    check "$name: nothing is restarted" lacks 'yard: restart' "$TMP/err"
    check "$name: the run is interrupted once" said_times 1 'yard: interrupted' "$TMP/err"
    check "$name: the command that goes on is printed" \
        grep -q -- "^it goes on with: .* --snapshot $TMP/run.snap --restart" "$TMP/err"
done

# ---- a run that goes on ----------------------------------------------------------------------------------------------

# A resumed run tells in two lines what its first step waited for:
#
#     resumed     step 2 of run.snap; 1.494 s from the start to the first step:
#                 open 0.003, read 0.009, verify 0.000, upload 0.023, devices and lists 1.459
name='a run that is resumed'
check "$name: it succeeds" train_by yard --resume "$TMP/run.snap" --steps 1 --warmup 0

seconds=$(sed -n 's/^resumed .*; \([0-9.]*\) s from the start.*/\1/p' "$TMP/out")
check "$name: it tells what its first step waited for" [ -n "$seconds" ]

for part in open read verify upload 'devices and lists'; do
    seconds_of "$part"
done >"$TMP/parts"
same "$name: it tells five parts of that time" "$(wc -l <"$TMP/parts")" 5

sum=$(awk '{ sum += $1 } END { print sum }' "$TMP/parts")
check "$name: the parts of that time add up; all: $seconds, parts: $sum" \
    awk -v all="$seconds" -v sum="$sum" 'BEGIN { exit !(sum > all - 0.003 && sum < all + 0.003) }'

# ---- a child that dies -----------------------------------------------------------------------------------------------

name='--restart: a child that is killed'
rm -f "$TMP/run.snap"
train_by start --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --restart
check "$name: a snapshot is stored before it" within 600 has_stored

kill -KILL "$(find_trainer)"
check "$name: another one begins" within 600 grep -q '^resumed' "$TMP/out"
step=$(sed -n 's/.* signal 9 (.*) after step [0-9]*; it goes on from step \([0-9]*\) of .*/\1/p' "$TMP/err")
check "$name: it goes on from the newest commit" grep -q "^resumed     step $step of $TMP/run.snap; " "$TMP/out"

left=$(find_trainer)
check "$name: the parent has a child after it" [ -n "$left" ]
kill -KILL "$child"
wait "$child" 2>/dev/null
child=
check "$name: a parent that is killed then leaves no child behind" within 60 has_ended "$left"
check "$name: the snapshot can be read after that" yard ckpt ls "$TMP/run.snap"

# ---- a child that dies again and again -------------------------------------------------------------------------------

name='--restart without a commit'
rm -f "$TMP/run.snap"
train_by start --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --snapshot-every 1000 --restart \
    --trace "$TMP/traced"
for child_number in 1 2 3 4; do # the first child, and those of three restarts
    check "$name: child $child_number trains" within 600 has_trained
    rm -f "$TMP/log"
    kill -KILL "$(find_trainer)"
done

ended "$name" 1 'yard: given up after 3 restarts without a newer commit in'
check "$name: there were 3 restarts" said_times 3 'yard: restart' "$TMP/err"
check "$name: each says why, and that it begins again" said_times 3 \
    'yard: restart [123]: the run was killed by signal 9 (.*) after step [0-9]*; it begins again' "$TMP/err"
for trace in traced traced.1 traced.2 traced.3; do
    check "$name: there is the trace $trace" [ -f "$TMP/$trace" ]
done

# ---- what is not restarted -------------------------------------------------------------------------------------------

ends_at_once 2 'unknown option --unknown' --unknown
ends_at_once 3 '-d 99:0: there is no such device' -d 99:0
ends_at_once 4 "no file matches $TMP/none/here; expected" --data "$TMP/none/here"
ends_at_once 1 'the run is not restarted, since the same step would give the same bits' --steps 60 --lr 1000 --clip 0

finish
