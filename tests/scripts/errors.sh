#!/bin/sh
# errors.sh - what a user can get wrong with words, sizes, devices and limits.
#
# This script checks that every mistake has its exit code and a sentence, and harms nothing that is saved.
# errors_files.sh has the mistakes with files that are read, errors_outputs.sh those with files that are written.
#
# A mistake is one line.  This one fails unless `yard train --steps ten` ends with exit code 2 and says one sentence
# that has the words in quotes:
#
#     refuse 2 '--steps takes a whole number from 1 to 1000000000, not "ten"' train --steps ten
#
# To add one, write such a line into the section of its kind.  refuse_train adds the words of a short training, and
# unharmed, at a section's end, looks at the model that is saved (mistakes.sh has them all).  Exit codes: 1 a file is
# damaged, 2 words are wrong, 3 there is no such device, 4 the system refuses something.
# Where something is allowed, and only said, the line is a check with warns or prints.
#
# shellcheck disable=SC2086 # $tiny_plan and $search are words
#
# To see it fail: in cut_layers() of mesh.c, leave out the refusal of too few layers.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

check 'a model is trained and saved' save_model
printf 'too short' >"$TMP/short.txt"
server=data/hardware/server.txt
tiny_plan='plan --model tiny'
search="$tiny_plan --search --hardware $server"

# ---- options without effect ------------------------------------------------------------------------------------------

name='options that say more about one that is off'
check "$name are allowed and named" warns '--broadcast-slices has no effect without --broadcast-queues' \
    plan --model tiny --swap-what optimizer --broadcast-slices 2 --snapshot-slots 3
same "$name: there are three warnings" "$(grep -c 'has no effect without' "$TMP/err")" 3
name='options that another one overrules'
check "$name are allowed and named: --lr-min" warns '--lr-min has no effect with --schedule constant' \
    train --model tiny --steps 2 --sample-tokens 0 --schedule constant --lr-min 1e-5 \
    --data LICENSE --val-data LICENSE --val-share 0.2
check "$name are named: --val-share" grep -q -- '--val-share has no effect with --val-data' "$TMP/err"
check 'options that say more about one that is on are not named' \
    in_silence plan --model tiny --swap auto --swap-what optimizer
check '--memory says that it leaves --swap out' warns 'held without --swap' plan --model tiny --memory --swap auto
check 'a file may be named off' in_silence plan --model tiny --snapshot off --snapshot-every 2

# ---- words -----------------------------------------------------------------------------------------------------------

refuse 2 'there is no command "tran"; did you mean `yard train`?' tran
refuse 2 'there is no command "plt"; did you mean `yard plot`?' plt
refuse 2 'there is no command "trac"; did you mean `yard trace`?' trac
refuse 2 'unknown option --bat; did you mean --batch?' train --bat 5
refuse 2 'unknown option --foo; `yard train --help` lists all options' train --foo 5
refuse 2 'there is no command "--steps"' --steps 5
refuse 2 'unknown option --stesp; did you mean --steps?' train --stesp 5

# What other programs call it, and what is said of that: our word, or why there is none.
while read -r word ours; do
    refuse 2 "unknown option --$word; here it is called --$ours" train "--$word" 3
    yard train --help
    sed '1,/^Words of other programs/d' "$TMP/out" >"$TMP/other-words"
    check "--help knows --$word" grep -qE -- " --$word( |:|\$)" "$TMP/other-words"
done <<'END'
batch-size batch
learning-rate lr
block-size seq-len
n-layer layers
n-head heads
n-embd channels
max-iters steps
epochs steps: N steps are N x --batch x --seq-len tokens
resume-from resume
gpu devices: the first GPU is taken
cuda devices: the first GPU is taken
device devices: the first GPU is taken
END
refuse 2 'unknown option --dropout; there is no dropout here; use --weight-decay' train --dropout 0.1
refuse 2 'unknown option --Learning_Rate=1e-3; here it is called --lr' train --Learning_Rate=1e-3
refuse 2 'unknown option --weight_decay; here it is called --weight-decay' train --weight_decay 0.1
refuse 2 '"n_layer=3" is not an option: options start with --; here it is called --layers' train n_layer=3
refuse 2 '"README.md" is a file that no option takes: write --data FILE' train README.md
refuse 2 'is a file that no option takes: write --data FILE' bench README.md
refuse 2 '"data/steps/swap.txt" is a file that no option takes: write --list FILE for a step file' \
    plan data/steps/swap.txt
refuse 2 'unknown option --model; here it is called --from' sample --model x
refuse 2 '--data is given twice, and takes one path: leave one out; for several files' \
    train --data LICENSE --data README.md
refuse 2 'to evaluate a saved model, train it for one step that changes nothing' eval
refuse 4 'nothing of that name is here; to use a model from the web, fetch' train --init gpt2
mkdir -p "$TMP/described"
echo '{"n_head": 4}' >"$TMP/described/config.json"
refuse 2 'has a config.json, but no model.safetensors' train --init "$TMP/described"
refuse 2 'unknown option --max_new_tokens; here it is called --count' sample --max_new_tokens 5
refuse 2 '--steps, as it is called here, is an option of `yard train`' plan --max-iters 5
refuse 2 'there is no command "generate"; here that is `yard sample`' generate
printf 'n_embd = 3\n' >"$TMP/config"
refuse 2 'line 1: unknown option "n_embd"; here it is called channels' train --config "$TMP/config"
refuse 2 '--profile and --pace: both say how long tasks take' train --profile "$TMP/none" --pace "$TMP/none"

# ---- values ----------------------------------------------------------------------------------------------------------

float='(0, or at least 1.2e-38)'
refuse 2 '--steps needs a value: a whole number from 1' train --steps
refuse 2 '--steps takes a whole number from 1 to 1000000000, not ""' train --steps=
refuse 2 '--steps takes a whole number from 1 to 1000000000, not "ten"' train --steps ten
refuse 2 '--steps takes a whole number from 1 to 1000000000, not "0"' train --steps 0
refuse 2 '--steps takes a whole number from 1 to 1000000000, not "99999999999999999999"' \
    train --steps 99999999999999999999
refuse 2 '--seq-len takes a whole number from 1 to 1000000, not "-1"' train --seq-len -1
refuse 2 '--val-share takes a number from 0 to 0.9, not "0.95"' train --val-share 0.95
refuse 2 '--lr takes a number from 0 to 1000, not "nan"' train --lr nan
refuse 2 '--lr takes a number from 0 to 1000, not "-1"' train --lr -1
refuse 2 '--beta1 takes a number from 0 to 0.9999999404, not "1.5"' train --beta1 1.5

# Numbers are judged as the 32-bit floats that they become.
refuse_train 2 '--eps takes a number from 1.175494351e-38 to 1, not "1e-50"' --eps 1e-50
for option in lr lr-min clip weight-decay beta1; do
    refuse_train 2 "--$option takes a number from ... $float, not \"1e-50\"" "--$option" 1e-50
done
refuse_train 2 "from 0 to 0.9999999404, not \"0.99999999\"" --beta1 0.99999999
refuse_train 2 "--beta2 takes a number from 0 to 0.9999999404, not \"1\"" --beta2 1
refuse 2 "--temperature takes a number from 0 to 100 $float, not \"1e-50\"" sample --temperature 1e-50
refuse 2 '--eps takes a number from 1.175494351e-38 to 1, not "1e-50"' \
    check tests/data/gpt2-tiny.safetensors --eps 1e-50
printf 'eps = 1e-50\n' >"$TMP/config"
refuse 2 'line 1: eps takes a number from 1.175494351e-38 to 1, not "1e-50"' train --config "$TMP/config"
refuse 2 'a number of bytes with an optional K, M or G, such as 512M, not "12Q"' train --device-mem 12Q
refuse 2 '--schedule takes one of cosine|constant|linear|wsd, not "sine"' train --schedule sine
refuse 2 '--gemm takes one of auto|own|clblast, not "fast"' train --gemm fast
refuse 2 '--serial is a switch and takes no value, but "yes" was given' train --serial=yes
refuse 2 '--prompt is an option of `yard sample`, not of `yard train`, whose options `yard train --help` lists' \
    train --prompt x
refuse 2 '"extra" is not an option: options start with --' train extra
refuse 2 '"extra" is not an option: options start with --' plan extra
refuse 2 '"extra" is not an option: options start with --' devices extra
refuse 2 '--audit runs every task alone: add --serial' train --audit
refuse 2 '--vocab and --data: the data bring their own vocabulary; leave one out' plan --vocab 99 --data README.md
refuse 2 '--vocab and --init: a model brings its own sizes; leave one out' \
    plan --vocab 99 --init tests/data/llmc-tiny.bin
refuse 2 '--vocab is an option of another command, not of `yard train`' train --vocab 99

# ---- plans -----------------------------------------------------------------------------------------------------------

refuse 4 'cannot open nowhere.txt: No such file or directory' plan --list nowhere.txt
refuse 2 'has its own machine, sizes and times: leave --model out' plan --list data/steps/chain.txt --model tiny
refuse 2 'has its own machine, sizes and times: leave --hardware out' plan --list data/steps/chain.txt --simulate \
    --hardware $server
refuse 2 'README.md, line 3: "Trainyard": expected device, lane' plan --list README.md
refuse 2 '--print-list needs times: add --profile, --hardware or --list' plan --model tiny --print-list
refuse 2 'both say what a device may hold; leave one out' plan --list data/steps/chain.txt --simulate --device-mem 1G \
    --what-if mem=2G
refuse 2 '--search plans for a machine that is described: add --hardware FILE' plan --model tiny --search -d 4
refuse 2 'dp times --micro-batch must divide --batch 4' $search -d 2 --batch 4 --micro-batch 3
refuse 2 'more than the budget of 1 B; use a smaller model, or a larger --host-mem' $search -d 2 --batch 4 --host-mem 1
refuse 2 'has its own machine, sizes and times: leave --search out' plan --list data/steps/chain.txt --search
refuse 2 "--search needs -d N, the number of devices of $server" $search
refuse 2 "--search needs -d N, the number of devices of $server" $search -d 0:0
refuse 2 "-d 9: $server has devices = 8: use a smaller -d" $search -d 9
refuse 2 '7 devices cannot be arranged for this training' $search -d 7
refuse 2 'nothing fits in 10240 bytes per device: parameters, gradients and optimizer alone need' \
    $search -d 4 --device-mem 10K
refuse 2 'give the memory of a device as --device-mem' $search -d 4 --what-if mem=1M
refuse 2 '--search and --mesh: the search chooses it; leave one out' $search -d 4 --mesh dp=4
refuse 2 'prints a table and nothing else; leave one out' $search -d 4 --simulate
refuse 2 '-d 0: a plan can use 1 to 1024 devices' plan --model tiny --hardware $server -d 0
for look in --simulate --verify --print --print-list; do
    refuse 2 '--memory prints a table and nothing else' plan --hardware $server --memory $look
done
refuse 2 'a step file is printed and nothing else; leave one out' plan --list data/steps/chain.txt --print-list --json
for look in --print --view --trace=none; do
    refuse 2 'a step file is printed and nothing else; leave one out' plan --list data/steps/chain.txt --print-list \
        --simulate $look
done
refuse 2 'are needed, or more if a pass then chooses anew' plan --hardware $server --model tiny \
    --mesh dp=2 --zero 3 --overlap plan --host-mem 200K
refuse 2 'are needed, or more if a pass then chooses anew' plan --hardware $server --model tiny \
    --mesh dp=2 --overlap local --swap layer --host-mem 200K
printf 'task t host.cpu 0\n' >"$TMP/idle"
refuse 2 'the tasks of a step take 0 s in all by the step file; expected 1e-9 to 1e6 s' \
    plan --list "$TMP/idle" --simulate
refuse 2 'would overwrite what --list reads' plan --list "$TMP/idle" --simulate --trace "$TMP/idle"
refuse 2 'would overwrite what --overlap-plan writes' plan --list "$TMP/idle" --simulate --overlap plan \
    --overlap-plan "$TMP/o" --trace "$TMP/o"
{
    echo 'device d memory=2M'
    echo 'tensor w d 1024 parameters'
    echo 'task b d.compute 1ms'
    echo 'task u d.compute 1us role=update every=3 writes=w'
} >"$TMP/seldom.txt"
check 'iterations without an update are stored too' \
    yard plan --list "$TMP/seldom.txt" --snapshot x --simulate --verify

# ---- meshes ----------------------------------------------------------------------------------------------------------

refuse 2 'with numbers from 1 to 4096, not "dp=x"' $tiny_plan --mesh dp=x
refuse 2 '--mesh takes dp=A,pp=B,tp=C, each once' $tiny_plan -d 0:0x2 --mesh dp=2,dp=2
refuse 2 'there is one stage; --mesh pp=N makes N of them' $tiny_plan --pipeline interleaved
refuse 2 'with numbers from 1 to 4096, not "dp=4294967297"' $tiny_plan --mesh dp=4294967297
refuse 2 '--mesh dp=2 needs 2 devices, and without -d there is 1: name 2 with -d, or take one 2 times' \
    $tiny_plan --mesh dp=2
refuse 2 '--mesh dp=3 needs 3 devices, but -d gives 2: name 3 with -d, or take one 3 times' \
    $tiny_plan --mesh dp=3 -d 0:0x2
refuse 2 'asks for 8192 devices, the product of its numbers; 4096 are possible' $tiny_plan --mesh dp=4096,pp=2
refuse 2 'asks for 4294967296 devices' $tiny_plan --hardware $server --mesh dp=4096,pp=4096,tp=256
refuse 2 'needs at least 3 layers, the model has 2: use pp=2, or --layers 3' $tiny_plan -d 0:0x3 --mesh pp=3 --batch 6
refuse 2 'with 2 stages per device needs at least 4 layers, the model has 2: use pp=1, or --layers 4' \
    $tiny_plan -d 0:0x2 --mesh pp=2 --pipeline interleaved --micro-batch 2
refuse 2 'needs a multiple of 2 micro-batches, not 1: try --batch 4 --micro-batch 2' \
    $tiny_plan -d 0:0x2 --mesh pp=2 --layers 4 --pipeline interleaved
refuse 2 'dp=8 x --micro-batch 1000000: use a smaller --micro-batch, such as 1' \
    $tiny_plan -d 0:0x8 --micro-batch 1000000
refuse 2 'tp=3 cuts the model by heads and words, of which it has 2 and 256: use tp=2' $tiny_plan -d 0:0x3 --mesh tp=3
refuse 2 '-d names more than 16 devices; `yard plan --hardware FILE` takes more' $tiny_plan -d 0:0x17
refuse 2 'not "0:0x0"; `yard devices` lists them, and n and N are 1 or more' $tiny_plan -d 0:0x0
refuse 2 '--stages 1: expected 2 numbers of layers' $tiny_plan -d 0:0x2 --mesh pp=2 --stages 1
refuse 2 '2,1 has 3 layers in all, and must have 2' $tiny_plan -d 0:0x2 --mesh pp=2 --stages 2,1
refuse 2 'needs a multiple of 3 micro-batches, not 1: try --batch 9 --micro-batch 3' \
    $tiny_plan --batch 8 --grad-groups 3
refuse 2 '--grad-groups 2 stands for dp=2 on one device: with dp=2 give --grad-groups 1 instead' \
    $tiny_plan -d 0:0x2 --grad-groups 2
refuse 2 'with a tied head, more than two groups need pp=1' \
    $tiny_plan -d 0:0x2 --mesh pp=2 --batch 6 --micro-batch 1 --grad-groups 3
refuse 2 '--pipeline dualpipev with pp=2 needs at least 4 micro-batches, not 3: try --batch 4 --micro-batch 1' \
    $tiny_plan --layers 4 -d 0:0x2 --mesh pp=2 --batch 3 --micro-batch 1 --pipeline dualpipev
mib=1048576
refuse 2 'all tensors need at least 416 MiB, 1 B more than the budget of 416 MiB' \
    plan --list data/steps/swap.txt --device-mem $((416 * mib - 1))
refuse 2 '--batch 8 cannot be shared by dp=3: the nearest that works is --batch 9' $tiny_plan -d 0:0x3 --batch 8
refuse 2 'not a multiple of dp=3 x --micro-batch 2: the nearest that works is --batch 6' \
    $tiny_plan -d 0:0x3 --batch 8 --micro-batch 2

# ---- how long tasks take ---------------------------------------------------------------------------------------------

laptop=data/hardware/laptop.txt
refuse 2 '--simulate needs times: add --profile, --hardware or --list' plan --simulate
refuse 2 '--what-if changes what is predicted: add --simulate' plan --what-if link=2x
refuse 2 'plan --trace writes what is simulated: add --simulate' plan --trace x
refuse 2 '--profile and --hardware: both say how long tasks take; leave one out' \
    plan --simulate --hardware $laptop --profile x
refuse 4 'cannot open no/such/file: No such file or directory' plan --simulate --hardware no/such/file
refuse 4 'cannot open no/such/file: No such file or directory' plan --simulate -d 0:0 --profile no/such/file
refuse 2 '--what-if takes words such as link=2x ... with factors of 1e-6 to 1e6, not "link=fast"' \
    plan --simulate --hardware $laptop --what-if link=fast
refuse 2 'laptop.txt has devices = 1, not 2: use a smaller --mesh, or -d' plan --simulate --hardware $laptop --mesh dp=2
refuse 2 'more than the budget of 1.00 MiB; use a smaller model, or a larger --device-mem' \
    plan --simulate --hardware $laptop --what-if mem=1M --model char
refuse 2 'README.md, line 3: expected `name = value`, found "Trainyard is' plan --simulate --hardware README.md
refuse 4 'cannot open no/such/file: No such file or directory' train --pace no/such/file
refuse 2 '--serial and --pace: tasks run one after another, as fast as they can; leave one out' \
    train --serial --pace $laptop
refuse 2 '--serial and --delay-seed: tasks run one after another, as fast as they can; leave one out' \
    train --serial --delay-seed 1
refuse 2 '--pace and --delay-seed: both decide when tasks end; leave one out' train --delay-seed 1 --pace $laptop
refuse 2 'profile needs -o FILE, the profile to write' profile
refuse 4 'cannot create no/such/folder/file: No such file or directory' \
    profile --model tiny --layers 1 --seq-len 8 --batch 2 --micro-batch 1 -d 0:0 -o no/such/folder/file

# ---- snapshots -------------------------------------------------------------------------------------------------------

refuse 2 '--snapshot takes a path, not ""' train --snapshot ''
refuse 2 '--save x would overwrite what --snapshot writes' train --snapshot x --save x
refuse 2 'a step file cannot describe slots' plan --list data/steps/snapshot.txt --snapshot x --print-list
refuse 2 '--snapshot-slots takes a whole number from 1 to 16, not "0"' plan --list data/steps/chain.txt --snapshot x \
    --snapshot-slots 0
refuse 2 'more than the budget of 512 KiB; use a smaller model, or a larger --host-mem' \
    $tiny_plan --hardware $server --snapshot x --simulate --host-mem 512K

# ---- room ------------------------------------------------------------------------------------------------------------

refuse 2 'does not fit in the budget of 700 KiB; ... or use --swap auto, a smaller --micro-batch' \
    train --model tiny --steps 1 --recompute auto --device-mem 700K
check '--recompute auto does not advise --recompute full, which makes no more room' lacks '--recompute full' "$TMP/err"

# ---- going on --------------------------------------------------------------------------------------------------------

refuse 2 '--stop-after saves and stops: add --save DIR' train --stop-after 5
refuse_train 2 '--stop-after 9 is beyond the last step, 2' --stop-after 9
refuse_train 2 '--warmup 2 leaves no step at the full learning rate, since --steps is 2' --warmup 2
refuse_train 2 'since --steps is 2: give a smaller --warmup, or more --steps' --warmup 3
refuse_train 2 'the final learning rate 0.001 is above the learning rate 0.0001' --lr 1e-4 --lr-min 1e-3
refuse 2 'give --lr-min at most that; --lr-min -1 is a tenth of --lr' train --resume "$TMP/saved" --steps 4 --lr 1e-5 \
    --lr-min 1e-3
check 'a resumed run with nothing left to train names --steps' \
    warns 'nothing is left to train; --steps N with a larger N trains on' \
    train --resume "$TMP/saved" --val-batches 1 --sample-tokens 0
check 'a resumed run with nothing left to train has no validation loss' lacks 'validation loss' "$TMP/out"

# The data's path is the one that was given, in the folder where the run was begun.
mkdir "$TMP/begun" "$TMP/elsewhere"
cp LICENSE "$TMP/begun/my.txt"
cp data/stories.txt "$TMP/begun/grammar.txt"
for data in my.txt 'm*.txt' stories:grammar.txt; do
    (cd "$TMP/begun" && rm -rf run && train_short --data "$data" --val-data "$data" --save run)
    cd "$TMP/elsewhere" || exit
    refuse 4 \
        "../begun/run/step-2 was trained with --data $data, and no such file is here: give --data PATH" \
        train --resume ../begun/run --steps 3
    refuse 4 \
        "was trained with --val-data $data, and no such file is here: give --val-data PATH" \
        train --resume ../begun/run --steps 3 --data "$TMP/begun/my.txt"
    cd "$OLDPWD" || exit
done
goes_on_with() { # DATA
    (cd "$TMP/elsewhere" && yard train --resume ../begun/run --steps 3 --sample-tokens 0 --val-batches 1 \
        --data "$1" --val-data "$1")
}
check 'a run whose data have moved goes on with --data and --val-data' goes_on_with ../begun/my.txt

# ---- config files ----------------------------------------------------------------------------------------------------

printf 'steps = 5\nchanels = 3\n' >"$TMP/config"
refuse 2 "$TMP/config, line 2: unknown option \"chanels\"; did you mean channels?" train --config "$TMP/config"
refuse 4 "cannot open $TMP/none: No such file or directory" train --config "$TMP/none"
printf 'steps = 1\nlog = %s\n' "$TMP/log" >"$TMP/first"
printf 'layers = 1\n' >"$TMP/second"
name='of two config files'
check "$name the first is not read" in_silence train --model tiny --val-share 0 --sample-tokens 0 --steps 1 \
    --config "$TMP/first" --config "$TMP/second" --log "$TMP/log"
check "$name the last counts" grep -q '"layers": *1,' "$TMP/log"
check "$name the last is logged" grep -q '"config": *"[^"]*/second"' "$TMP/log"
printf 'config = x\n' >"$TMP/config"
refuse 2 '--config belongs on the command line, not into a config file' train --config "$TMP/config"

# ---- sizes -----------------------------------------------------------------------------------------------------------

refuse_train 2 '--channels 30 is not a multiple of --heads 4: change one' --channels 30 --heads 4
refuse_train 2 'dp=1 x --micro-batch 3: the nearest that works is --batch 6, or --micro-batch 1' \
    --batch 7 --micro-batch 3
mkdir -p "$TMP/folder"
refuse_train 2 'folder" is none of these, since it is a folder: name the file in it' --tokens "$TMP/folder"
refuse_train 2 '", which is a folder' --pipeline "$TMP/folder"
printf '\211PNG\r\n\032\n' >"$TMP/picture"
refuse_train 2 'picture is a PNG picture, not a model that is read here' --init "$TMP/picture"
refuse_train 2 '--batch 5 cannot be shared by dp=2: the nearest that works is --batch 6' --batch 5 -d 0:0x2
refuse_train 2 '--batch 1 cannot be shared by dp=2: the nearest that works is --batch 2' --batch 1 -d 0:0x2
refuse_train 2 'a layer of 130.0 or an embedding of ... billion parameters is beyond this program' \
    --layers 1000 --channels 100000 --heads 1
refuse_train 2 'which needs 1000001: use more data, or a smaller --seq-len' --seq-len 1000000
refuse 2 'a tensor of more than 2e9 elements: use a smaller --micro-batch' plan --hardware $server --batch 1000000
sed 's/^vector = .*/vector = 1000000/' data/hardware/laptop.txt >"$TMP/wide"
refuse 2 'vector takes a whole number from 1 to 16' plan --hardware "$TMP/wide" --simulate
sed 's/^devices = .*/devices = 1024/' $server >"$TMP/many"
refuse 2 'more than the 1000000 tasks that can be planned' \
    plan --hardware "$TMP/many" --model gpt2 --mesh dp=256 --batch 256 --simulate
refuse 2 'a tensor of more than 2e9 elements: use a smaller --seq-len' \
    plan --hardware $server --batch 1 --seq-len 70000
refuse 2 'does not fit in the budget of 1.00 MiB; enough would be ... for each device: raise --device-mem' \
    train --model tiny --batch 8 --overlap local --swap auto --swap-what optimizer --device-mem 1M
refuse 2 'or use --recompute full, --swap-what parameters,gradients,optimizer,activations, a smaller --micro-batch' \
    plan --model tiny --swap layer --device-mem 700K
refuse 2 'raise --device-mem, or use --swap auto, a smaller --micro-batch' \
    plan --hardware $server --model nano --mesh dp=2 --zero 3 --recompute full --device-mem 10M
unharmed 'wrong sizes'

# ---- devices ---------------------------------------------------------------------------------------------------------

refuse 2 '--devices (-d) takes P:D, P:D/n or P:DxN, ... not "0"; `yard devices` lists them' train -d 0
refuse 2 '--devices (-d) takes P:D, P:D/n or P:DxN, ... not "0:0,"' train -d 0:0,
refuse 2 '--devices (-d) takes P:D, P:D/n or P:DxN, ... not "0:0/0"' train -d 0:0/0
refuse 2 '--devices (-d) takes P:D, P:D/n or P:DxN, ... not "gpu"' train -d gpu
refuse 2 'as in -d 0:0/2, not "-1"' plan --devices -1
refuse 3 '-d 77:0: there is no such device; `yard devices` describes those that there are: 0:0' train -d 77:0
refuse 3 '-d 0:99: there is no such device; `yard devices` describes those that there are: 0:0' train -d 0:99
refuse 2 'can be cut into at most ...; 0:0xN makes N logical devices of it, up to 16' train -d 0:0/999
refuse 2 '--vector 3: take 1, 4, 8 or 16, and at most ...has vectors of that many floats' train --vector 3
refuse 2 '-d names more than 16 devices' train -d 0:0x17
refuse 2 '-d names device 0:0 twice, but it has its compute units only once: cut the device with /n' train -d 0:0,0:0
refuse 2 '--mesh dp=3 needs 3 devices, but -d gives 2' train -d 0:0x2 --mesh dp=3
refuse 2 '--mesh pp=2 needs 2 devices, and without -d there is 1' train --mesh pp=2
refuse 2 '--mesh takes dp=A,pp=B,tp=C, ... not "rows"; an omitted axis is 1' train --mesh rows
refuse_train 2 'more than the budget of 200 KiB; use a smaller model, or a larger --device-mem' --device-mem 200K
refuse_train 2 'tensor head (activations, 128 KiB) of task head (micro-batch 0) of the train list does not fit: all' \
    --device-mem 700K
check 'what does not fit is refused before the first step' lacks '^step ' "$TMP/out"
refuse_train 2 'more than the budget of 1.00 KiB; use a smaller model, or a larger --host-mem' --host-mem 1K
refuse 2 'more than the budget of 1.00 GiB; use a smaller model, or a larger --device-mem' \
    plan --model gpt2 --device-mem 1G
check 'a training runs on 16 devices, which is the most there may be' \
    yard train --model tiny --batch 16 -d 0:0x16 --steps 1 --sample-tokens 0 --val-batches 1

# ---- drivers ---------------------------------------------------------------------------------------------------------

refuse_with OCL_ICD_VENDORS=/nonexistent 3 'no OpenCL driver is installed' devices
refuse_train_with OCL_ICD_VENDORS=/nonexistent 3 'no OpenCL driver is installed'
mkdir "$TMP/vendors" # of one driver, which does not load
echo libnothere.so >"$TMP/vendors/nothere.icd"
refuse_with "OCL_ICD_VENDORS=$TMP/vendors" 3 "none of $TMP/vendors can be loaded" devices
refuse_train_with YARD_WG=1024 2 'YARD_WG=1024: with vectors of'
refuse_train_with YARD_VEC=x 2 'YARD_VEC=x: give a whole number'
if prints 'Portable Computing Language' devices; then
    # Where POCL_DEVICES is empty, PoCL offers no device.
    refuse_with POCL_DEVICES= 3 'offer no device' devices
    refuse_with POCL_DEVICES= 3 'offer no device' devices --json
    check 'devices --json prints its empty list too' grep -q '"devices":\[\]' "$TMP/out"
    refuse_with POCL_DEVICES=nothing 3 'POCL_DEVICES=nothing names none' plan --model tiny
    refuse_train_with 'POCL_MAX_WORK_GROUP_SIZE=32 YARD_VEC=1' 2 \
        "takes work-groups of 32 work-items, and CLBlast's have 64: use --gemm own" -d 0:0

    # Below a regular file there is no folder for compiled kernels, not even for root.
    file=$TMP/short.txt
    refuse_train_with "POCL_CACHE_DIR=$file" 4 "cannot keep compiled kernels in $file "
    refuse_train_with "POCL_CACHE_DIR=$file/x" 4 "cannot keep compiled kernels in $file/x "
    refuse_with "POCL_CACHE_DIR=$file/x" 3 'set POCL_CACHE_DIR to a folder' devices --json
    refuse_with "-u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME=$file" 4 "$file/.cache/pocl/kcache" plan --model tiny
    check 'an empty POCL_CACHE_DIR is as good as none' yard_with POCL_CACHE_DIR= devices

    # A device of the kind "basic" runs a kernel only while its caller waits.  PoCL 6 has none of that kind.
    yard_with POCL_DEVICES=basic devices
    if grep -q ' basic-' "$TMP/out"; then
        refuse_with POCL_DEVICES=basic 2 'add --serial' train --model tiny --steps 1
    else
        check 'in place of the kind "basic" PoCL has a device that works by itself' \
            yard_with POCL_DEVICES=basic train --model tiny --steps 1
    fi
fi
unharmed 'wrong devices'

# ---- limits ----------------------------------------------------------------------------------------------------------

(ulimit -v 150000 && yard plan --model tiny)
exit_code 'a tight address space: the exit code is 3' $? 3
check 'a tight address space: the limit is named' grep -q 'ulimit -v' "$TMP/err"
check 'a tight address space is not taken for a missing driver' lacks 'is installed' "$TMP/err"
(ulimit -v 1500000 && yard plan --model gpt2 --batch 16 --micro-batch 16)
exit_code 'a limit that bounds the budget: the exit code is 2' $? 2
check 'a limit that bounds the budget is named' grep -q 'the memory limit of this process' "$TMP/err"
(ulimit -n 40 && yard devices)
check 'few open files are named before a driver fails for want of them' \
    grep -q 'may fail: this process may have 40 open files at most: raise that limit (ulimit -n 1024)' "$TMP/err"

# ---- looking on ------------------------------------------------------------------------------------------------------

refuse 2 'plan --view shows what is simulated: add --simulate' plan --model tiny --view
refuse 4 "cannot create $TMP/nowhere/list.txt: No such file or directory" \
    view data/steps/overlap-pays.txt --clip 0 --script s --json --output "$TMP/nowhere/list.txt"
refuse 1 'README.md, line 1 is not a JSON object; `yard plot` reads what' plot README.md
rings=$TMP/rings # where a trace that is looked at would lie
mkdir "$rings"
no_display="-u DISPLAY -u WAYLAND_DISPLAY -u SDL_VIDEODRIVER -u XDG_RUNTIME_DIR TMPDIR=$rings"
for words in 'train --steps 2 --sample-tokens 0 --val-share 0' "plan --simulate --hardware $server"; do
    name="$words --view, without a display"
    # shellcheck disable=SC2086 # a command and its options
    check "$name goes on" yard_with "$no_display" $words --model tiny --view
    check "$name warns" grep -q 'warning: --view shows nothing' "$TMP/err"
    check "$name leaves no file" is_empty "$rings"
done

# ---- help ------------------------------------------------------------------------------------------------------------

check 'yard --help is printed' in_silence --help
awk '/^  [a-z]/ { print $1 }' "$TMP/out" >"$TMP/commands"
check 'yard --help lists at least 11 commands' [ "$(wc -l <"$TMP/commands")" -ge 11 ]
# shellcheck disable=SC2013 # a word in each line
for command in $(cat "$TMP/commands"); do
    name="yard $command --help"
    check "$name is printed" in_silence "$command" --help
    check "$name begins with its usage" grep -q "^usage: yard $command" "$TMP/out"
    same "$name has two examples" "$(grep -c "^  yard $command" "$TMP/out")" 2
    grep '^[A-Z].*:$' "$TMP/out" | sort >>"$TMP/groups"
    same "$name has each group of options once" "$(grep '^[A-Z].*:$' "$TMP/out" | sort | uniq -d)" ''
    cp "$TMP/out" "$TMP/help"
    check "yard $command help is printed" in_silence "$command" help
    check "yard $command help is the same text" cmp -s "$TMP/help" "$TMP/out"
done
check 'these helps have at least 50 groups of options together' [ "$(wc -l <"$TMP/groups")" -ge 50 ]
# No help is wider than a terminal of 80 columns, and options that its examples have are options of the command.
mistakes_of_help() {
    for helped in '' train sample check plan profile trace 'trace summary' 'trace export' 'trace diff' view plot bench \
        ckpt 'ckpt ls' 'ckpt verify' 'ckpt diff' 'ckpt reshard' 'ckpt export'; do
        # shellcheck disable=SC2086 # a command has one word or two
        yard $helped --help || echo "$helped --help fails"
        awk -v command="$helped" 'length > 80 { print command ": too long: " $0 }' "$TMP/out"
        case $helped in '' | trace | ckpt) continue ;; esac
        grep "^  yard $helped " "$TMP/out" | grep -oE -- ' --?[a-z][a-z-]*' | while read -r option; do
            grep -v '^  yard' "$TMP/out" | grep -qE -- "^  .*$option( |,|\$)" || echo "$helped has no $option"
        done
    done
}
finds_nothing 'each help has 80 columns and examples that can be typed' mistakes_of_help
check 'yard --help names a first command' prints 'first:  yard train' --help
tutorial=$(awk '/^then:/ { sub(/,/, "", $2); print $2 }' "$TMP/out")
check "yard --help names a tutorial that is there: $tutorial" [ -f "$tutorial" ]
check 'yard help trace export prints the help of that command' prints 'usage: yard trace export' help trace export
for words in --help 'train --help'; do
    # shellcheck disable=SC2086 # a command and its options
    "$YARD" $words >/dev/full 2>"$TMP/err"
    exit_code "yard $words to a full disk ends with exit code 4" $? 4
done
check 'yard --version is printed' in_silence --version
check 'yard --version prints a number' grep -q '^yard [0-9]' "$TMP/out"

# Every option of the program's table is in the help, and no line is too long for a terminal.  A row of the table,
# {.name = "steps", ...  , gives  steps.
missing_in_help() {
    yard train --help || echo 'yard train --help fails'
    sed -n '/^const struct option own_options\[/,/^};/s/^    {.name = "\([a-z0-9-]*\)",.*/\1/p' \
        src/trainer/settings/own_options.c >"$TMP/options"
    enough 40 "$TMP/options" 'rows of the table of options'
    while read -r own; do
        case $own in vocab | json | from | prompt | count | temperature | top-k) continue ;; esac # of other commands
        grep -qE -- "--$own( |\$)" "$TMP/out" || echo "there is no --$own in the help"
    done <"$TMP/options"
    awk 'length > 80 { print "too long: " $0 }' "$TMP/out"
}
finds_nothing 'yard train --help is complete' missing_in_help

finish
