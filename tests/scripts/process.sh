#!/bin/sh
# process.sh - runs in difficult surroundings: signals at any moment, closed descriptors, limits, full disks, folders
# that are not there yet, other writers.
#
# This script checks that such a run ends as it should, and keeps what it has saved.
#
# A case starts a run that would go on for ever, waits until its log says that it trains, does something to it, and
# looks at how it ended and what it left:
#
#     train_by start --steps 100000000 --log "$TMP/log" --save "$TMP/folder"
#     check 'SIGINT: it trains' within 600 has_trained
#                                               waits up to 600 s for the log to have step 9
#     kill -INT "$child"
#     ended 'SIGINT' 130 ', saved'              two checks: the exit code, and a part of the sentence
#     only_whole 'SIGINT' "$TMP/folder"         nothing half-written is left
#
# Each case is a function; the end of this file calls them.  NAME is what the names of a case's checks begin with.  To
# add a case, do the same with another kill, file or limit.
#
# To see it fail: in publish_folder.c, let remove_stray_folders() pass over all that it finds.
. tests/lib/helpers.sh
. tests/lib/background.sh

only_whole() { # NAME FOLDER: checks that it holds checkpoints and the model, and nothing half-written
    found=$(ls -A "$2" | sed 's/step-[0-9]*$/step-N/' | sort -u | tr '\n' ' ')
    same "$1: there are only checkpoints and a model" "$found" 'model.safetensors step-N '
    for checkpoint in "$2"/step-*; do
        check "$1: ${checkpoint##*/} has its manifest" [ -f "$checkpoint/manifest.json" ]
        check "$1: ${checkpoint##*/} has its file" [ -f "$checkpoint/rank-0.safetensors" ]
    done
}

# ---- signals ---------------------------------------------------------------------------------------------------------

# A run that is told to end finishes its step, saves, prints the command that goes on, and ends with 130: before the
# first step, in a step, with a snapshot, and during an evaluation.

# Tens of millions of first values take a while: the signal comes before they are there.
signal_before_the_first_step() { # NAME
    train_by start --steps 100000000 --channels 1024 --save "$TMP/set-up"
    check "$1: the run begins before it" within 600 [ -d "$TMP/set-up" ]
    kill -INT "$child"
    ended "$1" 130 'yard: interrupted'
    check "$1: no step was made" lacks '^step  *1/' "$TMP/out"
    check "$1: nothing is saved" is_empty "$TMP/set-up"
}

# Under nohup this script ignores SIGHUP, and so do its children: the last digit of the mask is odd then.
signals_of_each_kind() {
    signals='INT TERM HUP USR1 USR2 XCPU'
    case $(sed -n 's/^SigIgn:.*\(.\)$/\1/p' /proc/self/status 2>/dev/null) in
    [13579bdf]) signals='INT TERM USR1 USR2 XCPU' ;;
    esac
    for signal in $signals; do
        train_by start --steps 100000000 --log "$TMP/log" --save "$TMP/$signal"
        check "SIG$signal: the run trains before it" within 600 has_trained
        kill "-$signal" "$child"
        ended "SIG$signal" 130 ', saved'
        only_whole "SIG$signal" "$TMP/$signal"
        check "SIG$signal: the command that resumes is printed" grep -qx \
            "it goes on with: $YARD train --resume $TMP/$signal --save $TMP/$signal --log $TMP/log" "$TMP/err"
    done
}

# As timeout sends it: to the run, and then to the group of processes to which both belong.
signal_sent_twice() { # NAME
    train_by start --steps 100000000 --log "$TMP/log" --save "$TMP/twice"
    check "$1: the run trains before it" within 600 has_trained
    kill -TERM "$child"
    sleep 0.002
    kill -TERM "$child"
    ended "$1" 130 ', saved'
    only_whole "$1" "$TMP/twice"
}

signal_with_a_snapshot() { # NAME
    train_by start --steps 100000000 --log "$TMP/log" --snapshot "$TMP/run.snap"
    check "$1: a snapshot is stored before it" within 600 has_stored
    kill -INT "$child"
    ended "$1" 130 '; the newest snapshot is of step '
    check "$1: the command that resumes is printed" grep -qx \
        "it goes on with: $YARD train --resume $TMP/run.snap --snapshot $TMP/run.snap --log $TMP/log" "$TMP/err"
    check "$1: the writes under way were finished" yard ckpt verify "$TMP/run.snap"
    check "$1: the run is resumed" \
        yard train --resume "$TMP/run.snap" --snapshot "$TMP/run.snap" --log "$TMP/log" --steps 1 --warmup 0
    check "$1: the resumed run says that nothing is left to train" \
        grep -q 'nothing is left to train' "$TMP/out" "$TMP/err"
}

# An evaluation that has begun is interrupted and has no loss.  This one takes many seconds.  It has begun when one of
# its tasks has ended: then the summary of its list has the line  "steps    1 to 20, ...".
evaluates() {
    "$YARD" trace summary "$TMP/evaluation.trace" --list eval | grep '^steps '
}
signal_during_an_evaluation() { # NAME
    met='the evaluation after step 9 was interrupted, and has no loss'
    for copy in 1 2 3 4 5 6 7 8; do
        cat src/gallery/*.sh tests/*/*.sh README.md tutorials/*.md
    done >"$TMP/long.txt"
    start train --model tiny --micro-batch 1 --val-every 9 --steps 100000000 --log "$TMP/log" --save "$TMP/evaluation" \
        --val-data "$TMP/long.txt" --trace "$TMP/evaluation.trace"
    check "$1: the evaluation has begun before it" within 600 evaluates
    kill -INT "$child"
    ended "$1" 130 'yard: interrupted'
    only_whole "$1" "$TMP/evaluation"
    check "$1: a sentence says that it was interrupted" grep -q "$met" "$TMP/err"
    check "$1: the log has no loss of it" lacks val_loss "$TMP/log"
    check "$1: the step before it is saved" grep -q 'interrupted after step 9, saved' "$TMP/err"
}

signal_to_sample() {
    start sample --from "$TMP/INT" --count 1000000
    check 'a signal to yard sample: a text is printed before it' within 600 [ -s "$TMP/out" ]
    kill -TERM "$child"
    ended 'a signal to yard sample' 130 'yard: interrupted'
}

start_nohup() { # WORDS...: yard WORDS, as nohup would start it
    start_command ignore_hup "$@"
}
ignore_hup() {
    trap '' HUP
    exec "$YARD" "$@"
}
signal_that_is_ignored() { # NAME
    train_by start_nohup --steps 200 --log "$TMP/log"
    check "$1: the run trains before it" within 600 has_trained
    kill -HUP "$child"
    wait "$child"
    exit_code "$1 is ignored" $? 0
}

# ---- descriptors and limits ------------------------------------------------------------------------------------------

# What the system refuses while a run goes on: standard descriptors, the end of its trace, a larger file.

closed_descriptors() {
    train_by "$YARD" --steps 3 --trace "$TMP/trace" <&- >&- 2>&-
    same 'a run trains with descriptors 0 to 2 closed: its exit code is 0' $? 0
    check 'no progress gets into the trace of a run with descriptors 0 to 2 closed' yard trace summary "$TMP/trace"
}

cut_trace() { # NAME
    train_by yard --steps 400 --save "$TMP/untraced"
    train_by start --steps 400 --log "$TMP/log" --trace "$TMP/cut.trace" --save "$TMP/cut"
    check "$1: the run trains first" within 600 has_trained
    : >"$TMP/cut.trace"
    ended "$1" 0 'the trace was cut by another program'
    check "$1: that is said once" said_times 1 'the trace was cut' "$TMP/err"
    check "$1: training comes to the same" cmp -s "$TMP/cut/model.safetensors" "$TMP/untraced/model.safetensors"
}

# (A plan for a described machine starts no driver, which might have files of its own to write.)
limit_on_files() {
    (ulimit -f 4 && exec "$YARD" plan --model tiny --hardware data/hardware/server.txt --print) >"$TMP/out" 2>"$TMP/err"
    exit_code 'a limit on the size of files: the exit code is that of a full disk' $? 4
    check 'a limit on the size of files: it asks whether the disk is full' grep -q 'is the disk full?' "$TMP/err"
}

# ---- a full disk under the driver's kernels --------------------------------------------------------------------------

# The driver stores the kernels that it compiles.  Where it cannot, it says nothing: yard finds out and says it.
full_disk_under_kernels() {
    mkdir "$TMP/small"
    if unshare --mount mount -t tmpfs -o size=600k tmpfs "$TMP/small" 2>/dev/null &&
        "$YARD" devices | grep -q PoCL; then
        # The mount is seen by this command alone.  The inner sh has the folder as $0 and the run's words as $@.
        unshare --mount sh -c 'mount -t tmpfs -o size=600k tmpfs "$0" && POCL_CACHE_DIR=$0/cache "$@"' "$TMP/small" \
            "$YARD" train --model nano --steps 1 --sample-tokens 0 >"$TMP/out" 2>"$TMP/err"
        exit_code 'a full disk under the cache of kernels ends the run' $? 4
        check 'a full disk under the cache of kernels is named' grep -q 'is full; make room there' "$TMP/err"
    else
        skip 'a full disk under the cache of kernels' 'a small disk can be mounted by root alone'
    fi
}

# ---- folders and strays ----------------------------------------------------------------------------------------------

# A run makes folders that are not there yet.  What a killed run left half-written in one, it removes; what a living
# process or the user has there, it leaves.

folder_of_a_run() {
    check 'a trace and a log may lie in the folder that --save makes' \
        train_by yard --steps 3 --trace "$TMP/new/trace" --log "$TMP/new/log" --save "$TMP/new"
    same 'the folder has the trace, the log, the model and a checkpoint' \
        "$(ls "$TMP/new" | tr '\n' ' ')" 'log model.safetensors step-3 trace '
}

is_saving() { # FOLDER: a checkpoint is half-written there
    ls -d "$1"/step-*.tmp-*
}
strays_of_a_killed_run() {
    train_by start --steps 100000000 --save-every 1 --log "$TMP/log" --save "$TMP/strays"
    check 'a run that is killed later: it trains' within 600 has_trained
    check 'a run that is killed later: it is saving' within 600 is_saving "$TMP/strays"
    kill -KILL "$child"
    wait "$child" 2>/dev/null
    : >"$TMP/strays/model.safetensors.tmp-$child"
    : >"$TMP/strays/model.safetensors.tmp-$$"
    : >"$TMP/strays/mine.tmp-$child"
    mkdir -p "$TMP/strays/step-7.tmp-$child" "$TMP/strays/step-7.tmp-$$" # the first may have been renamed by then
    : >"$TMP/strays/step-7.tmp-$child/rank-0.safetensors"
    check 'a run saves where another one was killed' train_by yard --steps 3 --save "$TMP/strays"
    check "a killed run's checkpoint is removed" [ ! -e "$TMP/strays/step-7.tmp-$child" ]
    check "a killed run's model is removed" [ ! -e "$TMP/strays/model.safetensors.tmp-$child" ]
    check 'what a process that lives is writing stays: its checkpoint' [ -e "$TMP/strays/step-7.tmp-$$" ]
    check 'what a process that lives is writing stays: its model' [ -e "$TMP/strays/model.safetensors.tmp-$$" ]
    check 'a file of the user stays' [ -e "$TMP/strays/mine.tmp-$child" ]
    files=$(ls -A "$TMP/strays" | tr '\n' ' ')
    same "the folder has only the checkpoint and the model of the last run, and what had to stay" \
        "$files" "mine.tmp-$child model.safetensors model.safetensors.tmp-$$ step-3 step-7.tmp-$$ "
}

# ---- two writers, one file -------------------------------------------------------------------------------------------

# While a run writes to its log, trace, snapshot and folder, no other command may write there.

busy() { # WORDS...: they are refused, since another run writes there
    yard "$@"
    code=$?
    exit_code "while a run goes on: $*: the exit code is 2" $code 2
    check "while a run goes on: $*: it says one sentence" said_times 1 '^yard: ' "$TMP/err"
    check "while a run goes on: $*: it says why" grep -q 'another run is writing' "$TMP/err"
}

missing_steps() { # the log has a line for each step from 1 on; has_trained() has seen step 9
    grep '"loss"' "$TMP/log" | sed 's/^{"step":\([0-9]*\),.*/\1/' >"$TMP/steps"
    enough 9 "$TMP/steps" 'steps in the log'
    awk '$0 != NR { print "line " NR " is of step " $0 }' "$TMP/steps"
}

other_writers() { # NAME: of the run that goes on
    check 'a run saves a checkpoint that others want to rewrite' train_by yard --steps 2 --save "$TMP/old"
    mkdir "$TMP/live"
    train_by start --steps 100000000 --log "$TMP/log" --trace "$TMP/live.trace" --save "$TMP/live" \
        --snapshot "$TMP/live.snap"
    check "$1: it trains" within 600 has_trained
    mv "$TMP/err" "$TMP/live.err" # the run goes on writing there; `err` is now of other commands

    train_by busy --steps 2 --log "$TMP/log"
    train_by busy --steps 3 --resume "$TMP/old" --log "$TMP/log"
    train_by busy --steps 2 --log "$TMP/live.snap"
    train_by busy --steps 2 --log "$TMP/live.trace"
    train_by busy --steps 2 --trace "$TMP/live.trace"
    busy plan --model tiny --hardware data/hardware/server.txt --simulate --trace "$TMP/live.trace"
    busy profile --model tiny -o "$TMP/log"
    busy plot "$TMP/log" --png "$TMP/live.trace"
    busy ckpt reshard "$TMP/old" "$TMP/live"
    busy ckpt reshard "$TMP/old" "$TMP/live/step-9"
    busy ckpt export "$TMP/old" "$TMP/live"
    busy ckpt export "$TMP/old" "$TMP/live/model.bin"
    check 'many may write to /dev/null' train_by yard --steps 2 --log /dev/null
    mv "$TMP/live.err" "$TMP/err"
    kill -INT "$child"
    ended "$1" 130 ', saved'
    only_whole "$1" "$TMP/live"
    same "$1: its log begins with its description" "$(head -c 8 "$TMP/log")" '{"run":{'
    finds_nothing "$1: its log has every step" missing_steps
    check "$1: its log can be drawn" yard plot "$TMP/log"
    check "$1: its trace can be read" yard trace summary "$TMP/live.trace"
    check "$1: its snapshot is sound" yard ckpt verify "$TMP/live.snap"
}

log_to_a_pipe() {
    mkfifo "$TMP/fifo"
    cat "$TMP/fifo" >"$TMP/piped" &
    reader=$!
    check 'a log may be a pipe' train_by yard --steps 3 --log "$TMP/fifo"
    wait $reader
    same 'the pipe has had all lines: the run, 3 steps, the end' "$(wc -l <"$TMP/piped")" 5
}

log_to_stdout() {
    check 'a log may be what stdout leads to' train_by yard --steps 3 --log /dev/stdout
    check 'stdout has all lines of the log' said_times 5 '^{"' "$TMP/out"
    check 'stdout has what the run prints in the beginning' grep -q '^devices ' "$TMP/out"
    check 'stdout has what the run prints in the end' grep -q '^sample:\|validation' "$TMP/out"
}

# ---- a log that is lost ----------------------------------------------------------------------------------------------

# A run that cannot write its log any more trains on to its end, and ends with 4.

loses_log() { # NAME CODE: three checks of a run that has ended with that code
    exit_code "$1: the exit code is 4" "$2" 4
    check "$1: a warning asks whether the disk is full" \
        grep -q 'warning: cannot write the log .*is the disk full?.*training goes on' "$TMP/err"
    check "$1: that is all that is said" said_times 1 '^yard: ' "$TMP/err"
}

full_disk_under_the_log() { # NAME
    if [ -c /dev/full ]; then
        train_by yard --steps 3 --log /dev/full --save "$TMP/full"
        loses_log "$1" $?
        only_whole "$1" "$TMP/full"
        check "$1: what is saved is sound" yard ckpt verify "$TMP/full"
    fi
}

log_without_a_reader() { # NAME
    mkfifo "$TMP/left"
    head -n 3 "$TMP/left" >"$TMP/read" &
    reader=$!
    train_by yard --steps 9 --log "$TMP/left" --save "$TMP/unread"
    exit_code "$1: the exit code is 4" $? 4
    wait $reader
    check "$1: a warning says that nobody reads it" \
        grep -q 'warning: cannot write the log .*nobody reads it any more' "$TMP/err"
    check "$1: the run goes on to its last step" [ -d "$TMP/unread/step-9" ]
}

log_of_a_run_that_goes_on() { # NAME
    check "$1: it stops" train_by yard --steps 60 --save "$TMP/goes-on" --stop-after 30 --log "$TMP/whole.log"
    check "$1: it goes on" \
        train_by yard --resume "$TMP/goes-on" --save "$TMP/goes-on" --stop-after 60 --log "$TMP/whole.log"
    check "$1: its log has all 60 steps" said_times 60 '"loss"' "$TMP/whole.log"
}

# A log that is some lines short of a limit on files, which the driver's own ones keep far below.  Shells do not agree
# on the unit of ulimit -f, so a file of one unit is measured.
log_that_is_cut_short() {
    units=40000 # is 20 MB where the unit is 512 bytes
    room=1010   # bytes below the limit: some lines of a log
    (ulimit -f 1 && head -c 4096 /dev/zero) >"$TMP/unit" 2>"$TMP/none"
    limit=$(($(wc -c <"$TMP/unit") * units))
    (cat "$TMP/whole.log" && awk 'BEGIN { for (;;) print "{\"step\":1,\"loss\":1}" }') |
        head -c $((limit - room)) | sed '$d' >"$TMP/short.log"
    (ulimit -f $units && train_by "$YARD" --resume "$TMP/goes-on" --steps 120 --log "$TMP/short.log") \
        >"$TMP/out" 2>"$TMP/err"
    loses_log 'a log that is cut short' $?
    check 'a log that is cut short: training goes on to its end' grep -q 'step 120/120  validation loss' "$TMP/out"
    tail -n 1 "$TMP/short.log" >"$TMP/last"
    check 'a log that is cut short: its last line is whole' grep -q '^{"step":6[0-9],.*}$' "$TMP/last"
    same 'a log that is cut short: it ends with the end of a line' "$(tail -c 1 "$TMP/short.log")" ''
}

files_that_are_removed() { # NAME
    rm -f "$TMP/short.log"
    train_by start --steps 3000 --log "$TMP/log" --snapshot "$TMP/gone.snap" --trace "$TMP/gone.trace"
    check "$1: a snapshot is stored first" within 600 has_stored
    rm -f "$TMP/log" "$TMP/gone.snap" "$TMP/gone.trace"
    ended "$1" 4 'gone.snap was removed, renamed or replaced by another program'
    check "$1: no snapshot counts as stored" grep -q '^snapshots   0 stored' "$TMP/out"
    check "$1: the log is named" grep -q 'log: it was removed while it was written' "$TMP/err"
    check "$1: the trace is named" grep -q 'gone.trace was removed while it was written' "$TMP/err"
    check "$1: there is one warning for each" said_times 3 warning "$TMP/err"
}

# ---- what is somebody else's -----------------------------------------------------------------------------------------

# A run replaces the checkpoints that an earlier one left in its folder, and keeps the user's files of them.

files_of_the_user() { # NAME
    train_by yard --steps 2 --save "$TMP/anew"
    echo notes >"$TMP/anew/step-2/mine.txt"
    mkdir "$TMP/anew/step-2/plots"
    check "$1: a run saves another one beside it" train_by yard --steps 3 --save "$TMP/anew"
    check "$1: it says where they are now" grep -q "the rest is in $TMP/anew/step-2.kept-[0-9]* now" "$TMP/err"
    check "$1: they are in the folder that it names" grep -qx notes "$TMP"/anew/step-2.kept-*/mine.txt

    mv "$TMP"/anew/step-2.kept-* "$TMP/anew/rest"
    echo notes >"$TMP/anew/step-3/mine.txt"
    check "$1: a new checkpoint takes its place" train_by yard --steps 3 --save "$TMP/anew"
    check "$1: they are kept then too" grep -qx notes "$TMP"/anew/step-3.kept-*/mine.txt

    files=$(ls -A "$TMP/anew" | sed 's/kept-.*/kept/' | tr '\n' ' ')
    same "$1: nothing else is left beside the checkpoints" \
        "$files" 'model.safetensors rest step-3 step-3.kept '
    files=$(ls -A "$TMP/anew/rest" | tr '\n' ' ')
    same "$1: nothing else is left of the old checkpoint" "$files" 'mine.txt plots '
}

# ---- all of them -----------------------------------------------------------------------------------------------------

signal_before_the_first_step 'a signal before the first step'
signals_of_each_kind
signal_sent_twice 'a signal that is sent twice within milliseconds'
signal_with_a_snapshot 'a signal with --snapshot'
signal_during_an_evaluation 'a signal during an evaluation'
signal_to_sample
signal_that_is_ignored 'a SIGHUP that the parent ignores (nohup)'
closed_descriptors
cut_trace 'a trace that somebody cuts'
limit_on_files
full_disk_under_kernels
folder_of_a_run
strays_of_a_killed_run
other_writers 'the run that goes on'
log_to_a_pipe
log_to_stdout
full_disk_under_the_log 'a full disk under the log'
log_without_a_reader 'a log whose reader goes away'
log_of_a_run_that_goes_on 'a run that stops and goes on'
log_that_is_cut_short
files_that_are_removed 'files that are removed while they are written'
files_of_the_user 'files of the user in an old checkpoint'
finish
