#!/bin/sh
# walk.sh - walks the tutorials as a student would, in a copy of the project: every command in an indented block is run,
# and every other line of such a block must be in what the commands of its page printed, or in the sources.
#
#     plan's output (but of a measured profile)     word for word, as that of a simulated bench; of other commands
#                                                   numbers may differ, but not those that count (see loosen)
#     a line that ends in "..."                     only its beginning counts; "..." alone stands for what is left out
#     a command that fails                          the page must show the sentence
#     blocks between ```                            not looked at: pictures, what is typed into gdb, sample text
#     <!-- test: COMMAND -->                        what the text tells the student to change by hand
#     --png build/NAME.png                          of a simulated step: the page's picture, byte for byte, unless none
#                                                   is (another zlib packs otherwise)
#
# PAGES names those that are walked, else all are.
# Long runs are cut short, but for traced ones: their records are counted.  Outputs are compared on a CPU with PoCL, where they come from; elsewhere the commands are
# only run.
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

edit() { # FILE SCRIPT...: the original with these changes
    file=$1
    shift
    printf '%s\n' "$@" >"$TMP/script"
    sed -f "$TMP/script" "$TOP/$file" >"$file"
}

# ---- a page: commands and the lines that they must print ------------------------------------------------------------

# "run COMMAND" and "say LINE", in the page's order
read_page() {
    awk '/^```/ { fenced = !fenced; next }
         fenced { next }
         { line = $0; sub(/^ +/, "", line) }
         more { command = command line }
         /^<!-- test: / { command = substr($0, 12); more = 1 }
         /^ +(\.\/yard|cmp|cat|YARD_[A-Z_]*=1|make)/ && !more { command = line; more = 1 }
         more && sub(/\\$/, "", command) { next }
         more { sub(/ *-->$/, "", command); sub(/    *[^ ].*$/, "", command); sub(/ +#.*/, "", command)
                print "run " command; more = 0; next }
         /^    / && !/^ *\.\.\.$/ { print "say " $0 }' "$1"
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
        make -n --no-print-directory demo STEPS=4 | sed -n '/yard train/,$p' | tr -d '\\' | tr '\n' ' ' |
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

run_commands() { # of the page in $TMP/page: exact output to $TMP/exact, other output to $TMP/loose
    : >"$TMP/exact" && : >"$TMP/loose" && : >"$TMP/wrong"
    sed -n 's/^run //p' "$TMP/page" | while read -r command; do
        case $command in *'yard bench'*--hardware*) ;; *'yard bench'* | 'make test') continue ;; esac # they take minutes
        command=$(shorten "$command" | sed "s|0:0/2|0:0$half|g")
        out=$TMP/loose
        case $command in *--profile*) ;; *'yard plan'* | *'yard bench'*) out=$TMP/exact ;; esac
        echo "$(date +%S) $command" >>"$TMP/ran"
        eval "$command" >"$TMP/out" 2>&1 </dev/null
        code=$?
        sed "s|0:0$half|0:0/2|g" "$TMP/out" >>"$out"
        picture "$command"
        said=$(sed -n '/^yard: /{p;q;}; /^FAILED/{p;q;}' "$TMP/out" | cut -c 1-20) # a failure that the page shows
        [ $code -eq 0 ] || { [ -n "$said" ] && grep -qF "$said" "$TMP/page"; } ||
            echo "exit code $code: $command: $said" >>"$TMP/wrong"
    done
}

compare() {
    [ $same = yes ] || return
    cat src/*/*.[ch] cl/*.cl >>"$TMP/exact"
    sed -n "s|0:0$half|0:0/2|g; s/^say //p" "$TMP/page" >"$TMP/said"
    awk 'function squeeze(s) { gsub(/[ \t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
         function loosen(s,   kept) { # a number that counts tasks, records or steps of a trace stays
             while (match(s, /[-+]?[0-9][0-9.]*( (ended|matched|tasks|only in|to [0-9]+ of list|copies|tensors))?/)) {
                 word = substr(s, RSTART, RLENGTH)
                 kept = kept substr(s, 1, RSTART - 1) (word ~ / / ? word : "#")
                 s = substr(s, RSTART + RLENGTH)
             }
             return kept s }
         function found(s, lines, n, whole,   i) {
             for (i = 1; i <= n; i++)
                 if (whole ? lines[i] == s : index(lines[i], s) == 1) return 1
             return 0 }
         FNR == 1 { file++ }
         { line = squeeze($0) }
         file == 1 { exact[++n_exact] = line; next }
         file == 2 { loose[++n_loose] = loosen(line); next }
         { whole = !sub(/ ?\.\.\.$/, "", line)
           if (!found(line, exact, n_exact, whole) && !found(loosen(line), loose, n_loose, whole))
               print "not printed: " $0 }' "$TMP/exact" "$TMP/loose" "$TMP/said" >>"$TMP/wrong"
}

for page in ${PAGES:-README.md tutorials/*.md}; do
    read_page "$page" >"$TMP/page"
    grep -q '^run ' "$TMP/page" || continue
    run_commands
    echo >>"$TMP/loose" # not empty: awk counts files by their first lines
    compare
    result "$page"
done
[ -s "$TMP/alike" ] && cat "$TMP/unlike" >"$TMP/wrong" 2>/dev/null || : >"$TMP/wrong"
result 'pictures'
[ $same = yes ] || echo "ok $((number + 1)) - what they print # SKIP platform 0 is not PoCL"
echo "1..$number"
[ "$failed" -eq 0 ] && [ "$number" -gt 0 ]
