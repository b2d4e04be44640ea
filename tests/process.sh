#!/bin/sh
# process.sh - what surrounds a run: signals at any moment, closed descriptors, limits, folders that are not there yet.
#
# YARD is the program, TMP an empty folder.  The report is TAP (see run.sh).
set -u
YARD=${YARD:-./yard}
TMP=${TMP:-$(mktemp -d)}

. tests/report.sh
. tests/helpers.sh
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null' EXIT

start() { # WORDS...: yard in the background
    : >"$TMP/out" # or within() might look at what the run before printed
    "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null &
    child=$!
}

ended() { # CODE 'part of the sentence': how the run in the background went
    wait "$child"
    code=$?
    [ "$code" -eq "$1" ] && grep -qF -- "$2" "$TMP/err"
}

only_whole() { # FOLDER: it holds a checkpoint and the model, and nothing half-written
    ls -A "$1" | sed 's/step-[0-9]*$/step-N/' | sort -u | tr '\n' ' ' | grep -qx 'model.safetensors step-N ' &&
        ls "$1"/step-*/manifest.json "$1"/step-*/rank-0.safetensors >/dev/null
}

train='train --model tiny --sample-tokens 0 --val-batches 1'
trained="grep -q '\"step\":9,' $TMP/log"

# ---- signals --------------------------------------------------------------------------------------------------------

# Tens of millions of first values take a while.
start $train --steps 100000000 --channels 1024 --save "$TMP/set-up"
within 600 "[ -d $TMP/set-up ]"
kill -INT "$child"
ended 130 'yard: interrupted' && ! grep -q '^step  *1/' "$TMP/out" && [ -z "$(ls -A "$TMP/set-up")" ]
result $? 'a signal before the first step ends the run at once'

# Under nohup this script ignores SIGHUP, and so do its children: the last digit of the mask is odd then.
signals='INT TERM HUP USR1 USR2 XCPU'
case $(sed -n 's/^SigIgn:.*\(.\)$/\1/p' /proc/self/status 2>/dev/null) in
[13579bdf]) signals='INT TERM USR1 USR2 XCPU' ;;
esac
for signal in $signals; do
    rm -f "$TMP/log"
    start $train --steps 100000000 --log "$TMP/log" --save "$TMP/$signal"
    within 600 "$trained"
    kill -$signal "$child"
    ended 130 ', saved' && only_whole "$TMP/$signal" && [ -f "$TMP/$signal/model.safetensors" ] &&
        grep -qx "it goes on with: yard train --resume $TMP/$signal --save $TMP/$signal --log $TMP/log" "$TMP/err"
    result $? "SIG$signal: the step in flight ends, the state is saved, and the command that resumes printed"
done

rm -f "$TMP/log"
start $train --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap"
within 600 "grep -q '^{\"snapshot\":' $TMP/log"
kill -INT "$child"
ended 130 '; the newest snapshot is of step ' && "$YARD" ckpt verify "$TMP/run.snap" >/dev/null &&
    grep -qx "it goes on with: yard train --resume $TMP/run.snap --snapshot $TMP/run.snap --log $TMP/log" "$TMP/err" &&
    "$YARD" train --resume "$TMP/run.snap" --snapshot "$TMP/run.snap" --log "$TMP/log" --steps 1 --warmup 0 \
        >"$TMP/out" 2>&1 && grep -q 'nothing is left to train' "$TMP/out"
result $? 'with --snapshot: the writes under way are finished, and the command that resumes printed'

# An evaluation that has begun is interrupted and has no loss; one that the signal was ahead of is made whole.  Which
# of the two this script meets is a matter of milliseconds, so it tries until it has met the first.
wrong=0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$TMP/log" "$TMP/evaluation"
    start train --model tiny --micro-batch 1 --val-every 9 --steps 100000000 --log "$TMP/log" --save "$TMP/evaluation"
    within 600 "$trained"
    kill -INT "$child"
    ended 130 'yard: interrupted' && only_whole "$TMP/evaluation" || wrong=1
    losses=$(grep -c val_loss "$TMP/log")
    step=$(sed -n 's/.*interrupted after step \([0-9]*\), saved.*/\1/p' "$TMP/err")
    if grep -q 'the evaluation after step 9 was interrupted, and has no loss' "$TMP/err"; then
        [ "$losses" -eq 0 ] && [ "$step" -eq 9 ] || wrong=1
        break
    fi
    [ "$losses" -ge 1 ] || wrong=1
done
[ "$wrong" -eq 0 ] && grep -q 'the evaluation after step 9 was interrupted' "$TMP/err"
result $? 'during an evaluation a signal ends it within a round, and the model is saved'

start sample --from "$TMP/INT" --count 1000000
within 600 "[ -s $TMP/out ]"
kill -TERM "$child"
ended 130 'yard: interrupted'
result $? 'a signal ends yard sample with a sentence'

rm "$TMP/log"
(trap '' HUP && exec "$YARD" $train --steps 200 --log "$TMP/log") >"$TMP/out" 2>"$TMP/err" </dev/null &
child=$!
within 600 "$trained"
kill -HUP "$child"
wait "$child"
result $? 'a SIGHUP that the parent ignores (nohup) is ignored'

# ---- --restart ------------------------------------------------------------------------------------------------------

trainer() { # the child of the run in the background
    cat "/proc/$child/task/$child/children" 2>"$TMP/none" | tr -d ' '
}

# A signal to the parent alone, and as of a terminal to both, which is one: a second one would end the run at once.
for whom in "" -; do
    rm -f "$TMP/log" "$TMP/run.snap"
    setsid "$YARD" $train --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --restart \
        >"$TMP/out" 2>"$TMP/err" </dev/null &
    child=$!
    within 600 "grep -q '^{\"snapshot\":' $TMP/log"
    kill -INT "$whom$child"
    ended 130 '; the newest snapshot is of step ' && ! grep -q 'yard: restart' "$TMP/err" &&
        [ "$(grep -c 'yard: interrupted' "$TMP/err")" -eq 1 ] &&
        grep -q -- "^it goes on with: .* --snapshot $TMP/run.snap --restart" "$TMP/err"
    result $? "--restart: SIGINT to ${whom:+all and }the parent ends the run, once, and nothing is restarted"
done

# That is told in two lines:
#
#     resumed     step 2 of run.snap; 1.494 s from the start to the first step:
#                 open 0.003, read 0.009, verify 0.000, upload 0.023, devices and lists 1.459
"$YARD" $train --resume "$TMP/run.snap" --steps 1 --warmup 0 >"$TMP/out" 2>"$TMP/err" &&
    awk '
        told {
            gsub(",", "")
            parts = $2 + $4 + $6 + $8 + $12
            print all, parts
            exit !(all > parts - 0.003 && all < parts + 0.003)
        }
        /^resumed / {
            all = $6
            told = 1
        }
        END {
            if (!told)
                exit 1
        }' "$TMP/out" >"$TMP/err"
result $? 'what the first step waited for is told, and its parts add up'

rm -f "$TMP/log" "$TMP/run.snap"
start $train --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --restart
within 600 "grep -q '^{\"snapshot\":' $TMP/log"
kill -KILL $(trainer)
within 600 "grep -q ^resumed $TMP/out"
step=$(sed -n 's/.* signal 9 (.*) after step [0-9]*; it goes on from iteration \([0-9]*\) of .*/\1/p' "$TMP/err")
grep -q "^resumed     step $step of $TMP/run.snap; " "$TMP/out"
result $? '--restart: it goes on from the newest commit'

left=$(trainer)
kill -KILL "$child"
wait "$child" 2>/dev/null
child=
within 60 "! grep -q '^State:.[^ZX]' /proc/$left/status" &&
    "$YARD" ckpt ls "$TMP/run.snap" >"$TMP/out" 2>"$TMP/err"
result $? '--restart: a parent that is killed leaves no child behind'

rm -f "$TMP/log" "$TMP/run.snap"
start $train --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap" --snapshot-every 1000 --restart \
    --trace "$TMP/traced"
while kill -0 "$child" 2>/dev/null; do
    within 600 "$trained"
    rm -f "$TMP/log"
    kill -KILL $(trainer) 2>/dev/null
done
ended 1 'yard: given up: 3 restarts, and no newer commit in' && [ "$(grep -c 'yard: restart' "$TMP/err")" -eq 3 ] &&
    grep -q 'yard: restart 3: the run was killed by signal 9 (.*) after step [0-9]*; it begins again' "$TMP/err" &&
    ls "$TMP/traced" "$TMP/traced.1" "$TMP/traced.2" "$TMP/traced.3" >"$TMP/out"
result $? '--restart: it gives up after 3 restarts without a commit; each has a trace of its own'

tried() { # CODE 'part of the sentence' WORDS...: it ends so, and is not restarted, however SIGCHLD was inherited
    (trap '' CHLD && exec "$YARD" $train --snapshot "$TMP/run.snap" --restart $3) >"$TMP/out" 2>"$TMP/err"
    [ $? -eq "$1" ] && grep -qF -- "$2" "$TMP/err" && ! grep -q 'yard: restart' "$TMP/err"
}
tried 2 'unknown option' --unknown && tried 3 'OpenCL platforms' '-d 99:0' &&
    tried 4 "$TMP/none/here" "--data $TMP/none/here" &&
    tried 1 'no restart: the same step would come to the same' '--steps 60 --lr 1000 --clip 0'
result $? '--restart: usage, no device, files, and not-a-number end it at once'

# ---- descriptors and limits -----------------------------------------------------------------------------------------

"$YARD" $train --steps 3 --trace "$TMP/trace" <&- >&- 2>&-
[ $? -eq 0 ] && "$YARD" trace summary "$TMP/trace" >"$TMP/out" 2>"$TMP/err"
result $? 'with descriptors 0 to 2 closed, no progress gets into the trace'

rm -f "$TMP/log"
"$YARD" $train --steps 400 --save "$TMP/untraced" >"$TMP/out" 2>"$TMP/err"
start $train --steps 400 --log "$TMP/log" --trace "$TMP/cut.trace" --save "$TMP/cut"
within 600 "$trained"
: >"$TMP/cut.trace"
ended 0 'the trace was cut by another program' && [ "$(grep -c 'the trace was cut' "$TMP/err")" -eq 1 ] &&
    cmp "$TMP/cut/model.safetensors" "$TMP/untraced/model.safetensors" >"$TMP/out" 2>&1
result $? 'training outlives a trace that somebody cuts'

# (A plan for a described machine starts no driver, which might have files of its own to write.)
(ulimit -f 4 && exec "$YARD" plan --model tiny --hardware data/hardware/server.txt --print) >"$TMP/out" 2>"$TMP/err"
[ $? -eq 4 ] && grep -q 'is the disk full?' "$TMP/err"
result $? 'a limit on the size of files is like a full disk'

# ---- a full disk under the driver's kernels -------------------------------------------------------------------------

mkdir "$TMP/small"
if unshare --mount mount -t tmpfs -o size=600k tmpfs "$TMP/small" 2>/dev/null && "$YARD" devices | grep -q PoCL; then
    # With a name space of mounts for itself: sh mounts $0, and runs the words behind it.
    unshare --mount sh -c 'mount -t tmpfs -o size=600k tmpfs "$0" && POCL_CACHE_DIR=$0/cache "$@"' "$TMP/small" \
        "$YARD" train --model nano --steps 1 --sample-tokens 0 >"$TMP/out" 2>"$TMP/err"
    [ $? -eq 4 ] && grep -q 'is full; make room there' "$TMP/err"
    result $? 'a full disk under the cache of kernels is named'
else
    skip 'a full disk under the cache of kernels' 'a small disk can be mounted by root alone'
fi

# ---- folders and strays ---------------------------------------------------------------------------------------------

"$YARD" $train --steps 3 --trace "$TMP/new/trace" --log "$TMP/new/log" --save "$TMP/new" >"$TMP/out" 2>"$TMP/err" &&
    [ "$(ls "$TMP/new" | tr '\n' ' ')" = 'log model.safetensors step-3 trace ' ]
result $? 'a trace and a log may lie in the folder that --save makes'

rm "$TMP/log"
start $train --steps 100000000 --save-every 1 --log "$TMP/log" --save "$TMP/strays"
within 600 "$trained"
within 600 "ls -d $TMP/strays/step-*.tmp-*"
kill -KILL "$child"
wait "$child" 2>/dev/null
: >"$TMP/strays/model.safetensors.tmp-$child"
: >"$TMP/strays/model.safetensors.tmp-$$"
: >"$TMP/strays/mine.tmp-$child"
mkdir -p "$TMP/strays/step-7.tmp-$child" "$TMP/strays/step-7.tmp-$$" # the first may have been renamed by then
: >"$TMP/strays/step-7.tmp-$child/rank-0.safetensors"
"$YARD" $train --steps 3 --save "$TMP/strays" >"$TMP/out" 2>"$TMP/err" &&
    [ "$(ls -A "$TMP/strays" | tr '\n' ' ')" = \
        "mine.tmp-$child model.safetensors model.safetensors.tmp-$$ step-3 step-7.tmp-$$ " ]
result $? 'what a killed run left behind is removed, and nothing else'

# ---- two writers, one file ------------------------------------------------------------------------------------------

"$YARD" $train --steps 2 --save "$TMP/old" >"$TMP/out" 2>"$TMP/err"
result $? 'a checkpoint that others want to rewrite'
rm -f "$TMP/log"
mkdir "$TMP/live"
start $train --steps 100000000 --log "$TMP/log" --trace "$TMP/live.trace" --save "$TMP/live" \
    --snapshot "$TMP/live.snap"
within 600 "$trained"
busy() { # WORDS...: refused, since another run writes there
    "$YARD" "$@" >"$TMP/out2" 2>"$TMP/err2"
    code=$?
    [ $code -eq 2 ] && [ "$(grep -c '^yard: ' "$TMP/err2")" -eq 1 ] && grep -q 'another run is writing' "$TMP/err2"
    wrong=$?
    cp "$TMP/err2" "$TMP/err"
    result $wrong "while a run goes on: $*"
}
busy $train --steps 2 --log "$TMP/log"
busy $train --steps 3 --resume "$TMP/old" --log "$TMP/log"
busy $train --steps 2 --log "$TMP/live.snap"
busy $train --steps 2 --log "$TMP/live.trace"
busy $train --steps 2 --trace "$TMP/live.trace"
busy plan --model tiny --hardware data/hardware/server.txt --simulate --trace "$TMP/live.trace"
busy profile --model tiny -o "$TMP/log"
busy plot "$TMP/log" --png "$TMP/live.trace"
busy ckpt reshard "$TMP/old" "$TMP/live"
busy ckpt reshard "$TMP/old" "$TMP/live/step-9"
busy ckpt export "$TMP/old" "$TMP/live"
busy ckpt export "$TMP/old" "$TMP/live/model.bin"
"$YARD" $train --steps 2 --log /dev/null >"$TMP/out2" 2>"$TMP/err"
result $? 'many may write to /dev/null'
kill -INT "$child"
ended 130 ', saved' && only_whole "$TMP/live" && [ "$(head -c 8 "$TMP/log")" = '{"run":{' ] &&
    grep '"loss"' "$TMP/log" | sed 's/^{"step":\([0-9]*\),.*/\1/' | awk '$0 != NR { exit 1 }' &&
    "$YARD" plot "$TMP/log" >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" trace summary "$TMP/live.trace" >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" ckpt verify "$TMP/live.snap" >"$TMP/out" 2>"$TMP/err"
result $? 'and the run has lost nothing'

mkfifo "$TMP/fifo"
cat "$TMP/fifo" >"$TMP/piped" &
"$YARD" $train --steps 3 --log "$TMP/fifo" >"$TMP/out" 2>"$TMP/err"
[ $? -eq 0 ] && wait $! && [ "$(wc -l <"$TMP/piped")" -eq 5 ]
result $? 'a log may be a pipe'
"$YARD" $train --steps 3 --log /dev/stdout >"$TMP/out" 2>"$TMP/err" &&
    [ "$(grep -c '^{"' "$TMP/out")" -eq 5 ] && grep -q '^devices ' "$TMP/out" &&
    grep -q '^sample:\|validation' "$TMP/out"
result $? 'or what stdout leads to'

# ---- a log that is lost ---------------------------------------------------------------------------------------------

lost() { # 'part of the warning', and no other
    [ "$(grep -c '^yard: ' "$TMP/err")" -eq 1 ] &&
        grep -q "warning: cannot write the log .*$1.*training goes on" "$TMP/err"
}
if [ -c /dev/full ]; then
    "$YARD" $train --steps 3 --log /dev/full --save "$TMP/full" >"$TMP/out" 2>"$TMP/err"
    [ $? -eq 4 ] && lost 'is the disk full?' && only_whole "$TMP/full" && "$YARD" ckpt verify "$TMP/full" >"$TMP/out"
    result $? 'a full disk under the log costs the log, not the run and what it saves'
fi
"$YARD" $train --steps 60 --save "$TMP/goes-on" --stop-after 30 --log "$TMP/whole.log" >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" $train --resume "$TMP/goes-on" --save "$TMP/goes-on" --stop-after 60 --log "$TMP/whole.log" \
        >"$TMP/out" 2>"$TMP/err" &&
    [ "$(grep -c '"loss"' "$TMP/whole.log")" -eq 60 ]
result $? 'a log goes on behind what is there'

# A log that is some lines short of a limit on files, which the driver's own ones keep far below.  What ulimit counts
# in, shells do not agree on: so a file of one unit is measured.
(ulimit -f 1 && head -c 4096 /dev/zero) >"$TMP/unit" 2>"$TMP/none"
limit=$(($(wc -c <"$TMP/unit") * 40000))
(cat "$TMP/whole.log" && awk 'BEGIN { for (;;) print "{\"step\":1,\"loss\":1}" }') |
    head -c $((limit - 1010)) | sed '$d' >"$TMP/short.log"
(ulimit -f 40000 && exec "$YARD" $train --resume "$TMP/goes-on" --steps 120 --log "$TMP/short.log") \
    >"$TMP/out" 2>"$TMP/err"
[ $? -eq 4 ] && lost 'is the disk full?' && grep -q 'step 120/120  validation loss' "$TMP/out" &&
    tail -n 1 "$TMP/short.log" | grep -q '^{"step":6[0-9],.*}$' && [ -z "$(tail -c 1 "$TMP/short.log")" ]
result $? 'and of one that is cut short the last line is whole'
rm -f "$TMP/short.log" "$TMP/log"
start $train --steps 3000 --log "$TMP/log" --snapshot "$TMP/gone.snap" --trace "$TMP/gone.trace"
within 600 "grep -q '^{\"snapshot\":' $TMP/log"
rm -f "$TMP/log" "$TMP/gone.snap" "$TMP/gone.trace"
ended 4 'gone.snap was removed, renamed or replaced by another program' && grep -q '^snapshots   0 stored' "$TMP/out" &&
    grep -q 'log: it was removed while it was written' "$TMP/err" &&
    grep -q 'gone.trace was removed while it was written' "$TMP/err" && [ "$(grep -c warning "$TMP/err")" -eq 3 ]
result $? 'what is removed while it is written is noticed'

# ---- what is somebody else's ----------------------------------------------------------------------------------------

"$YARD" $train --steps 2 --save "$TMP/anew" >"$TMP/out" 2>"$TMP/err"
echo notes >"$TMP/anew/step-2/mine.txt"
mkdir "$TMP/anew/step-2/plots"
"$YARD" $train --steps 3 --save "$TMP/anew" >"$TMP/out" 2>"$TMP/err" &&
    grep -q "the rest is in $TMP/anew/step-2.kept-[0-9]* now" "$TMP/err"
result $? 'that files of the user in an old checkpoint stay is said'

grep -qx notes "$TMP"/anew/step-2.kept-*/mine.txt
result $? 'they stay in a folder beside'

mv "$TMP"/anew/step-2.kept-* "$TMP/anew/rest"
echo notes >"$TMP/anew/step-3/mine.txt"
"$YARD" $train --steps 3 --save "$TMP/anew" >"$TMP/out" 2>"$TMP/err" && grep -qx notes "$TMP"/anew/step-3.kept-*/mine.txt
result $? 'they stay where a new checkpoint takes the place of the old one'

ls -A "$TMP/anew" | sed 's/kept-.*/kept/' >"$TMP/err"
printf '%s\n' model.safetensors rest step-3 step-3.kept | cmp -s - "$TMP/err"
result $? 'nothing else is left beside the checkpoints'

ls -A "$TMP/anew/rest" >"$TMP/err"
printf '%s\n' mine.txt plots | cmp -s - "$TMP/err"
result $? 'of an old checkpoint only the files of the user are left'

finish
