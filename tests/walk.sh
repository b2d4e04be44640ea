#!/bin/sh
# walk.sh - walks the pages as a student would, in a copy of the project.  Every command of an indented block is run.
# What the page says is compared with what its commands printed: blocks line by line, prose and tables by their numbers.
# What it tells the student to change is changed.
#
#     plan's output (but of a measured profile)     word for word, as that of a simulated bench
#     other output                                  counts and sizes as they are; losses, times and rates may differ
#     a line that ends in "..."                     only its beginning counts; "..." alone stands for what is left out
#     a command that fails                          the page must show the sentence
#     blocks between ```                            not looked at: pictures, what is typed into gdb, sample text
#     <!-- test: COMMAND -->                        what the text tells the student to change by hand
#     <!-- by hand: WHY -->                         a change that no test makes
#     <!-- numbers: COMMAND -->                     prints numbers of the next paragraph (or list, or table)
#     <!-- sum: EXPRESSION, ... -->                 computes some of them from numbers that are shown
#     <!-- measured: ON WHAT -->                    numbers of the next paragraph or block that no test can see,
#                                                   but for tasks
#     --png build/NAME.png                          of a simulated step: the page's picture, byte for byte, unless none
#                                                   is (another zlib packs otherwise)
#
# A number of prose or of a table is right if it stands in a block of its page, in code of its paragraph, in a list of
# data/steps that a shown command reads, in what a mark before its paragraph prints, or with the same unit in what plan
# printed; all rounded to its digits: 13.5 is 13.500 and 13.46, and 96 % is 96.2 %, but a count is itself.  Not compared
# are whole numbers to 10 without a unit, numbers that are part of a name or formula (GPT-2, 1F1B, 32-bit, OpenCL 1.2,
# 12/N), years of papers, and links.  Code that quotes output (`at least 12.000 ms`) must be in it, or is read as prose.
#
# A paragraph or item that begins with "Try", "Replace" and the like, or tells in a section "Change it" to write,
# replace or leave out something, must have a mark in it or behind it, or a command if it changes no file.
#
# PAGES names those that are walked.  Else `make test` (YARD_TESTS=test) takes two, `make check` the others, and who runs
# it by hand all.  Long runs are cut short, but for traced ones: their records are
# counted.  Outputs are compared on a CPU with PoCL, where they come from; elsewhere the commands are only run.
set -u
LC_ALL=C
export LC_ALL
TOP=$(pwd)
YARD=${YARD:-./yard}
TMP=$(cd "${TMP:-$(mktemp -d)}" && pwd) # we go elsewhere
number=0 failed=0

result() { # name; what is wrong is in $TMP/wrong
    number=$((number + 1))
    if [ -s "$TMP/wrong" ]; then
        failed=$((failed + 1))
        echo "not ok $number - $1"
        sed 's/^/#   /' "$TMP/wrong" | head -n 30
    else
        echo "ok $number - $1"
    fi
}

# ---- the copy: built already, so that make compiles only what is edited ---------------------------------------------

walk=$TMP/walk
mkdir -p "$walk/build" "$walk/tests"
cp -Rp Makefile README.md LICENSE cl data src tutorials "$walk"
cp -Rp tests/data tests/packages.sh "$walk/tests"
cp -Rp build/src build/embedded.* build/packages "$walk/build"
case $YARD in /*) program=$YARD ;; *) program=$TOP/$YARD ;; esac
cd "$walk" || exit 1
MAKEFLAGS=$(echo "${MAKEFLAGS-}" | sed 's/--jobserver[^ ]*//g') # its own jobs, the same compiler
export MAKEFLAGS
make -s build/flags
find build -type f -exec touch {} +
cp "$program" yard
for text in my.txt tinyshakespeare.txt; do cp LICENSE $text; done
./yard devices >"$TMP/devices"
grep -q '^platform 0: Portable Computing Language' "$TMP/devices" && same=yes || same=no
grep -q -e '-d 0:0/2' "$TMP/devices" && half=/2 || half=x2 # logical devices where none can be cut: but for names alike

edit() { # FILE SCRIPT...: the original with these changes; fails if it is left as it was, but for an empty script
    file=$1
    shift
    printf '%s\n' "$@" >"$TMP/script"
    sed -f "$TMP/script" "$TOP/$file" >"$file"
    [ -z "$*" ] || ! cmp -s "$TOP/$file" "$file"
}

# ---- a page: commands and the lines that they must print ------------------------------------------------------------

# the page as lines: "run COMMAND" and "say LINE" of blocks, "text N PARAGRAPH", "head TITLE", "edit" for a mark of one;
# "numbers N COMMAND", "sum N EXPRESSION" and "measured N" belong to paragraph N
read_page() {
    awk 'function flush() { if (text != "") print "text " n " " text; text = "" }
         function mark(kind) { # its command is in line
             if (kind ~ /^(test|by hand)$/) print "edit"
             if (kind == "test") print "run " line
             if (kind == "measured") measured = 1
             if (kind ~ /^(numbers|sum)$/) print kind " " n + 1 " " line }
         { line = $0; sub(/^ +/, "", line) }
         /^```/ { flush(); fenced = !fenced; next }
         fenced { next }
         more { line = command line }
         !more && /^<!-- [a-z ]*: / {
             flush(); kind = line; sub(/: .*/, "", kind); sub(/^<!-- /, "", kind); sub(/^<!-- [a-z ]*: /, "", line)
             more = 1 }
         !more && text == "" && /^ +(\.\/yard|cmp|cat|rm -f|YARD_[A-Z_]*=1|make)/ { kind = "block"; more = 1 }
         more && sub(/\\$/, "", line) { command = line; next }
         more && kind != "block" && line !~ /-->$/ { command = line " "; next }
         more { more = 0; command = ""; sub(/ *-->$/, "", line)
                if (kind != "block") { mark(kind); next }
                sub(/    *[^ ].*$/, "", line); sub(/ +#.*/, "", line)
                print "run " line; print "shown " line; next }
         /^    / && text == "" {
                   if (measured) measured = 2
                   if (!/^ *\.\.\.$/) print (measured ? "about " : "say ") $0; next }
         /^#/ { flush(); print "head " $0; next }
         /^ *$/ { flush(); next }
         text == "" { n++; if (measured == 1) print "measured " n; measured = 0 }
         /^[0-9]+\. / { flush() } # an item
         { text = text " " $0 }
         END { flush() }' "$1"
}

shorten() { # fewer steps, no long evaluation
    case $1 in
    *'yard train'*--trace*) long='[0-9]{3,}' ;;
    *) long='[0-9]{2,}' ;;
    esac
    case $1 in
    *'yard train'*)
        echo "$1" | sed -E "s/--steps $long/--steps 4/; s/--warmup [0-9]+/--warmup 2/
            s/yard train/& --val-batches 1 --sample-tokens 0/" ;;
    *'yard sample'*) echo "$1 --count 20" ;;
    'make demo') # without making anything
        make -n --no-print-directory demo STEPS=4 | sed -n '/^echo/d; /yard train/,$p' | tr -d '\\' | tr '\n' ' ' |
            sed 's| ./yard| \&\& ./yard|g; s/$/ --count 20/' ;;
    *) echo "$1" ;;
    esac
}

picture() { # the one that a command has drawn, beside the page's
    name=$(echo "$1" | sed -n 's|.*--png build/\([^ ]*\).*|\1|p')
    [ -f "tutorials/pictures/$name" ] && [ "$name" != predicted.png ] || return # that one shows a paced run too
    list=$TMP/unlike
    cmp -s "build/$name" "tutorials/pictures/$name" && list=$TMP/alike
    echo "$name is another picture" >>"$list"
}

run_commands() { # of $TMP/page: exact output to $TMP/exact, other to $TMP/loose, that of marks to $TMP/proof
    : >"$TMP/exact" && : >"$TMP/loose" && : >"$TMP/wrong" && : >"$TMP/proof"
    grep -E '^(run|numbers|sum) ' "$TMP/page" | while read -r kind command; do
        out=$TMP/loose
        if [ "$kind" != run ]; then
            paragraph="${command%% *} " command=${command#* } out=$TMP/proof
            [ "$kind" = numbers ] ||
                command="awk 'function p(x) { printf \"%.9f\n\", x }
                    BEGIN { p($(echo "$command" | sed 's/, /); p(/g')) }'"
        else
            case $command in *'yard bench'*--hardware*) ;; *'yard bench'* | 'make test') continue ;; esac # take minutes
            command=$(shorten "$command" | sed "s|0:0/2|0:0$half|g")
            case $command in *--profile*) ;; *'yard plan'* | *'yard bench'*) out=$TMP/exact ;; esac
        fi
        echo "$(date +%S) $command" >>"$TMP/ran"
        (eval "$command") >"$TMP/out" 2>&1 </dev/null # in a shell of its own, which a mistake in a mark ends
        code=$?
        [ "$kind" = run ] && paragraph=
        sed "s|0:0$half|0:0/2|g; s/^/$paragraph/" "$TMP/out" >>"$out"
        picture "$command"
        said=$(sed -n '/^yard: /{p;q;}; /^FAILED/{p;q;}' "$TMP/out" | cut -c 1-20) # a failure that the page shows
        [ $code -eq 0 ] || { [ -n "$said" ] && grep -qF "$said" "$TMP/page"; } ||
            echo "exit code $code: $command: $said" >>"$TMP/wrong"
    done
}

compare_lines() {
    cat src/*/*/*.[ch] cl/*.cl >"$TMP/sources"
    awk 'function squeeze(s) { gsub(/[ \t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
         # without what differs from run to run: fractions but of bytes, what has a unit of time or rate, step numbers
         function loosen(s,   kept, word, before) {
             while (match(s, /[-+]?[0-9][0-9.]*(e[-+][0-9]+)?/)) {
                 word = substr(s, RSTART, RLENGTH); before = kept substr(s, 1, RSTART - 1)
                 s = substr(s, RSTART + RLENGTH)
                 if (measured || before ~ /step (#.)?$/ || s ~ /^ of [0-9]+ tasks overran/ ||
                     (word ~ /[.][0-9]/ ? s !~ /^ [KMG]iB/ : s ~ /^ ([num]?s|%|[KMG]B.s|tok|GFLOP)/)) word = "#"
                 kept = before word
             }
             return kept s }
         function found(s, lines, n, whole,   i) {
             for (i = 1; i <= n; i++)
                 if (whole ? lines[i] == s : index(lines[i], s) == 1) return 1
             return 0 }
         file == "said" { measured = sub(/^about/, ""); sure = sub(/^sure/, ""); sub(/^say/, "") }
         { line = squeeze($0) }
         file == "exact" { exact[++n_exact] = line; next }
         file == "loose" {
             measured = 0; loose[++n_loose] = loosen(line)
             measured = 1; rough[n_loose] = loosen(line); next }
         { whole = !sub(/ ?\.\.\.$/, "", line); loosened = loosen(line)
           if (!found(line, exact, n_exact, whole) && (sure ||
               !(measured ? found(loosened, rough, n_loose, whole) : found(loosened, loose, n_loose, whole))))
               print "not printed: " $0 }' \
        file=exact "$TMP/exact" "$TMP/sources" file=loose "$TMP/loose" file=said "$TMP/said"
    sed 's/.*/line/' "$TMP/said" >>"$TMP/compared"
}

compare_numbers() {
    sed -n "s|0:0$half|0:0/2|g; s/^shown //p" "$TMP/page" | cat - "$TMP/said" >"$TMP/shown"
    lists=$(grep '^shown ' "$TMP/page" | grep -o 'data/steps/[^ ]*\.txt' | sort -u)
    [ -z "$lists" ] || cat $lists >>"$TMP/shown"
    sed -n 's/^sum /text /p' "$TMP/page" | cat - "$TMP/page" | grep -E '^(text|measured) ' >"$TMP/prose"
    awk -v compared="$TMP/compared" '
         function decimals(s) { return sub(/.*\./, "", s) ? length(s) : 0 }
         # the next number of rest, to word, unit and value; what stands before it goes to done
         function next_number(   before) {
             while (match(rest, /[0-9]+(,[0-9][0-9][0-9])*([.][0-9]+)?/)) {
                 word = substr(rest, RSTART, RLENGTH); before = done substr(rest, 1, RSTART - 1)
                 rest = substr(rest, RSTART + RLENGTH); done = before word
                 value = word; gsub(/,/, "", value); value += 0
                 match(rest, /^ ?(%|([num]|µ)?s|seconds|minutes|[KMG](iB|B)?|bytes|[KMGT]FLOP|tasks)/)
                 unit = RLENGTH > 0 && substr(rest, RLENGTH + 1) !~ /^[A-Za-z]/ ? substr(rest, 1, RLENGTH) : ""
                 if (before ~ /[A-Za-z_]-?$/ || unit == "" && rest ~ /^(-|\/|·)?[A-Za-z_]/) continue
                 sub(/ /, "", unit); sub(/µ/, "u", unit)
                 return 1
             }
             return 0 }
         function collect(line, paragraph, typed) { # typed: only numbers with a unit
             rest = line; done = ""
             while (next_number())
                 if (!typed || unit != "") {
                     known[++count] = value; of[count] = paragraph; in_unit[count] = unit
                     fine[count] = decimals(word); strict[count] = typed
                 } }
         function proved(paragraph,   i, off) {
             off = decimals(word) || unit != "" ? 0.5 / 10 ^ decimals(word) : 0
             for (i = 1; i <= count; i++)
                 if ((of[i] == "" || of[i] == paragraph) &&
                     (in_unit[i] == unit || !strict[i] && (in_unit[i] == "" || unit == "")) && fine[i] >= decimals(word) &&
                     value - off <= known[i] + 1e-9 && known[i] <= value + off + 1e-9) return 1
             return 0 }
         function printed(s,   i) {
             for (i = 1; i <= n_lines; i++) if (index(lines[i], s)) return 1
             return 0 }
         function clean(s, paragraph,   kept, span) { # without links and code that quotes no output
             gsub(/!?\[[^]]*\]\([^)]*\)/, "", s)
             while (match(s, /`[^`]*`/)) {
                 span = substr(s, RSTART + 1, RLENGTH - 2); kept = kept substr(s, 1, RSTART - 1) "`"
                 s = substr(s, RSTART + RLENGTH); gsub(/ +/, " ", span)
                 if (span !~ /^[A-Za-z0-9 .,:]* [A-Za-z0-9 .,:]*$/) collect(span, paragraph, 0)
                 else if (!printed(span)) kept = kept span "`"
             }
             s = kept s
             gsub(/(et al\.|OpenCL|OpenCL C|PoCL|PyTorch|Debian) [0-9.]*[0-9](, [0-9.]*[0-9])*/, "", s)
             return s }
         file == "shown" { collect($0, "", 0); next }
         file != "prose" { gsub(/[ \t]+/, " "); lines[++n_lines] = $0 }
         file == "exact" { collect($0, "", 1) }
         file == "exact" || file == "loose" { next }
         file == "proof" { paragraph = $1; sub(/^[0-9]+ /, ""); collect($0, paragraph, 0); next }
         $1 == "measured" { measured[$2] = 1; next }
         { paragraph = $2; sub(/^text [0-9]+ +([0-9]+\. )?/, ""); rest = clean($0, paragraph); done = ""
           while (next_number()) {
               if (value <= 10 && unit == "" && word !~ /[.]/) continue
               by_hand = measured[paragraph] && unit != "tasks"
               print by_hand ? "measured" : "number" >>compared
               if (!by_hand && !proved(paragraph))
                   print "number of no output: " word " in: ..." substr(done, length(done) - 40) substr(rest, 1, 20)
           } }' file=shown "$TMP/shown" file=exact "$TMP/exact" file=loose "$TMP/loose" \
        file=proof "$TMP/proof" file=prose "$TMP/prose"
}

find_edits() { # what the page tells to change, without a mark
    awk -v compared="$TMP/compared" '
         function must(text) { need = text; done = ready; ready = 0 }
         function settle() { if (need != "" && !done) print "no test of this change: " substr(need, 1, 60); need = "" }
         BEGIN { words = "(Change it|Try|Your turn|Exercise|Replace|Leave out|Put|Give|Flip|Copy|Add|Write|Set|" \
                         "Remove)[ .:s]" }
         $1 == "head" { settle(); section = $0 " " ~ "## " words; next }
         $1 == "edit" { print "edit" >>compared; if (need != "" && !done) done = 1; else ready = 1; next }
         $1 == "run" { if (need !~ /(src|cl)\//) done = 1; next }
         $1 == "text" { sub(/^text [0-9]+ +/, ""); line = $0; sub(/^([0-9]+\. |- )?(\*\*)?/, "", line)
             if (line ~ "^" words || section && !/^- / &&
                 /([Ll]eave|[Tt]ake) out|([Ww]rite|[Rr]eplace|[Pp]ut|[Aa]dd) |`make`/) { settle(); must($0) }
             else ready = 0 }
         END { settle() }' "$TMP/page"
}

few='tutorials/01-first-run.md tutorials/02-the-step-is-a-list.md'
case ${YARD_TESTS:-all} in
test) some=$few ;;
check) some=$(ls README.md tutorials/*.md | grep -vxF "$(echo "$few" | tr ' ' '\n')") ;;
*) some='README.md tutorials/*.md' ;;
esac
for page in ${PAGES:-$some}; do
    read_page "$page" >"$TMP/page"
    run_commands
    # what a block of plans alone prints is "sure"
    sed "s|0:0$half|0:0/2|g" "$TMP/page" | awk '
        /^(text|head)/ { plans = others = 0 }
        /^shown/ && /yard plan/ && !/--profile/ { plans++; next }
        /^shown/ { others++ }
        /^say/ && plans && !others { sub(/^say/, "sure") }
        /^(about|say|sure)/' >"$TMP/said"
    [ $same = no ] || ! grep -q '^run ' "$TMP/page" || compare_lines >>"$TMP/wrong"
    { compare_numbers && find_edits; } >>"$TMP/wrong"
    result "$page"
done
[ -s "$TMP/alike" ] && cat "$TMP/unlike" >"$TMP/wrong" 2>/dev/null || : >"$TMP/wrong"
result 'pictures'
[ $same = yes ] || echo "ok $((number + 1)) - what they print # SKIP platform 0 is not PoCL"
for kind in line number measured edit; do echo "# $kind: $(grep -c "^$kind" "$TMP/compared")"; done
echo "1..$number"
[ "$failed" -eq 0 ] && [ "$number" -gt 0 ]
