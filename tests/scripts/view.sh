#!/bin/sh
# view.sh - yard view from outside: mistakes, pictures without a display, a trainer that stands or waits, a real
# window.
#
# mistakes.sh has refuse(), helpers.sh has within().
. tests/run/helpers.sh
. tests/run/mistakes.sh

child=  # processes in the background: a trainer,
viewer= # yard view,
screen= # and the X server that has its window
unset DISPLAY WAYLAND_DISPLAY
unset XDG_RUNTIME_DIR # where traces of simulations would be rather than in TMPDIR

end_processes() { # what runs in the background ends with the test
    for process in $viewer $child; do
        kill -CONT "$process" 2>/dev/null
        kill -KILL "$process" 2>/dev/null
    done
    if [ -n "$screen" ]; then
        kill "$screen" 2>/dev/null
    fi
}
trap end_processes EXIT

"$YARD" plan --list data/steps/overlap-pays.txt --simulate --trace "$TMP/a.trace" >"$TMP/out" 2>"$TMP/err"
result $? 'a step file is simulated into a trace'

# ---- mistakes -------------------------------------------------------------------------------------------------------

refuse 2 'takes one trace or two, but 0 were given' view
refuse 2 'takes one trace or two, but 3 were given' view "$TMP/a.trace" "$TMP/a.trace" "$TMP/a.trace"
refuse 4 'No such file' view "$TMP/none.trace"
refuse 1 'is not a trace' view README.md
echo 'device gpu' >"$TMP/bad.txt"
refuse 2 'bad.txt, line 1' view "$TMP/bad.txt"
printf 'device gpu memory=1K\ntensor x gpu 8 work\ntask read gpu.compute 1ms reads=x\n' >"$TMP/unwritten.txt"
export TMPDIR="$TMP" # where a simulation would be left
refuse 2 'before anything is written to it' view "$TMP/unwritten.txt" --json
unset TMPDIR
! ls "$TMP"/yard-*.trace >"$TMP/out" 2>&1
result $? 'of a list that is refused no simulation stays behind'
refuse 2 '--output' view data/steps/chain.txt --json -o data/steps/chain.txt
refuse 2 '--size takes WIDTHxHEIGHT' view "$TMP/a.trace" --png "$TMP/x.png" --size 10x10
refuse 2 '--size takes WIDTHxHEIGHT' view "$TMP/a.trace" --size 1280
refuse 2 'has "nokey", which is not a key' view "$TMP/a.trace" --png "$TMP/x.png" --script 'f nokey'
for word in click:1 click:1,2,3 drag:1,2,3,nan wheel:1e9 wheel; do
    refuse 2 "$word" view "$TMP/a.trace" --png "$TMP/x.png" --script "$word"
done
refuse 2 '--step' view "$TMP/a.trace" --step 0
refuse 2 'holds the steps 1 to 5, but --step asks for 99' view "$TMP/a.trace" --step 99
refuse 4 'x.png' view "$TMP/a.trace" --png "$TMP/none/x.png"
refuse 2 '--png' view "$TMP/a.trace" --png "$TMP/a.trace"
export SDL_VIDEODRIVER=x11
has_window=yes # or no, where the program was built without SDL2
"$YARD" view "$TMP/a.trace" 2>&1 | grep -q 'built without SDL2' && has_window=no
if [ $has_window = yes ]; then
    refuse 4 'yard view FILE --png OUT.png writes a picture instead' view "$TMP/a.trace"
else
    refuse 2 'install SDL2' view "$TMP/a.trace"
fi

one_sentence() { # is all that is said where there is no display
    (unset SDL_VIDEODRIVER && "$YARD" view "$TMP/a.trace") >"$TMP/out" 2>"$TMP/err"
    [ $? -eq 4 ] && [ "$(wc -l <"$TMP/err")" -eq 1 ] && grep -q '^yard: cannot open a window' "$TMP/err"
}
if [ $has_window = yes ]; then
    one_sentence
    result $? 'without a display one sentence is said, and no library says another'
else
    skip 'without a display one sentence is said' 'built without SDL2'
fi

# ---- pictures -------------------------------------------------------------------------------------------------------

"$YARD" view "$TMP/a.trace" --png "$TMP/1.png" --step 2 --script 'k n' >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" view "$TMP/a.trace" --png "$TMP/2.png" --script 'pagedown k n' >"$TMP/out" 2>"$TMP/err" &&
    cmp "$TMP/1.png" "$TMP/2.png" >"$TMP/err"
result $? 'the same view is the same picture, without a display'

"$YARD" view "$TMP/a.trace" --step 2 --script 'n n n n n' --json >"$TMP/out" 2>"$TMP/err" &&
    grep -q '"task": "backward"' "$TMP/out" && grep -q '"state": "ended"' "$TMP/out"
result $? 'a script selects the first backward'

"$YARD" view "$TMP/a.trace" --step 2 --script 'n n n n n' --json >"$TMP/out" 2>"$TMP/err" &&
    sed -n '/"needs"/,/\]/p' "$TMP/out" | tr -d ' \n' |
    grep -qF '{"task":"forward","layer":3,"micro":-1,"lane":"gpucompute","step":2}'
result $? 'each task that it needs has its layer, its lane and its step'

"$YARD" view "$TMP/a.trace" --step 2 --script 'move:400,118 t move:900,118 t' --json >"$TMP/out" 2>"$TMP/err" &&
    [ "$(sed -n '/"marks_ms"/,/]/p' "$TMP/out" | grep -c '[0-9]')" -eq 2 ]
result $? 'the key t marks the time under the mouse, for two times'

# ---- a task is moved ------------------------------------------------------------------------------------------------

value() { # NAME: of what view --json has printed
    json_value "$TMP/out" "$1"
}
cp data/steps/broadcast.txt "$TMP/list.txt"
"$YARD" view "$TMP/list.txt" --step 2 --script '- drag:955,273,1240,273 s' --png "$TMP/moved.png" --json \
    >"$TMP/out" 2>"$TMP/err" && [ "$(value written_ms) $(value period_ms) $(value moved)" = '9.0 8.0 1' ] &&
    cmp -s data/steps/broadcast.txt "$TMP/list.txt" &&
    "$YARD" plan --list "$TMP/list.moved.txt" --simulate --verify >"$TMP/out" 2>"$TMP/err" &&
    grep -q '^simulated step: 8.000 ms' "$TMP/out" && grep -q '^verify: 24 tasks' "$TMP/err"
result $? 'a task is dragged, and the list that is saved takes the time that was shown'

"$YARD" view "$TMP/list.txt" -o "$TMP/a.txt" --script s --json >"$TMP/out" 2>"$TMP/err" &&
    "$YARD" view "$TMP/list.txt" -o "$TMP/b.txt" --step 2 --script '- drag:955,273,1240,273 u s' --json >"$TMP/out" \
        2>"$TMP/err" && cmp "$TMP/a.txt" "$TMP/b.txt" >"$TMP/err"
result $? 'a move that is undone leaves no trace in the saved list'

"$YARD" view "$TMP/list.txt" --step 2 --script '- drag:500,119,380,119' --json >"$TMP/out" 2>"$TMP/err" &&
    [ "$(value moved)" = 0 ] && grep -qF '"backward (layer 0) needs g.a, which forward (layer 0) writes"' "$TMP/out"
result $? 'what is in the way of a task is named'

"$YARD" view "$TMP/list.txt" "$TMP/./list.moved.txt" --script s --json >"$TMP/out" 2>"$TMP/err"
[ $? -eq 2 ] && grep -q 'is shown here' "$TMP/out" && grep -q 'is shown here' "$TMP/err"
result $? 'a list that is shown is not written over'

# ---- a trainer that lives -------------------------------------------------------------------------------------------

state() { # of the trainer, by its trace
    "$YARD" view "$TMP/live.trace" --json 2>"$TMP/err"
}
lines() { # of its log: they become more while it runs
    wc -l <"$TMP/live.jsonl"
}
"$YARD" train --model tiny --steps 100000000 --sample-tokens 0 --val-batches 1 --trace "$TMP/live.trace" \
    --log "$TMP/live.jsonl" >"$TMP/train" 2>&1 </dev/null &
child=$!
within 60 '[ "$(lines)" -gt 5 ]' && state >"$TMP/out" && grep -q '"state": "live"' "$TMP/out"
result $? 'a trace is seen while it is written'

stop_at_work() { # between two tasks nothing runs: try again
    kill -STOP "$child" && state >"$TMP/out" && grep -q '"state": "stopped"' "$TMP/out" &&
        grep -q '"lane": "0:0 compute"' "$TMP/out" && return
    kill -CONT "$child" && return 1
}
within 60 stop_at_work &&
    "$YARD" view "$TMP/live.trace" --script l --png "$TMP/stopped.png" >"$TMP/out" 2>"$TMP/err"
result $? 'a stopped trainer leaves the viewer alive, which shows what runs on its lanes'
kill -CONT "$child"

if [ $has_window = yes ]; then
    SDL_VIDEODRIVER=dummy "$YARD" view "$TMP/live.trace" --script space 2>"$TMP/err" &
    viewer=$!
    within 20 'state | grep -q "\"state\": \"paused\""' && before=$(lines) && sleep 0.5 && [ "$(lines)" -eq "$before" ]
    result $? 'a viewer pauses the trainer'
    kill -KILL "$viewer"
    within 20 '[ "$(lines)" -gt $((before + 3)) ]'
    result $? 'a viewer that is killed during a pause does not hold the trainer'
else
    skip 'a viewer pauses the trainer' 'built without SDL2'
fi

last_loss() { # of the log, or of what view --json has printed
    json_values "$1" loss | tail -n 1
}
"$YARD" train --model tiny --steps 5 --sample-tokens 0 --val-share 0 --trace "$TMP/loss.trace" --log "$TMP/loss.jsonl" \
    >"$TMP/out" 2>"$TMP/err" && "$YARD" view "$TMP/loss.trace" --json >"$TMP/out" 2>"$TMP/err" &&
    awk -v told="$(last_loss "$TMP/loss.jsonl")" -v seen="$(last_loss "$TMP/out")" \
        'BEGIN { exit !(told > 0 && (told - seen) ^ 2 < 1e-10) }'
result $? 'the trace tells the loss that the log has'

# ---- a real window --------------------------------------------------------------------------------------------------

# A window follows the trainer: moves, zooms, clicks, stops it, takes a picture and quits; sets: viewer.
smoke() { # DISPLAY
    cd "$TMP" || return 1
    export DISPLAY=:$1
    "$YARD" view "$TMP/live.trace" 2>"$TMP/err" &
    viewer=$!
    trap 'kill -KILL $viewer 2>/dev/null' EXIT
    within 20 'xdotool search --name "yard view"' || return 1
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
    within 30 '[ -s "$TMP/display" ] && DISPLAY=:$(cat "$TMP/display") xdotool getdisplaygeometry'
}

if [ $has_window = no ] || ! command -v Xvfb >/dev/null || ! command -v xdotool >/dev/null; then
    skip 'a real window takes keys and mouse' 'needs SDL2, Xvfb and xdotool'
elif ! start_screen >/dev/null 2>&1; then
    skip 'a real window takes keys and mouse' "Xvfb does not come up here: $(tail -n 1 "$TMP/screen")"
else
    (smoke "$(cat "$TMP/display")")
    result $? 'a real window takes keys and mouse while the trainer is stopped, and quits'
fi

kill -CONT "$child"
kill -INT "$child"
wait "$child"
[ $? -eq 130 ]
result $? 'the trainer has come through all that'
child=
finish
