#!/bin/sh
# gdb.sh - the debugger's pages: what their transcripts show is what gdb prints.
#
# A transcript is a block that begins with "```gdb": first the command that starts gdb, then lines "(gdb) COMMAND", and
# below each lines that it prints, in their order.  Not all that it prints must be shown.  "..." at the end of a line
# stands for the rest of it.  Numbers with a decimal point, and addresses of calls, may differ.
set -u
LC_ALL=C
export LC_ALL
TMP=${TMP:-$(mktemp -d)}
PAGES=${PAGES:-$(grep -l '^```gdb' tutorials/*.md)}
number=0 failed=0

skip() { echo "ok 1 - the debugger's pages # SKIP $1"; exit 0; }
command -v gdb >/dev/null || skip "there is no gdb"
gdb -q -batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || skip "this gdb has no Python"
gdb -q -batch -ex run --args /bin/true 2>&1 | grep -q 'exited normally' || skip "gdb may not run programs here"
./yard devices | grep -q '^platform 0: Portable Computing Language' || skip "pages show PoCL's names"
make -s -j2 debug >"$TMP/make" 2>&1 || { cat "$TMP/make"; exit 1; }
mkdir -p build/kernels

for page in $PAGES; do
    # block.N: "$ COMMAND", "> COMMAND OF GDB", "= LINE"
    awk -v to="$TMP/block." '
        /^```gdb/ { on = 1; n++; file = to n; next }
        /^```/ { on = 0 }
        !on || /^ *$/ { next }
        /^gdb / { print "$ " $0 >file; next }
        /^\(gdb\) / { sub(/^\(gdb\) /, ""); print "> " $0 >file; next }
        /^ *\.\.\.$/ { next }
        { print "= " $0 >file }' "$page"
    for block in $(ls "$TMP"/block.* | sort -t . -k 2 -n); do
        sed -n 's/^> //p' "$block" | sed 's/.*/echo \\n@ &\\n\n&/' >"$TMP/script"
        start=$(sed -n 's/^\$ gdb //p' "$block")
        eval "timeout 300 gdb -q -batch -nx -iex 'add-auto-load-safe-path $(pwd)' -ex 'set pagination off' \
            -ex 'set confirm off' -ex 'set width 0' -x '$TMP/script' $start" >"$TMP/out" 2>&1 </dev/null
        awk 'function same(page, line) {
                 gsub(/-?[0-9]+\.[0-9]+(e[-+][0-9]+)?/, "#", page); gsub(/-?[0-9]+\.[0-9]+(e[-+][0-9]+)?/, "#", line)
                 sub(/0x[0-9a-f]+ in /, "", page); sub(/0x[0-9a-f]+ in /, "", line)
                 gsub(/ +/, " ", page); gsub(/ +/, " ", line); sub(/ $/, "", line)
                 if (sub(/ ?\.\.\.$/, "", page)) return index(line, page) == 1
                 return page == line }
             FNR == NR { out[++n] = $0; next }
             /^\$/ { next }
             /^>/ { want = "@ " substr($0, 3) }
             /^=/ { want = substr($0, 3) }
             { for (i = at + 1; i <= n && !same(want, out[i]); i++) ;
               if (i > n) print "not printed: " want; else at = i }' "$TMP/out" "$block" >"$TMP/wrong"
        number=$((number + 1))
        if [ -s "$TMP/wrong" ]; then
            failed=1
            echo "not ok $number - $page: $start"
            sed 's/^/#   /' "$TMP/wrong"
            sed 's/^/#   printed: /' "$TMP/out" | tail -n 60
        else
            echo "ok $number - $page: $start"
        fi
        rm "$block"
    done
done
[ $number -gt 0 ] || failed=1 # no page has a transcript
echo "1..$number"
exit $failed
