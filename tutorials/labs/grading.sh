# grading.sh - gives points for a lab's parts, and says why not.  lab.sh reads it.
#
# A lab's grader, the file grade, is shell that is read in the student's tree.  It begins a part, says no() for each
# thing that is wrong there, and begins the next one:
#
#     part 2 "the peak"                              the peak: FAIL (0.1s)
#     reference plan --list "$TMP/list" --json           answers.txt: peak_bytes = 7 is not so
#     answer peak_bytes                              a number for each line of predictions.txt: OK (0.0s)
#     [ "$given" = 4096 ] ||                         Score: 1/3
#         no "answers.txt: peak_bytes = $given is not so"
#
# It has these functions:
#
#     part POINTS TITLE          begins a part; its points are those that its README promises
#     no WHY                     the part gets no points; the first reason counts
#     same WHAT GOT EXPECTED     no, unless the two are the same text
#     student WORDS...           runs the student's program: its output is in $TMP/out and $TMP/err
#     must_run WORDS...          the same; no, if it fails
#     reference WORDS...         runs the tree's own program: $TMP/reference.out and $TMP/reference.err
#     answer NAME                what answers.txt says of it, in $given; no, if it says nothing
#     draw LOW HIGH              a whole number, in $drawn, which follows from the seed
#     all_values FILE NAME       the values of a field of JSON, on one line; json.sh has json_values and json_value
#
# and the variables $YARD, the student's program; $REFERENCE, the tree's; $TOP, the tree; $TMP, a folder of its own; and
# $wrong, the first reason of this part, empty while nothing is wrong.
#
# Variables of the part that is graded: points, title, began (when), wrong.  Of all parts so far: parts (how many),
# score, most (what the score could be), lost (the numbers of those without points); and json and tests, what becomes of
# them in the line for autograders.

# ---- for graders ----------------------------------------------------------------------------------------------------

part() { # POINTS TITLE: begins a part; sets: points, title, began, wrong, parts, most
    end_part
    points=$1
    title=$2
    began=$(now)
    wrong=
    parts=$((parts + 1))
    most=$((most + points))
}

now() { # in ns; where date knows only seconds, it leaves the N
    date +%s%N | sed 's/N$/000000000/'
}

end_part() { # sets: lost, score, json, title
    [ -n "${title-}" ] || return 0
    took=$(awk -v a="$began" -v b="$(now)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
    if [ -z "$wrong" ]; then
        got=$points
        echo "$title: OK (${took}s)"
    else
        got=0
        lost="$lost $parts"
        echo "$title: FAIL (${took}s)"
        echo "$wrong" | sed 's/^/    /'
    fi
    score=$((score + got))
    json="$json${json:+, }\"$title\": $got"
    test_of "$title" "$got" "$points" "$wrong"
    title=
}

test_of() { # TITLE GOT OF WHY: adds to the list of Gradescope's results.json; sets: tests
    tests="$tests${tests:+, }{\"name\": $(quoted "$1"), \"score\": $2, \"max_score\": $3, \"output\": $(quoted "$4")}"
}

# A string of JSON: a "b" becomes "a \"b\"", and a line's end \n.  Other control characters, which JSON cannot have,
# become question marks.
quoted() { # TEXT
    printf '%s\n' "$1" | tr '\001-\010\013-\037' '[?*]' | tr -d '\177' | awk '
        {
            gsub(/\\/, "&&")
            gsub(/"/, "\\\"")
            gsub(/\t/, "\\t")
            text = text (NR > 1 ? "\\n" : "") $0
        }
        END { printf "\"%s\"", text }'
}

no() { # WHY: the part gets no points; the first reason counts; sets: wrong
    [ -n "$wrong" ] || wrong=$*
}

same() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || no "$1:
got      $2
expected $3"
}

# The output is in $TMP/out and $TMP/err; sets: code, which is returned too.
student() { # ARGUMENTS...: runs the student's program
    timeout -k 1 "$LIMIT" "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
    case $code in
    124 | 137) no "yard $*: did not end within $LIMIT s" ;; # timeout's own, and that of a program it had to kill
    esac
    [ $code -lt 128 ] || [ $code -eq 137 ] || no "yard $*: ended by signal $((code - 128)): $(head -n 1 "$TMP/err")"
    return $code
}

must_run() { # the same, where it is wrong to fail
    student "$@" || no "yard $*: exit code $code: $(cat "$TMP/err" "$TMP/out" | grep -E -m 3 '^yard: |error:|^FAILED')"
}

reference() { # ARGUMENTS...: the tree's own program
    (cd "$TOP" && "$REFERENCE" "$@" >"$TMP/reference.out" 2>"$TMP/reference.err" </dev/null)
}

all_values() { # FILE NAME: of JSON, on one line
    json_values "$1" "$2" | paste -s -d ' '
}

# The line "peak_bytes = 4096   # I counted" gives 4096.
answer() { # NAME: what answers.txt of the student's tree says; sets: given
    given=$(sed -n "s/^ *$1 *=\([^#]*\).*/\1/p" answers.txt 2>/dev/null | head -n 1 | tr -d ' \t\r')
    [ -n "$given" ] || no "answers.txt: $1 is empty"
}

begin_draws() { # SEED: the numbers that follow are those of this seed; sets: state
    state=$(($1 * 7919 + 17))
}

draw() { # LOW HIGH: a whole number, the next one of Park and Miller (1988); sets: drawn, state
    state=$((state * 16807 % 2147483647))
    drawn=$(($1 + state % ($2 - $1 + 1)))
}

# ---- a grade ---------------------------------------------------------------------------------------------------------

begin_scores() { # sets: score, most, parts, lost, json, tests, title
    score=0
    most=0
    parts=0
    lost=
    json=
    tests=
    title=
}

result=$TMP/result # the file that a grader leaves when it has come to its end: score, most and lost

grade() { # LAB TREE; sets: score, most, lost, YARD, REFERENCE
    begin_scores
    begin_draws "$SEED"
    YARD=$2/yard
    REFERENCE=$TOP/yard
    reference devices || die "OpenCL fails on this machine (it needs /proc and /sys): $(head -n 1 "$TMP/reference.err")"
    if build "$2"; then
        run_grader "$1" "$2"
    else
        echo "build: FAIL"
        sed 's/^/    /' "$TMP/make" | grep -m 3 'error:' || tail -n 3 "$TMP/make"
        all_lost "$1" "your copy does not build: $(cat "$TMP/make")"
        give_result
    fi
}

run_grader() { # LAB TREE, which is built; sets: score, most, lost
    rm -f "$result"
    rm -rf "$TMP/grader"
    mkdir "$TMP/grader"
    ( # the grader's variables and files stay its own
        cd "$2" || exit 2
        TMP=$TMP/grader
        . "$1/grade"
        grade_predictions "$1"
        end_part
        give_result
    )
    [ -f "$result" ] || die "the grader of ${1##*/} has ended before its end"
    . "$result"
}

all_lost() { # LAB WHY: no part gets points; sets: points, parts, most, lost, json, title
    parts_of "$1" >"$TMP/parts"
    while read -r points title; do
        parts=$((parts + 1))
        most=$((most + points))
        lost="$lost $parts"
        json="$json${json:+, }\"$title\": 0"
        test_of "$title" 0 "$points" "$2"
    done <"$TMP/parts"
    title=
}

# The grader's line  part 2 "the peak"  gives  2 the peak.
parts_of() { # LAB: a line for each part, with its points and title
    sed -n 's/^part \([0-9]*\) "\([^"]*\)".*/\1 \2/p' "$1/grade"
    echo "1 $PREDICTED"
}

give_result() {
    echo "Score: $score/$most"
    case ${JSON-} in
    '') ;;
    autolab) printf '%s\n' "{\"scores\": {$json}}" ;;
    gradescope) printf '%s\n' "{\"score\": $score, \"tests\": [$tests]}" ;;
    *) printf '%s\n' "{\"scores\": {$json}, \"score\": $score, \"of\": $most}" ;;
    esac
    echo "score=$score most=$most lost='$lost'" >"$result"
}
