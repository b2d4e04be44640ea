# league.awk - what the judge of the league takes from a list that an entry hands over, and what it does not.
#
#     awk -f league.awk OPEN OPEN-HOST DRAWN DRAWN-HOST ENTRY >JUDGED
#
# OPEN is the model's own list, as a step file, for the hardware that the entry was made for, and OPEN-HOST the same
# with all updates on the host.  DRAWN and DRAWN-HOST are those for the hardware of the judgement.  JUDGED is ENTRY with
# the machine and the times of DRAWN.  So ENTRY says only in which order and on which lanes tasks run, where tensors
# lie, and what is copied.  Whether it computes the same is not asked here: `yard plan --like` proves it.
#
# A fault is one sentence on stderr, with exit code 1.  Each line of ENTRY is taken apart, and JUDGED is put together
# from words that are known, so nothing else of ENTRY comes through.

function fault(sentence) {
    print sentence | "cat 1>&2"
    faulty = 1
    exit 1
}

# Splits $0 into word[1..n] and option[KEY], of which the rest stand in order in keys.
function split_line(   i, at, key) {
    sub(/#.*/, "")
    n = 0
    for (key in option)
        delete option[key]
    for (i = 1; i <= NF; i++) {
        at = index($i, "=")
        if (!at) {
            word[++n] = $i
            continue
        }
        key = substr($i, 1, at - 1)
        if (key in option)
            fault("line " FNR " has " key "= twice")
        option[key] = substr($i, at + 1)
    }
}

function given(key) {
    return key in option ? option[key] : ""
}

function known_options(names,   key) {
    for (key in option)
        if (index(" " names " ", " " key " ") == 0)
            fault("line " FNR ": " key "= is not an entry's to say")
}

# A line of the machine, without the memory of devices: --device-mem gives it.
function machine_line(   line) {
    line = $0
    gsub(/ (memory|slab)=[^ ]*/, "", line)
    gsub(/ +/, " ", line)
    sub(/ $/, "", line)
    return line
}

# ---- operands: NAME or NAME[begin:end] -------------------------------------------------------------------------------

function tensor_of(operand) {
    sub(/\[.*/, "", operand)
    if (!(operand in device_of))
        fault("line " FNR ": tensor " operand " is not declared above")
    return operand
}

function size_of(operand,   range) {
    if (operand !~ /\[/)
        return bytes_of[tensor_of(operand)]
    if (operand !~ /^[^\[]*\[[0-9]+:[0-9]+\]$/)
        fault("line " FNR ": " operand " is no NAME[begin:end]")
    range = operand
    sub(/.*\[/, "", range)
    return substr(range, index(range, ":") + 1) - range
}

function sizes_of(list,   operand, i, count, sizes) {
    count = split(list, operand, ",")
    for (i = 1; i <= count; i++)
        sizes = sizes " " size_of(operand[i])
    return sizes
}

function judged_operand(operand,   name) {
    name = tensor_of(operand)
    return judged_name[name] substr(operand, length(name) + 1)
}

function judged_operands(list,   operand, i, count, judged) {
    count = split(list, operand, ",")
    for (i = 1; i <= count; i++)
        judged = judged (i > 1 ? "," : "") judged_operand(operand[i])
    return judged
}

# ---- tasks -----------------------------------------------------------------------------------------------------------

# What names a task's computation, and what its price depends on besides.
function task_tags() {
    return word[2] " layer=" given("layer") " micro=" given("micro") " role=" given("role")
}
function task_key() {
    return "task " task_tags() " " word[3] " every=" given("every") " rest=" given("rest") " cpu=" given("cpu") \
        " reads" sizes_of(given("reads")) " writes" sizes_of(given("writes"))
}
function copy_key() {
    return "copy " task_tags() " " given("lane") " every=" given("every") " rest=" given("rest") " from " \
        device_of[tensor_of(word[4])] " to " device_of[tensor_of(word[3])] " " size_of(word[3]) " " \
        sizes_of(given("reads"))
}

# Device and kind of a lane, DEVICE.KIND[N].
function lane_device(lane) {
    sub(/\.[^.]*$/, "", lane)
    return lane
}
function lane_kind(lane) {
    sub(/.*\./, "", lane)
    return lane
}

function tensor_flags(   i, flags) {
    for (i = 6; i <= n; i++)
        flags = flags " " word[i]
    return flags
}
function persists() {
    return word[5] ~ /^(parameters|optimizer)$/ || tensor_flags() ~ / keep/
}

# ---- the judge's lists -----------------------------------------------------------------------------------------------

FNR == 1 { file++ }

file <= 4 {
    split_line()
    if ("after" in option)
        fault("the model's list says after=, which no entry can be compared with")
    drawn = file > 2
}
file <= 4 && word[1] == "tensor" {
    device_of[word[2]] = word[3]
    bytes_of[word[2]] = word[4]
    if (file == 1 && persists())
        kept[word[2]] = word[4] " " word[5] tensor_flags()
}
file <= 4 && word[1] == "task" {
    key = task_key()
    own_task[task_tags()] = own_task[task_tags()] " " word[3] " "
    own_name[word[2]] = 1
    if (!drawn)
        open_price[key, word[4] + 0] = 1
    else if (!(key in price) || word[4] + 0 > price[key] + 0)
        price[key] = word[4]
}
(file == 1 || file == 3) && word[1] == "copy" {
    key = copy_key()
    own_name[word[2]] = 1
    if (!drawn)
        open_copy[key, given("time") + 0] = 1
    else
        copy_price[key] = given("time")
}
(file == 1 || file == 3) && word[1] ~ /^(device|lane|link|disk)$/ {
    if (!drawn)
        machine[machine_line()] = 1
    else
        print
    if (word[1] == "lane" && drawn)
        has_lane[word[2]] = 1
}
file <= 4 {
    for (i in word)
        delete word[i]
    next
}

# ---- the entry -------------------------------------------------------------------------------------------------------

!cleared { # its tensors lie where it says
    cleared = 1
    for (name in device_of)
        delete device_of[name]
}
{
    if ($0 ~ /[^ -~\t]/)
        fault("line " FNR " has a character that no step file needs")
    for (i in word)
        delete word[i]
    split_line()
    if (n == 0 && NF > 0)
        fault("line " FNR " begins with an option")
    if (n == 0)
        next
}

word[1] ~ /^(device|link|disk)$/ {
    if (!(machine_line() in machine))
        fault("line " FNR ": the machine is not an entry's to say, and the model's list has no line '" \
            machine_line() "'")
    next
}

word[1] == "lane" {
    if (machine_line() in machine)
        next
    if (n != 2 || NF != 2 || word[2] !~ /\.(upload|download)[12]$/)
        fault("line " FNR ": lane " word[2] " is not there: an entry may add DEVICE.upload1, upload2, download1 and " \
            "download2")
    if (!(word[2] in has_lane))
        print "lane " word[2]
    has_lane[word[2]] = 1
    next
}

word[1] == "tensor" {
    name = word[2]
    line = word[4] " " word[5] tensor_flags()
    known_options("")
    if (n < 5 || name in device_of)
        fault("line " FNR ": no tensor NAME DEVICE BYTES CLASS, or one that is there already")
    if (word[4] !~ /^[1-9][0-9]*$/)
        fault("line " FNR ": the bytes of " name " are no plain number")
    base = name
    sub(/~.*/, "", base)
    if (name in kept && line == kept[name]) {
        judged_name[name] = name
    } else if (word[5] ~ /^(parameters|optimizer)$/) {
        if (name in kept)
            fault("line " FNR ": tensor " name " has other bytes, class or flags than the model's")
        if (!(base in kept) || line != kept[base])
            fault("line " FNR ": tensor " name " would persist, and is no replica NAME~N of one of the model's")
        judged_name[name] = base "~" (1000 + ++n_own)
    } else {
        judged_name[name] = "own." ++n_own
    }
    if (tensor_flags() ~ / side/)
        fault("line " FNR ": tensor " name " is a side word, of which no value would be compared")
    device_of[name] = word[3]
    bytes_of[name] = word[4]
    print "tensor " judged_name[name], word[3], word[4], word[5] tensor_flags()
    next
}

function tag_words(   words, key, i, list) {
    for (i = split("layer micro role every rest cpu", list, " "); i > 0; i--) {
        key = list[i]
        if (key in option)
            words = words " " key "=" option[key]
    }
    return words
}

# Names of copies are the entry's own; the tasks of the model keep theirs.
function judged_task(name) {
    if (name in own_name)
        return name
    if (!(name in copy_name))
        copy_name[name] = "copy" ++n_copies
    return copy_name[name]
}

function waits(   name, i, count, words, end) {
    if (!("after" in option))
        return ""
    count = split(given("after"), name, ",")
    for (i = 1; i <= count; i++) {
        end = sub(/'$/, "", name[i]) ? "'" : ""
        words = words (i > 1 ? "," : " after=") judged_task(name[i]) end
    }
    return words
}

# A task touches only what is on its lane's device.
function must_be_near(list, lane,   operand, i, count) {
    count = split(list, operand, ",")
    for (i = 1; i <= count; i++)
        if (device_of[tensor_of(operand[i])] != lane_device(lane))
            fault("line " FNR ": task " word[2] " on " lane " touches tensor " operand[i] " of device " \
                device_of[tensor_of(operand[i])] ": a copy has to bring it")
}

word[1] == "task" {
    known_options("layer micro role every rest cpu after reads writes")
    if (n != 4)
        fault("line " FNR " is no task NAME LANE TIME")
    if (!(task_tags() in own_task))
        fault("line " FNR ": the model has no task " task_tags())
    key = task_key()
    must_be_near(given("reads"), word[3])
    must_be_near(given("writes"), word[3])
    if (!(key in price))
        fault("line " FNR ": task " word[2] " of the model runs on other lanes, in other steps, or touches other bytes")
    if (!((key, word[4] + 0) in open_price))
        fault("line " FNR ": task " word[2] " takes " word[4] " s, and times are not an entry's to say")
    print "task " word[2], word[3], price[key] tag_words() waits() \
        (given("reads") ? " reads=" judged_operands(given("reads")) : "") \
        (given("writes") ? " writes=" judged_operands(given("writes")) : "")
    next
}

# The lane on which a copy of the entry's own runs: from the host its receiver's upload, else its sender's download.
function copy_lane(from, to,   lane) {
    lane = from == "host" ? to ".upload" : from ".download"
    if (!("lane" in option))
        return lane
    if (given("lane") == from ".compute" || given("lane") == to ".compute") # it is in the way of tasks there
        return given("lane")
    if (given("lane") != lane && !(index(given("lane"), lane) == 1 && given("lane") in has_lane))
        fault("line " FNR ": copy " word[2] " runs on " given("lane") ", not on " lane)
    return given("lane")
}

word[1] == "copy" {
    known_options("layer micro role every rest lane time msg after reads")
    if (n != 4)
        fault("line " FNR " is no copy NAME TO FROM")
    to = device_of[tensor_of(word[3])]
    from = device_of[tensor_of(word[4])]
    key = copy_key()
    time = ""
    if (key in copy_price) {
        if (!((key, given("time") + 0) in open_copy))
            fault("line " FNR ": copy " word[2] " takes " given("time") " s, and times are not an entry's to say")
        lane = given("lane")
        if (copy_price[key] != "")
            time = " time=" copy_price[key]
    } else {
        if (from == to)
            fault("line " FNR ": copy " word[2] " stays on device " to ", for which nobody knows a time")
        if ("time" in option || "every" in option || "rest" in option)
            fault("line " FNR ": copy " word[2] " says when it runs or how long, which is not an entry's to say")
        lane = copy_lane(from, to)
    }
    delete option["role"]
    print "copy " judged_task(word[2]), judged_operand(word[3]), judged_operand(word[4]), "lane=" lane time \
        tag_words() waits() (given("reads") ? " reads=" judged_operands(given("reads")) : "")
    next
}

{ fault("line " FNR " is no line of a step file: it begins with '" substr(word[1], 1, 20) "'") }

END {
    close("cat 1>&2")
    if (faulty)
        exit 1
}
