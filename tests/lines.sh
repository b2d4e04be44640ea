#!/bin/sh
# lines.sh - a budget of code, which only falls: lines that are neither comment nor blank, by folder of src, by pass (all
# files whose names begin with its name), and of the tests; tokens per line, so that golf shows; options of the program.
#
# A number above its budget fails.  One below it should lower it.
set -u
LC_ALL=C
export LC_ALL
TMP=${TMP:-$(mktemp -d)}

cat >"$TMP/budget" <<'END'
options              94
pass/broadcast      330
pass/fetch           31
pass/gather         233
pass/local          283
pass/overlap        375
pass/pass           248
pass/phases          36
pass/recompute      152
pass/snapshot       240
pass/swap           400
src               24698 10.8
src/base           1419
src/board           201
src/cmd            2311
src/device         1136
src/file            940
src/main             66
src/mesh            228
src/model          1991
src/pass           2328
src/plan            218
src/predict        1031
src/proof           553
src/run            1266
src/state          1776
src/step           2487
src/trace          1504
src/train          3142
src/view           2101
tests             17185
END

count() { # FILE...: "FILE LINES TOKENS" each; what is in quotes is one token, as is a run of operators
    awk 'function put() { if (file) print file, lines, tokens; lines = tokens = 0 }
         FNR == 1 { put(); file = FILENAME; inside = 0 }
         { gsub(/"([^"\\]|\\.)*"/, "\"\""); code = ""
           while ($0 != "")
               if (inside) { i = index($0, "*/"); $0 = i ? substr($0, i + 2) : ""; inside = !i }
               else { i = index($0, "/*"); code = code (i ? substr($0, 1, i - 1) : $0)
                      $0 = i ? substr($0, i + 2) : ""; inside = i > 0 }
           sub(/\/\/.*/, "", code)
           n = gsub(/[A-Za-z_0-9.]+|""|[-+*\/%&|^<>=!~?:]+|[^ \t]/, "x", code)
           tokens += n; lines += n > 0 }
         END { put() }' "$@"
}

{
    count src/*.c src/*/*.[ch] | sed 's|^src/||' | awk '
        { n = split($1, part, "/"); room = n > 1 ? part[1] : "main"
          lines["src"] += $2; tokens["src"] += $3; lines["src/" room] += $2; tokens["src/" room] += $3 }
        part[1] == "pass" { sub(/[_.].*/, "", part[2]); lines["pass/" part[2]] += $2; tokens["pass/" part[2]] += $3 }
        END { for (name in lines) print name, lines[name], tokens[name] / lines[name] }'
    count tests/*.[ch] | awk '{ lines += $2; tokens += $3 } END { print "tests", lines, tokens / lines }'
    echo options "$(grep -ohE '^ *\{"[a-z0-9-]+", [^.].*OPT_' src/*/*.c | sed 's/", .*//' | sort -u | awk 'END { print NR }')"
} | sort >"$TMP/counted"

awk 'FILENAME == ARGV[1] { budget[$1] = $2; golf[$1] = $3; next }
     { bad = !($1 in budget) || $2 > budget[$1] || (golf[$1] && $3 > golf[$1]); wrong += bad
       text = $1 in budget ? "budget " budget[$1] : "no budget"
       if ($3) text = text sprintf(", %.2f tokens per line", $3) (golf[$1] ? ", at most " golf[$1] : "")
       printf "%s %d - %-16s %6d, %s\n", bad ? "not ok" : "ok", FNR, $1, $2, text }
     END { print "1.." FNR; exit wrong > 0 }' "$TMP/budget" "$TMP/counted"
