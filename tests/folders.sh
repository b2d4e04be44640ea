#!/bin/sh
# folders.sh - folders of techniques and tools can be left out (src/trainer/base/module.h), and includes point down.
#
# For each folder that registers itself: `make WITHOUT=FOLDER` builds, trains three steps with the bits of the whole
# program, and has none of its commands.  The objects are the same; only the table of folders is compiled.
#
# YARD is the program, TMP an empty folder.  The report is TAP (see run.sh).
set -u
LC_ALL=C
export LC_ALL
YARD=$(realpath "${YARD:-./yard}")
TMP=$(realpath "${TMP:-$(mktemp -d)}")

. tests/report.sh

# ---- includes ---------------------------------------------------------------------------------------------------------

# trainer  <-  techniques/pass, tools/predict, tools/lists, tools/proof, tools/trace  <-  other techniques  <-  other tools
grep -n '^#include "\(trainer\|techniques\|tools\)/' src/*/*/*.[ch] | sed 's|^src/||; s|:[0-9]*:#include "| |; s|".*||' | awk '
    function level(path,  part) {
        split(path, part, "/")
        if (part[1] == "trainer") return 0
        if (part[1] "/" part[2] ~ /^(techniques\/pass|tools\/(predict|lists|proof|trace))$/) return 1
        return part[1] == "techniques" ? 2 : 3
    }
    level($2) > level($1)' | sort >"$TMP/up"
# What is left of these goes with the hooks by which the trainer asks a folder that it does not name.
cat >"$TMP/known" <<'END'
trainer/cmd/train.c tools/trace/follow.h
trainer/train/progress.c tools/lists/lists.h
trainer/train/settings.c tools/trace/trace.h
trainer/train/train.h techniques/pass/pass.h
trainer/train/train.h techniques/snapshot/snap.h
trainer/train/train.h tools/predict/predict.h
trainer/train/train.h tools/proof/proof.h
trainer/train/trainer.c tools/pace/pace.h
trainer/train/trainer.c tools/trace/record.h
END
diff "$TMP/known" "$TMP/up" >"$TMP/err"
result $? "includes point down, but for $(wc -l <"$TMP/known" | tr -d ' ') that are known"

# ---- leaving one out --------------------------------------------------------------------------------------------------

train() { # PROGRAM SAVE
    "$1" train --model tiny --data LICENSE --steps 3 --val-batches 1 --sample-tokens 0 --save "$2" >"$TMP/out" 2>"$TMP/err"
}
train "$YARD" "$TMP/whole"
result $? 'the whole program trains'
struct='^const struct module module_'
for file in $(grep -l "$struct" src/techniques/*/*.c src/tools/*/*.c); do
    folder=$(sed -n "s/$struct\([a-z]*\).*/\1/p" "$file")
    sed -n "/$struct/,/};\$/p" "$file" | grep -q '\.called = true' && continue
    rm -rf "$TMP/yard" "$TMP/less"
    make -s YARD="$TMP/yard" WITHOUT="$folder" >"$TMP/along" 2>"$TMP/err"
    result $? "it builds without $folder$(sed -n "s/.*goes along.*/; &/p" "$TMP/along")"
    train "$TMP/yard" "$TMP/less" && cmp "$TMP/whole/model.safetensors" "$TMP/less/model.safetensors" 2>"$TMP/err"
    result $? "and trains with the same bits"
    option=$(grep -q '\.n_options = ' "$file" && sed -n 's/^    {"\([a-z-]*\)", 0, OPT_.*/\1/p' "$file" | head -n 1)
    if [ -n "$option" ]; then
        "$TMP/yard" plan "--$option=1" 2>"$TMP/err"
        [ $? -eq 2 ] && grep -q "unknown option --$option=1; this yard was built without .*$folder" "$TMP/err"
        result $? "--$option says why it is gone"
    fi
    case $folder in
    gather) refused='plan --zero 3' why='--zero 3 keeps parameters in shards, .* this yard was built without gather' ;;
    stories) refused='train --data stories' why='--data stories: this yard was built without stories' ;;
    *) refused= ;;
    esac
    if [ -n "$refused" ]; then
        "$TMP/yard" $refused 2>"$TMP/err"
        [ $? -eq 2 ] && grep -q -- "$why" "$TMP/err"
        result $? "$refused is refused"
    fi
    command=$(sed -n 's/^static const struct subcommand command = {[0-9]*, "\([a-z]*\)".*/\1/p' "$file")
    [ -n "$command" ] || continue
    "$TMP/yard" --help >"$TMP/err"
    ! grep -q "^  $command " "$TMP/err"
    result $? "yard --help has no $command"
    [ "$command" = "$folder" ] || continue
    "$TMP/yard" "$command" 2>"$TMP/err"
    [ $? -eq 2 ] && grep -q "there is no command '$command': this yard was built without .*$folder" "$TMP/err"
    result $? "yard $command says why"
done
make -s YARD="$TMP/yard" WITHOUT= >"$TMP/out" 2>"$TMP/err" && "$TMP/yard" --help | grep -q '^  view '
result $? 'without WITHOUT all are there again'
make -n WITHOUT=trace 2>"$TMP/err" >"$TMP/out"
[ $? -eq 2 ] && grep -q 'the trainer calls trace, which cannot be left out yet' "$TMP/err"
result $? 'what the trainer calls is not left out'
make -n WITHOUT=train 2>"$TMP/err" >"$TMP/out"
[ $? -eq 2 ] && grep -q 'no folder of src/techniques or src/tools registers itself by that name' "$TMP/err"
result $? 'nor what is unknown'
echo "1..$number"
[ "$failed" -eq 0 ]
