#!/bin/sh
# view.sh - the command `yard view`, from outside.
#
# This script checks that it refuses mistakes, draws pictures without a display, follows a trainer that stands or waits,
# and opens a real window.
#
# The function refuse() is in mistakes.sh, yard() and within() are in helpers.sh, and start() is in background.sh.
#
# To see it fail: in pick_neighbour() of pick.c, go two bars on.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh
. tests/lib/background.sh

# Processes in the background; the trainer is $child.
viewer= # yard view
screen= # the X server that has the window of yard view
unset DISPLAY WAYLAND_DISPLAY
unset XDG_RUNTIME_DIR # where traces of simulations would be rather than in TMPDIR

end_processes() { # what runs in the background ends with the test
    for process in $viewer $child; do # an empty one is no word
        kill -CONT "$process" 2>/dev/null
        kill -KILL "$process" 2>/dev/null
    done
    if [ -n "$screen" ]; then
        kill "$screen" 2>/dev/null
    fi
}
trap end_processes EXIT

check 'a step file is simulated into a trace' \
    yard plan --list data/steps/overlap-pays.txt --simulate --trace "$TMP/a.trace"

# ---- mistakes --------------------------------------------------------------------------------------------------------

refuse 2 'takes one trace or two, but 0 were given' view
refuse 2 'takes one trace or two, but 3 were given' view "$TMP/a.trace" "$TMP/a.trace" "$TMP/a.trace"
refuse 4 "cannot open $TMP/none.trace: No such file or directory" view "$TMP/none.trace"
refuse 1 'README.md is not a trace: `yard train --trace FILE` writes one' view README.md
echo 'device gpu' >"$TMP/bad.txt"
refuse 2 'bad.txt, line 1: "gpu": expected memory=BYTES after it' view "$TMP/bad.txt"
printf 'device gpu memory=1K\ntensor x gpu 8 work\ntask read gpu.compute 1ms reads=x\n' >"$TMP/unwritten.txt"
mkdir "$TMP/simulations"
export TMPDIR="$TMP/simulations" # where a simulation would be left
refuse 2 'task 0 read reads tensor x before anything is written to it' view "$TMP/unwritten.txt" --json
unset TMPDIR
check 'a list that is refused leaves no simulation behind' is_empty "$TMP/simulations"
refuse 2 '--output data/steps/chain.txt would overwrite what view reads' \
    view data/steps/chain.txt --json -o data/steps/chain.txt
refuse 2 '--size takes WIDTHxHEIGHT in pixels, 800x400 to 16384x16384, ... not "10x10"' \
    view "$TMP/a.trace" --png "$TMP/x.png" --size 10x10
refuse 2 '--size takes WIDTHxHEIGHT in pixels, 800x400 to 16384x16384, ... not "1280"' \
    view "$TMP/a.trace" --size 1280
refuse 2 'has "nokey", which is not a key' view "$TMP/a.trace" --png "$TMP/x.png" --script 'f nokey'
for word in click:1 click:1,2,3 drag:1,2,3,nan wheel:1e9 wheel; do
    refuse 2 "--script has \"$word\", which is not a key" view "$TMP/a.trace" --png "$TMP/x.png" --script "$word"
done
refuse 2 '--step takes a whole number from 1 to 2147483647, not "0"' view "$TMP/a.trace" --step 0
refuse 2 'holds the steps 1 to 5, but --step asks for 99' view "$TMP/a.trace" --step 99
refuse 4 "cannot create $TMP/none/x.png: No such file or directory" view "$TMP/a.trace" --png "$TMP/none/x.png"
refuse 2 "--png $TMP/a.trace would overwrite what view reads" view "$TMP/a.trace" --png "$TMP/a.trace"
export SDL_VIDEODRIVER=x11
if "$YARD" view "$TMP/a.trace" 2>&1 | grep -q 'built without SDL2'; then
    has_window=no
else
    has_window=yes
fi
if [ $has_window = yes ]; then
    refuse 4 '`yard view FILE --png OUT.png` writes a picture instead' view "$TMP/a.trace"
else
    refuse 2 'install SDL2' view "$TMP/a.trace"
fi

name='without a display'
if [ $has_window = yes ]; then
    (unset SDL_VIDEODRIVER && "$YARD" view "$TMP/a.trace") >"$TMP/out" 2>"$TMP/err"
    exit_code "$name: the exit code is 4" $? 4
    check "$name: that there is no window is said" grep -q '^yard: cannot open a window' "$TMP/err"
    same "$name: no library says another sentence" "$(wc -l <"$TMP/err")" 1
else
    skip "$name: one sentence is said" 'built without SDL2'
fi

# ---- pictures --------------------------------------------------------------------------------------------------------

value() { # NAME: of what view --json has printed
    json_value "$TMP/out" "$1"
}

# The key k changes the colours, and n selects the next task of a lane.
name='the same view twice, without a display'
check "$name: --step 2 is drawn" yard view "$TMP/a.trace" --png "$TMP/1.png" --step 2 --script 'k n'
check "$name: the page after step 1 is drawn" yard view "$TMP/a.trace" --png "$TMP/2.png" --script 'pagedown k n'
check "$name: the pictures are the same" cmp "$TMP/1.png" "$TMP/2.png"

name='a script selects the first backward'
check "$name: it runs" yard view "$TMP/a.trace" --step 2 --script 'n n n n n' --json
same "$name: that task is selected" "$(value task) of layer $(value layer)" 'backward of layer 3'
same "$name: its trace has ended" "$(value state)" ended
sed -n '/"needs"/,/\]/p' "$TMP/out" | tr -d ' \n' >"$TMP/needs"
check "$name: a task that it needs has its layer, its lane and its step" \
    grep -qF '{"task":"forward","layer":3,"micro":-1,"lane":"gpucompute","step":2}' "$TMP/needs"

name='the key t marks the time under the mouse'
check "$name: the script runs" yard view "$TMP/a.trace" --step 2 --script 'move:400,118 t move:900,118 t' --json
marks=$(sed -n '/"marks_ms"/,/]/p' "$TMP/out" | grep -c '[0-9]')
same "$name: two times are marked" "$marks" 2

# ---- a task is moved -------------------------------------------------------------------------------------------------

# Points X,Y, in pixels, of step 2 of broadcast.txt in a window of 1280 x 720, after the key `-`, which zooms out.  Y is
# in the row of a device's lane, and X is in the task that is named:
send_to_a='955,273'     # the first of b's three sends takes 3 ms, since c and d send to a then too
behind_sends='1240,273' # no task, but the end of b's last send: dragged to there, the first comes after the others
backward='500,119'      # on device a
forward='380,119'       # on device a: the backward needs what it writes

cp data/steps/broadcast.txt "$TMP/list.txt"
name='a task is dragged and the list is saved'
check "$name: the script runs" \
    yard view "$TMP/list.txt" --step 2 --script "- drag:$send_to_a,$behind_sends s" --png "$TMP/moved.png" --json
same "$name: one task is moved" "$(value moved)" 1
same "$name: the period as written is 9 ms" "$(value written_ms)" 9.0
same "$name: the period is 8 ms now" "$(value period_ms)" 8.0
check "$name: the list that was read stays as it was" cmp data/steps/broadcast.txt "$TMP/list.txt"
check "$name: the saved list can be read" yard plan --list "$TMP/list.moved.txt" --simulate --verify
check "$name: the saved list takes the time that was shown" grep -q '^simulated step: 8.000 ms' "$TMP/out"
check "$name: the saved list is proved" grep -q '^verify: 24 tasks' "$TMP/err"

name='a move that is undone'
check "$name: a list is saved without a move" yard view "$TMP/list.txt" -o "$TMP/a.txt" --script s --json
check "$name: a list is saved after it" \
    yard view "$TMP/list.txt" -o "$TMP/b.txt" --step 2 --script "- drag:$send_to_a,$behind_sends u s" --json
check "$name: both lists are the same" cmp "$TMP/a.txt" "$TMP/b.txt"

name='a task is dragged in front of one that it needs'
check "$name: the script runs" \
    yard view "$TMP/list.txt" --step 2 --script "- drag:$backward,$forward" --json
same "$name: nothing is moved" "$(value moved)" 0
check "$name: what is in the way is named" \
    grep -qF '"backward (layer 0) needs g.a, which forward (layer 0) writes"' "$TMP/out"

name='a list that is shown is not written over'
yard view "$TMP/list.txt" "$TMP/./list.moved.txt" --script s --json
exit_code "$name: the exit code is 2" $? 2
check "$name: the JSON says why" grep -q 'list.moved.txt is shown here: -o FILE takes another name' "$TMP/out"
check "$name: the command says why" grep -q 'list.moved.txt is shown here: -o FILE takes another name' "$TMP/err"

# ---- a trainer that lives --------------------------------------------------------------------------------------------

in_state() { # STATE: of the trainer, as its trace tells
    yard view "$TMP/live.trace" --json && [ "$(value state)" = "$1" ]
}
lines() { # of its log: they become more while it runs
    wc -l <"$TMP/live.jsonl"
}
has_more_lines() { # N: its log has more than N lines
    [ "$(lines)" -gt "$1" ]
}
stop_at_work() { # the trainer is stopped while a task runs; between two tasks none does: then it must be tried again
    kill -STOP "$child"
    if in_state stopped && grep -q '"lane": "0:0 compute"' "$TMP/out"; then
        return 0
    fi
    kill -CONT "$child"
    return 1
}

run_apart() { # WORDS...: yard WORDS in place of this shell; $TMP/out and $TMP/err are of other commands
    exec "$YARD" "$@" >"$TMP/train" 2>&1 </dev/null
}
train_by run_apart --steps 100000000 --trace "$TMP/live.trace" --log "$TMP/live.jsonl" &
child=$!
name='a trace is seen while it is written'
check "$name: the trainer makes steps" within 60 has_more_lines 5
check "$name: it is live" in_state live

name='a trainer is stopped'
check "$name: the viewer shows what runs on its lanes" within 60 stop_at_work
check "$name: the viewer draws a picture" yard view "$TMP/live.trace" --script l --png "$TMP/stopped.png"
kill -CONT "$child"

name='a viewer pauses the trainer'
if [ $has_window = yes ]; then
    SDL_VIDEODRIVER=dummy "$YARD" view "$TMP/live.trace" --script space 2>"$TMP/viewer" &
    viewer=$!
    check "$name: its trace says so" within 20 in_state paused
    before=$(lines)
    sleep 0.5 # in which a trainer that is not paused makes many steps
    same "$name: it makes no step" "$(lines)" "$before"
    kill -KILL "$viewer"
    check "$name: it goes on when the viewer is killed" within 20 has_more_lines $((before + 3))
else
    skip "$name" 'built without SDL2'
fi

last_loss() { # of the log, or of what view --json has printed
    json_values "$1" loss | tail -n 1
}
name='the trace tells the loss that the log has'
check "$name: a run is traced" \
    train_by yard --steps 5 --val-share 0 --trace "$TMP/loss.trace" --log "$TMP/loss.jsonl"
check "$name: the trace is shown" yard view "$TMP/loss.trace" --json
in_log=$(last_loss "$TMP/loss.jsonl")
in_trace=$(last_loss "$TMP/out")
check "$name: to 0.00001; log: $in_log, trace: $in_trace" \
    awk -v log_loss="$in_log" -v trace_loss="$in_trace" \
    'BEGIN { exit !(log_loss > 0 && (log_loss - trace_loss) ^ 2 < 1e-10) }'

# ---- a real window ---------------------------------------------------------------------------------------------------

# A window follows the trainer, is moved, zoomed, clicked into, and quits; sets: viewer.
use_window() { # DISPLAY
    cd "$TMP" || return 1
    export DISPLAY=":$1"
    "$YARD" view "$TMP/live.trace" 2>"$TMP/err" &
    viewer=$!
    trap 'kill -KILL $viewer 2>/dev/null' EXIT
    within 20 xdotool search --name 'yard view' || return 1
    window=$(xdotool search --name 'yard view' | head -n 1)
    xdotool mousemove --window "$window" 600 165 click 4 click 4 click 1 key k
    kill -STOP "$child"
    xdotool key --delay 50 Left Left w minus Page_Up n
    kill -CONT "$child"
    xdotool key q
    wait "$viewer"
}

# An X server takes windows, and has written its display.  Without -noreset it starts anew, and refuses whoever comes
# meanwhile, each time when its last client leaves; sets: screen.
start_screen() {
    Xvfb -noreset -displayfd 3 -screen 0 1400x900x24 3>"$TMP/display" >"$TMP/screen" 2>&1 &
    screen=$!
    within 30 screen_answers
}

screen_answers() {
    [ -s "$TMP/display" ] && DISPLAY=:$(cat "$TMP/display") xdotool getdisplaygeometry
}

if [ $has_window = no ] || ! command -v Xvfb >/dev/null || ! command -v xdotool >/dev/null; then
    skip 'a real window takes keys and mouse' 'needs SDL2, Xvfb and xdotool'
elif ! start_screen >/dev/null 2>&1; then
    skip 'a real window takes keys and mouse' "Xvfb does not come up here: $(tail -n 1 "$TMP/screen")"
else
    (use_window "$(cat "$TMP/display")")
    exit_code 'a real window takes keys and mouse while the trainer is stopped, and quits' $? 0
fi

kill -CONT "$child"
kill -INT "$child"
wait "$child"
same 'the trainer has come through all that, and SIGINT ends it: its exit code is 130' $? 130
child=
finish
