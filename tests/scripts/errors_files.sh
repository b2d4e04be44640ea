#!/bin/sh
# errors_files.sh - what a user can get wrong with files that are read: data, models, kernels, and files of other kinds.
#
# This script checks that every mistake has its exit code and a sentence, and harms nothing that is saved.  The
# mistakes with files that are written are in errors_outputs.sh, and all others in errors.sh.
#
# A section makes files that are wrong, in $TMP, and then has a line for each mistake with them.  Each fails unless yard
# ends with this exit code and says one sentence with this part in it:
#
#     head -c 100 $st >"$TMP/header.safetensors"
#     refuse 1 "$TMP/header.safetensors" check "$TMP/header.safetensors"
#
# errors.sh says how to add a line.  Most sections end with a look at the files that must have come through them:
# unharmed, or a sum of their bytes.
#
# To see it fail: in make_printable() of utf8.c, show controls too: || in place of && in is_shown.
. tests/lib/helpers.sh
. tests/lib/mistakes.sh

save_model || exit 1 # errors.sh has checked that
st=tests/data/gpt2-tiny.safetensors
llmc=tests/data/llmc-tiny.bin
server=data/hardware/server.txt

# ---- data ------------------------------------------------------------------------------------------------------------

: >"$TMP/empty.txt"
printf 'too short' >"$TMP/short.txt"
printf 'a line that is fine\nand one that is not: \303(\n' >"$TMP/latin.txt"
mkdir "$TMP/nothing" "$TMP/mixed"
cp "$TMP/short.txt" "$TMP/mixed/a.txt"
cp tests/data/llmc-tokens.bin "$TMP/mixed/b.bin"
head -c 3001 tests/data/llmc-tokens.bin >"$TMP/cut.bin"
head -c 500 tests/data/llmc-tokens.bin >"$TMP/header.bin"
printf 'abc' >"$TMP/odd.bin"
refuse_train 4 "no file matches $TMP/none.txt; expected a file, a folder with files" --data "$TMP/none.txt"
refuse_train 4 "no file matches $TMP/none*.txt; expected" --data "$TMP/none*.txt"
refuse_train 4 "no file matches $TMP/nothing/*; expected" --data "$TMP/nothing"
refuse_train 2 "mixes kinds of data: $TMP/mixed/a.txt is text, $TMP/mixed/b.bin is an llm.c token shard" \
    --data "$TMP/mixed"
refuse_train 2 'has 0 tokens for training' --data "$TMP/empty.txt"
refuse_train 2 'has 8 tokens for training, which needs 33' --data "$TMP/short.txt"
refuse_train 2 'is not valid UTF-8 at byte 41 (0xC3); use --tokens bytes' --tokens chars --data "$TMP/latin.txt"
refuse_train 1 'its header promises 40000 tokens of 2 bytes after 1024 bytes, but it has 3001 bytes' \
    --data "$TMP/cut.bin"
refuse_train 1 'it has 500 bytes, but an llm.c token shard begins with a header of 1024 bytes' --data "$TMP/header.bin"
refuse_train 1 'has an odd number of bytes (3)' --data "$TMP/odd.bin"
refuse_train 2 'needs 320001: use more data, or a smaller --batch or --seq-len, or another --order' \
    --data tests/data/llmc-tokens.bin --order file --batch 10000
refuse_train 2 'both must be text or both tokens' --data README.md --val-data tests/data/llmc-tokens.bin
refuse_train 2 'has 0 tokens for validation' --val-data "$TMP/empty.txt"
refuse_train 2 "but the model's vocabulary is 67" --init $st --data tests/data/llmc-tokens.bin
unharmed 'wrong data'

# ---- a file of another kind ------------------------------------------------------------------------------------------

others=$TMP/others # a file of each kind
mkdir "$others"
check 'a file of each kind is written' in_silence plan --list data/steps/chain.txt --simulate --trace "$others/a.trace"
printf '{"run":{"model":"tiny"}}\n{"step":1,"loss":5}\n' >"$others/a.jsonl"
printf '# A profile of Trainyard\ndevice = x\n' >"$others/a.profile"
printf 'device = x\n' >"$others/profile.txt"
refuse 2 'server.txt is not a step file such as data/steps/1f1b.txt: its line 2, "hardware = ...", is one of a' \
    plan --list $server
refuse 2 'profile.txt is not a step file ... which --profile takes' plan --list "$others/profile.txt"
refuse 2 'a.profile is a profile that yard wrote, not a step file ... --profile takes it' \
    plan --list "$others/a.profile"
refuse 2 'a.trace is a trace that yard wrote, not a step file ... `yard view` and' plan --list "$others/a.trace"
refuse 2 'a.jsonl is a log that yard wrote, not a trace, which --trace writes: `yard plot` draws it' \
    view "$others/a.jsonl"
refuse 2 'server.txt is not a step file' view $server
refuse 2 'a.trace is a trace that yard wrote, not a log, which --log writes' plot "$others/a.trace"
for command in 'sample --from' check 'train --init'; do
    # shellcheck disable=SC2086 # a command and its option
    refuse 2 'a.trace is a trace that yard wrote, not a model that is read here' $command "$others/a.trace"
    # shellcheck disable=SC2086 # a command and its option
    refuse 2 'a.jsonl is a log that yard wrote, not a model that is read here' $command "$others/a.jsonl"
done
refuse 2 'chain.txt is not a profile or a hardware description: ... of a step file, which --list takes' \
    plan --model tiny --simulate --hardware data/steps/chain.txt
refuse 2 'a.trace is a trace that yard wrote, not a profile or a hardware description' \
    plan --model tiny --simulate --profile "$others/a.trace"
refuse 2 'short.txt is not a tokenizer: it is no JSON object' train --tokens "$TMP/short.txt"
refuse 2 'a.jsonl is a log that yard wrote, not a tokenizer' train --tokens "$others/a.jsonl"

# ---- models ----------------------------------------------------------------------------------------------------------

head -c 300000 $st >"$TMP/cut.safetensors"
head -c 100 $st >"$TMP/header.safetensors"
head -c 5 $st >"$TMP/five.safetensors"
{ printf '\377\377\377\377\377\377\377\177' && tail -c +9 $st; } >"$TMP/huge.safetensors"
{ head -c 8 $st && printf '?' && tail -c +10 $st; } >"$TMP/json.safetensors"
# the same number of bytes, another shape, another name
sed 's/\[48, 144\]/[144, 48]/' $st >"$TMP/shape.safetensors"
sed 's/"h\.1\.ln_1\.weight"/"h.1.ln_7.weight"/' $st >"$TMP/name.safetensors"
sed 's/"h\.0\.ln_2\.bias"/"h.0.ln_7.bias"/' $st >"$TMP/bias.safetensors"
sed 's/n_head/n_hand/' $st >"$TMP/heads.safetensors"
head -c 2000 /dev/zero >"$TMP/zeros.bin" # tokens of any vocabulary
head -c 200000 $llmc >"$TMP/cut-llmc.bin"
{ head -c 4 $llmc && printf '\011' && tail -c +6 $llmc; } >"$TMP/version-llmc.bin"
{ printf 'xxxx' && tail -c +5 $llmc; } >"$TMP/magic-llmc.bin"
while read -r file wrong; do
    refuse_train 1 "$TMP/$file.safetensors is not a valid safetensors file: $wrong" --init "$TMP/$file.safetensors"
    refuse 1 "$TMP/$file.safetensors is not a valid safetensors file: $wrong" check "$TMP/$file.safetensors"
done <<'END'
cut its tensors take 736364 bytes of data, but 291632 follow the header
header its first 8 bytes announce a header of 8360 bytes, but only 92 follow: it is cut short
five it has 5 bytes, expected at least 8
huge its first 8 bytes announce a header of 9223372036854775807 bytes, expected at most 100000000
json its JSON header must start with { at byte 8
END
refuse_train 1 'has shape [144, 48], expected [48, 144]' --init "$TMP/shape.safetensors" --data "$TMP/zeros.bin"
refuse 1 'has no tensor h.1.ln_1.weight' check "$TMP/name.safetensors"
refuse 1 'has no tensor h.0.ln_2.bias' check "$TMP/bias.safetensors"
refuse 1 'cannot tell how many heads' check "$TMP/heads.safetensors"
refuse_train 1 'its header asks for 120576 parameters, that is 483328 bytes, but it has 200000' \
    --init "$TMP/cut-llmc.bin"
refuse_train 1 'has version 9 in header word 1, expected 3' --init "$TMP/version-llmc.bin"
refuse_train 1 'its first 8 bytes announce a header of 14906062968 bytes, expected at most 100000000' \
    --init "$TMP/magic-llmc.bin"
refuse_train 4 "cannot open $TMP/none: nothing of that name is here" --init "$TMP/none"
refuse_train 2 'has 64 channels, not 32: leave --channels out' --init $llmc --channels 32
refuse_train 2 '--seq-len 65 is longer than the 64 positions' --init $llmc --seq-len 65
refuse 2 'sample needs --from DIR or --from FILE' sample
refuse 4 "cannot open $TMP/none: nothing of that name is here" sample --from "$TMP/none"
refuse 4 "$TMP/nothing holds no complete checkpoint" sample --from "$TMP/nothing"
refuse 1 'its tensors take 736364 bytes of data, but 291632 follow the header: it is cut short' \
    sample --from "$TMP/cut.safetensors"
refuse 2 '--prompt is empty' sample --from "$saved" --prompt ''
refuse 2 'check takes one reference file, ... or --gradients and no file' check
refuse 1 'a reference file needs tokens and targets, I32 of shape [batch, seq-len]' check "$saved"
{ printf YARDSNAP && head -c 3000 /dev/zero; } >"$TMP/cut.snap"
refuse 1 'was cut off: it has 3008 bytes, and any snapshot has at least 8192' train --resume "$TMP/cut.snap"
unharmed 'wrong models'

# ---- paths, and words that go with them ------------------------------------------------------------------------------

refuse 2 '--resume and --init: one goes on from a checkpoint' train --resume "$TMP/saved" --init "$saved"
refuse 2 "$TMP/saved has 2 layers, and --model nano has 4: leave --model out" train --resume "$TMP/saved" --model nano
refuse 4 'holds no complete checkpoint' train --resume "$TMP/nothing"
# stages are recorded, but not asked for
train_short -d 0:0x2 --mesh pp=2 --stages 1,1 --save "$TMP/staged"
refuse 2 '--pipeline: there is one stage' train --resume "$TMP/staged" -d 0:0 --mesh pp=1 --pipeline interleaved
printf 'resume = x\n' >"$TMP/resume.conf"
refuse 2 '--resume belongs on the command line, not into a config file' train --config "$TMP/resume.conf"
refuse 2 'ckpt needs a word that says what to do: ls, verify, diff, reshard or export' ckpt
refuse 4 "is a part of a checkpoint: give the checkpoint's folder" train --resume "$TMP/saved/step-2/rank-0.safetensors"
refuse 4 'is a model and no checkpoint: `yard plan --init FILE` shows the memory that it takes' ckpt ls "$saved"
refuse 2 'more than the budget of 4.00 KiB; use a smaller model, or a larger --device-mem' \
    sample --from "$TMP/saved" --device-mem 4K
refuse 4 'nowhere: No such file or directory' train --resume "$TMP/nowhere"
mkdir "$TMP/damaged"
cp -r "$TMP/saved/step-2" "$TMP/damaged/step-2"
printf 'x' | dd of="$TMP/damaged/step-2/rank-0.safetensors" bs=1 seek=20000 conv=notrunc 2>/dev/null
damaged='rank-0.safetensors is damaged: tensor wte.weight, ... take another checkpoint'
refuse 1 "$damaged" train --resume "$TMP/damaged/step-2"
mkdir "$TMP/empty-folder"
refuse 1 "$damaged" ckpt reshard "$TMP/damaged/step-2" "$TMP/empty-folder"
check 'the empty folder for a checkpoint that is damaged is still there' [ -d "$TMP/empty-folder" ]
refuse 4 "$TMP/no/x: No such file or directory; does the folder exist in which it would lie" \
    ckpt export "$TMP/saved" "$TMP/no/x"
rm "$TMP/damaged/step-2/rank-0.safetensors"
refuse 4 'it lacks rank-0.safetensors, which its manifest names; take another checkpoint' \
    train --resume "$TMP/damaged/step-2"
refuse 2 'was trained on bytes, and knows only its own tokens' train --steps 1 --init "$TMP/saved" --tokens chars
refuse 2 '--grad-groups needs a multiple of 2 micro-batches, not 1' bench --model tiny --grad-groups 2
check 'bench refuses before it measures' [ ! -s "$TMP/out" ]
refuse 2 'takes CKPT OUT, 2 paths, but 1 was given' ckpt reshard "$TMP/saved"
refuse 2 '--mesh takes dp=A,pp=B,tp=C, ... not "dp=x"' ckpt reshard "$TMP/saved" "$TMP/x" --mesh dp=x
for option in --save --init --resume --config --data --val-data --pace; do
    refuse 2 "$option takes a path, not \"\"" train $option ''
done
printf 'log =\n' >"$TMP/empty.conf"
refuse 2 'log takes a path, not ""' train --config "$TMP/empty.conf"
refuse 2 'check takes a path, not ""' check ''
refuse 2 'check runs on one device: give a single one to -d' check -d 0:0x3 tests/data/gpt2-tiny.safetensors
refuse 2 'check takes one reference file, ... or --gradients and no file' \
    check --gradients tests/data/gpt2-tiny.safetensors
LC_ALL=C sed 's/"trajectory"/"another---"/' tests/data/gpt2-tiny.safetensors >"$TMP/no-trajectory.safetensors"
refuse 1 'but no trajectory, which says after how many: add a trajectory' check "$TMP/no-trajectory.safetensors"
refuse 2 'check runs on one device: give a single one to -d' check -d 0:0x3 --gradients
refuse 2 '--mesh dp=3 needs 3 devices, but -d gives 2' bench --model tiny --mesh dp=3 -d 0:0x2
unharmed 'other paths'

# ---- what is guessed is said -----------------------------------------------------------------------------------------

warned() { # 'TEXT' OPTIONS...: a check that one step of such a training is made, and that this is said
    text=$1
    shift
    check "it is said: $text" warns "$text" train "$@" --steps 1 --val-batches 1 --sample-tokens 0
}
awk 'BEGIN { for (i = 0; i < 500; i++) printf "word "; printf "\xef\xf0\xe8\xe2\xe5\xf2" }' >"$TMP/cp1251.txt"
awk 'BEGIN { for (i = 0; i < 1000; i++) print i }' >"$TMP/digits.txt"
mkdir -p "$TMP/nested/inside"
cp LICENSE "$TMP/nested/a.txt"
warned 'has 1 folder, whose files are not read' --model tiny --data "$TMP/nested"
warned 'is not UTF-8 from byte 2500 on' --model tiny --data "$TMP/cp1251.txt"
head -c 3000 /dev/zero >"$TMP/zeros.txt"
warned 'holds zero bytes, which a text does not have; the run trains on this file all the same' --model tiny \
    --data "$TMP/zeros.txt" --tokens bpe:257
warned 'does not say what its 67 tokens stand for' --init tests/data/gpt2-tiny.safetensors --data "$TMP/digits.txt"

# ---- what is not a regular file --------------------------------------------------------------------------------------

mkfifo "$TMP/fifo"
limit=20 # a pipe that is opened waits for a writer
for path in "$TMP/fifo" /dev/zero; do
    case $path in
    */fifo) what='is a pipe, which cannot be read twice; expected a regular file' ;;
    *) what='is a device or socket; expected a regular file' ;;
    esac
    for option in --init --config --pace --data --val-data; do
        refuse 4 "$path $what" train --model tiny $option "$path"
    done
    refuse 4 "$path $what" plan --simulate --profile "$path"
    refuse 4 "$path $what" plan --simulate --hardware "$path"
    refuse 4 "$path $what" plan --list "$path"
    refuse 4 "$path $what" check "$path"
    refuse 4 "$path $what" sample --from "$path"
    refuse 4 "$path $what" trace summary "$path"
    refuse 4 "$path $what" trace diff "$path" "$path"
    refuse 4 "$path $what" trace export "$path" --chrome "$TMP/x"
done
folder=$TMP/nothing
refuse 4 'holds no complete checkpoint' train --model tiny --init "$folder"
refuse 4 "$folder is a folder; expected a file of reference numbers" check "$folder"
what="$folder is a folder; expected"
refuse 4 "$what a text with lines \`option = value\`" train --model tiny --config "$folder"
refuse 4 "$what a profile or a hardware description" plan --simulate --profile "$folder"
refuse 4 "$what a profile or a hardware description" plan --simulate --hardware "$folder"
refuse 4 "$what a step file such as" plan --list "$folder"
refuse 4 "$what a log, which --log writes" plot "$folder"
refuse 4 "$what a profile or a hardware description" train --model tiny --pace "$folder"
refuse 4 "$what a trace, which --trace writes" trace summary "$folder"
refuse 4 "$what a trace, which --trace writes" trace diff "$folder" "$folder"
refuse 4 "$what a trace, which --trace writes" trace export "$folder" --chrome "$TMP/x"
refuse 4 "$what a trace, which --trace writes" view "$folder"
mkdir "$TMP/piped" && mkfifo "$TMP/piped/a.txt"
refuse 4 'is a pipe' train --model tiny --data "$TMP/piped"
if command -v perl >/dev/null; then
    perl -MIO::Socket::UNIX -e 'chdir shift; IO::Socket::UNIX->new(Local => "socket", Listen => 1)' "$TMP"
    refuse 4 'is a device or socket; expected a regular file' check "$TMP/socket"
else
    skip 'a socket is refused' 'perl, which makes one here, is not installed'
fi
head -c 20000000 /dev/zero >"$TMP/large"
refuse 2 'expected a text of at most 16 MiB' train --config "$TMP/large"
refuse 2 'expected a text of at most 16 MiB' plan --simulate --profile "$TMP/large"
printf 'device = x\nunits = \0\n' >"$TMP/nul"
refuse 2 'nul, line 2 holds a zero byte' plan --simulate --hardware "$TMP/nul"
cp -r cl "$TMP/kernels" && rm "$TMP/kernels/norm.cl" && mkdir "$TMP/kernels/norm.cl"
refuse_train_with "YARD_KERNELS=$TMP/kernels" 4 'norm.cl is a folder; expected a text file'
unharmed 'inputs that are no files'

# ---- numbers that do not fit -----------------------------------------------------------------------------------------

# The header's length comes first, in 8 bytes, the lowest one first; the upper six are 0 here.  By %b, printf writes a
# byte that is given in octal, as \0116.
safetensors() { # FILE HEADER [BYTES]: with so many bytes of data
    header=$2
    length=${#header}
    {
        printf '%b' "$(printf '\\0%o\\0%o' $((length % 256)) $((length / 256)))"
        printf '\0\0\0\0\0\0%s' "$header"
        head -c "${3:-0}" /dev/zero
    } >"$1"
}
tensor() { # NAME SHAPE BEGIN,END: prints the tensor's field of a header
    printf '"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}' "$1" "$2" "$3"
}
embeddings="$(tensor wte.weight 4,64 0,1024),$(tensor wpe.weight 4,64 1024,2048)"
safetensors "$TMP/deep.safetensors" "{$embeddings,$(tensor h.9999.x 1 2048,2052)}" 2052
safetensors "$TMP/gap.safetensors" "{$embeddings,$(tensor h.999.x 1 2048,2052)}" 2052
safetensors "$TMP/wrap.safetensors" "{$embeddings,$(tensor h.4294967296.x 1 2048,2052)}" 2052
safetensors "$TMP/rows.safetensors" "{$(tensor wte.weight 4,0 0,0),$(tensor wpe.weight 2147483653,0 0,0)}"
sed 's/"n_head\\": 4/"n_head\\": 4294967300/' $st >"$TMP/heads.safetensors"
refuse 1 'tensor h.9999.x is of a layer beyond the 1000' train --init "$TMP/deep.safetensors"
refuse 1 'tensor h.4294967296.x is of a layer beyond the 1000' train --init "$TMP/wrap.safetensors"
refuse 1 'has no tensor h.0.' train --init "$TMP/gap.safetensors"
refuse 1 'wpe.weight has shape [2147483653, 0], expected two dimensions below 2^31' check "$TMP/rows.safetensors"
refuse 2 '--devices (-d) takes P:D, ... not "4294967296:0"' train -d 4294967296:0
refuse 2 '--devices (-d) takes P:D, ... not "0:4294967296"' train -d 0:4294967296
refuse 2 '--devices (-d) takes P:D, ... not "0:0x4294967297"' train -d 0:0x4294967297
refuse 2 '--mesh takes dp=A,pp=B,tp=C, ... not "dp=4294967297"' train --mesh dp=4294967297
refuse 2 '--mesh takes dp=A,pp=B,tp=C, ... not "dp=-1"' train --mesh dp=-1
refuse 2 '--mesh takes dp=A,pp=B,tp=C, ... not "dp=18446744073709551617"' \
    plan --simulate --hardware $server --mesh dp=18446744073709551617
refuse 2 'millions of tasks' plan --simulate --hardware $server --batch 1000000 --micro-batch 1
hardware() { # LINE ['part']: the description with this line instead of its own
    sed "s/^${1%% =*} = [^#]*/$1 /" $server >"$TMP/server"
    part="${1%% =*} takes"
    case $1 in
    link*) part="$1\`: expected \`link LANE = BYTES_PER_SECOND LATENCY_SECONDS\`" ;;
    esac
    refuse 2 "${2:-$part}" plan --model tiny --simulate --hardware "$TMP/server"
}
for line in 'bandwidth = 1e-320' 'bandwidth = 1e300' 'flops = 1e-320' 'efficiency = 1e-320' 'efficiency = 2' \
    'launch = 1e300' 'link upload = 1e-320 0' 'link upload = 1e9 1e300' 'link upload = 1e9 nan' \
    'devices_per_link = 4294967296' 'devices = 4294967297' 'host_bandwidth = 1e-320' \
    'memory = 99999999999999999999G' 'memory = 0'; do
    hardware "$line"
done
hardware 'link upload = 22e9' 'expected `link LANE = BYTES_PER_SECOND LATENCY_SECONDS`; tutorials/'
{ cat $server && echo 'wobble = 3'; } >"$TMP/server"
refuse 2 '`wobble = 3`: unknown name' plan --model tiny --simulate --hardware "$TMP/server"
hardware 'bandwidth = 1' 's in all by '
for word in cpu=1e-320 device=1e-320 link=1e300 'cpu=1e-5 cpu=1e-5' device=nan mem=0; do
    refuse 2 '--what-if takes words such as' plan --model tiny --simulate --hardware $server --what-if "$word"
done
unharmed 'numbers that do not fit'

# A list with more lanes than a trace has room for.
awk 'BEGIN {
    for (i = 0; i < 1400; i++) {
        printf "device d%d memory=1M\n", i
        printf "task a d%d.compute 1ms\ntask b d%d.upload 1ms\ntask c d%d.download 1ms\n", i, i, i
    }
}' >"$TMP/lanes.txt"
refuse 2 'but a trace has room for 4096: take fewer devices' view "$TMP/lanes.txt" --png "$TMP/lanes.png"
refuse 2 'but a trace has room for 4096: take fewer devices' plan --list "$TMP/lanes.txt" --simulate \
    --trace "$TMP/lanes.trace"

# A task of one device that writes to the memory of another: the proof says so, and no board has such a list.
cat >"$TMP/elsewhere.txt" <<'LIST'
device d0 memory=1G
device d1 memory=1G
tensor x d0 4000 activations
task forward d1.compute 1ms layer=0 role=forward writes=x
LIST
elsewhere='task 0 forward of device d1 touches tensor x of device d0: only a copy may'
refuse 1 "verify: $elsewhere" plan --list "$TMP/elsewhere.txt" --verify
refuse 2 "elsewhere.txt: $elsewhere" view "$TMP/elsewhere.txt" --png "$TMP/elsewhere.png"
cat >"$TMP/narrow.txt" <<'LIST'
device d0 memory=1M
tensor x d0 4000000 activations
task forward d0.compute 1ms layer=0 role=forward writes=x
LIST
refuse 2 'narrow.txt: device d0 holds 4000000 bytes, its budget is 1048576' \
    view "$TMP/narrow.txt" --png "$TMP/narrow.png"

# ---- what a terminal would obey --------------------------------------------------------------------------------------

escape=$(printf '\033]0;owned\007\302\233')
nothing_raw() { # NAME: a check that what was printed has neither controls nor what is not UTF-8
    cat "$TMP/out" "$TMP/err" | tr -d '\n\t' >"$TMP/printed"
    check "no escape sequence reaches the terminal: $1" \
        lacks "$(printf '[\001-\037\177]\|\302\233\|\377')" "$TMP/printed"
}
foreign() { # CODE WORDS...: checks that it ends with CODE, and shows what a terminal would obey as "?"
    expected=$1
    shift
    yard "$@"
    code=$?
    exit_code "foreign text in $1 $2: the exit code is $expected" $code "$expected"
    check "foreign text in $1 $2 is shown with question marks" grep -q -F '?' "$TMP/out" "$TMP/err"
    nothing_raw "$1 $2"
}
foreign 4 check "$TMP/$escape"
foreign 4 check "$TMP/$(printf '\377')"
foreign 2 train "--$escape"
printf '%s = 1\n' "$escape" >"$TMP/config"
foreign 2 train --config "$TMP/config"
sed "s/^hardware = .*/hardware = a$escape/" $server >"$TMP/$escape"
foreign 0 plan --model tiny --simulate --print --hardware "$TMP/$escape" --trace "$TMP/escape.trace"
foreign 0 trace export "$TMP/escape.trace" --chrome "$TMP/$escape.json"
cp "$TMP/escape.trace" "$TMP/$escape"
foreign 0 trace diff "$TMP/escape.trace" "$TMP/$escape"
cp README.md "$TMP/$escape"
foreign 0 train --model tiny --steps 1 --sample-tokens 0 --val-share 0 --data "$TMP/$escape"
sed "s/wte\.weight/$(printf 'wte\033\033eight')/;s/\[67, 48\]/[48, 67]/" $st >"$TMP/names.safetensors"
yard check "$TMP/names.safetensors"
nothing_raw 'the name of a tensor'
cp $st "$TMP/$escape"
yard check --json "$TMP/$escape"
nothing_raw 'check --json'

# ---- kernels ---------------------------------------------------------------------------------------------------------

cp -r cl "$TMP/cl"
edited="YARD_KERNELS=$TMP/cl"
line=$(grep -n 'float sum = accumulate' "$TMP/cl/loss.cl" | cut -d: -f1)
sed "${line}s/float/flaot/" cl/loss.cl >"$TMP/cl/loss.cl"
yard_with "$edited" train --model tiny
exit_code 'a kernel that does not compile ends the run' $? 1
check "the compiler's own message has the file and its line" grep -q "$TMP/cl/loss.cl:$line" "$TMP/err"
cp cl/loss.cl "$TMP/cl/loss.cl"
sed 's/void add(/void sum(/' cl/elementwise.cl >"$TMP/cl/elementwise.cl"
refuse_train_with "$edited" 1 'kernel add in cl/elementwise.cl: CL_INVALID_KERNEL_NAME'
sed 's/void add(/void add(int more, /' cl/elementwise.cl >"$TMP/cl/elementwise.cl"
refuse_train_with "$edited" 1 'of kernel add (cl/elementwise.cl): CL_INVALID_ARG_SIZE'
rm "$TMP/cl/elementwise.cl"
refuse_train_with "$edited" 4 "$TMP/cl/elementwise.cl"
unharmed 'damaged kernels'

finish
