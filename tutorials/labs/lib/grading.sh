# grading.sh - gives points for a lab's parts, and says why not.  lab.sh reads it.
#
# A lab's grader, the file grade, is shell that is read in the student's tree.  It begins a part, says no() for each
# thing that is wrong there, and begins the next one:
#
#     part 2 "the peak"                              the peak: FAIL (0.1s)
#     reference plan --list "$TMP/list" --json           answers.txt: peak_bytes = 7 is not so
#     peak=$(answer peak_bytes)                      a number for each line of predictions.txt: OK (0.0s)
#     [ "$peak" = 4096 ] ||                          Score: 1/3
#         no "answers.txt: peak_bytes = $peak is not so"
#
# It has these functions:
#
#     part POINTS TITLE          begins a part; its points are those that its README promises
#     no WHY                     the part gets no points; the first reason counts
#     is_well                    succeeds while nothing is wrong with the part
#     reason                     prints the first reason, if there is one
#     must_match WHAT GOT EXPECTED
#                                no, unless the two are one text
#     must_match_fields WHAT NAME MINE ITS
#                                no, unless two files of JSON have the same values in the fields of that name
#     student WORDS...           runs the student's program: its output is in $TMP/out and $TMP/err
#     must_run WORDS...          runs it too; no, if it fails
#     reference WORDS...         runs the tree's own program: $TMP/reference.out and $TMP/reference.err
#     answer NAME                prints what the student's answers.txt says of it; no, if it says nothing
#     draw LOW HIGH              prints a whole number, which follows from the seed
#     draw_list LOW HIGH VARIABLES...
#                                prints a list of LOW to HIGH tasks that random.awk draws with these variables
#     near NUMBER EXPECTED APART succeeds if the number is at most so far from the expected one
#     no_longer MS ITS_MS PERCENT
#                                succeeds if a time is above 0, and at most so much longer than the other one
#     sum NUMBER NUMBER          prints their sum
#     minus NUMBER NUMBER        prints the first less the second
#     all_values FILE NAME       prints the values of a field of JSON, on one line; json.sh has json_values, json_value
#
# and the variables $YARD, the student's program; $REFERENCE, the tree's; $TOP, the tree; $TMP, a folder of its own;
# $part_number, which is 1 in the first part; and $code, the exit code of the student's program.
#
# no() and draw() keep what they know in files of $TMP, so they can be called in $(...) too.
#
# The record is a file with a line for each part that has ended.  It has the points that the student got, the points
# that there are, the title and the reason, with tabs between; the last two are strings of JSON:
#
#     0   2   "the peak"   "answers.txt: peak_bytes = 7 is not so"
record=$TMP/record

# ---- for graders -----------------------------------------------------------------------------------------------------

title= # of the part that is graded; empty before the first one

part() { # POINTS TITLE; sets: points, title, began, part_number
    end_part
    points=$1
    title=$2
    began=$(now)
    part_number=$(($(wc -l <"$record") + 1))
    rm -f "$TMP/why"
}

now() { # prints the time in ns; where date knows only seconds, it leaves the N
    date +%s%N | sed 's/N$/000000000/'
}

end_part() { # prints how the part has ended, if one has begun, and puts it on record; sets: title
    [ -n "$title" ] || return 0
    took=$(awk -v began="$began" -v now="$(now)" 'BEGIN { printf "%.1f", (now - began) / 1e9 }') # seconds
    if is_well; then
        echo "$title: OK (${took}s)"
        put_on_record "$points" "$points" "$title" ''
    else
        echo "$title: FAIL (${took}s)"
        reason | sed 's/^/    /'
        put_on_record 0 "$points" "$title" "$(reason)"
    fi
    title=
}

no() { # WHY
    is_well || return 0
    printf '%s\n' "$*" >"$TMP/why"
}

is_well() {
    [ ! -f "$TMP/why" ]
}

reason() {
    is_well || cat "$TMP/why"
}

must_match() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || no "$1:
got      $2
expected $3"
}

must_match_fields() { # WHAT NAME MINE ITS
    must_match "$1" "$(all_values "$3" "$2")" "$(all_values "$4" "$2")"
}

# The output is in $TMP/out and $TMP/err; sets: code, which is returned too.
student() { # WORDS...
    timeout -k 1 "$LIMIT" "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
    case $code in
    124 | 137) no "yard $*: did not end within $LIMIT s" ;; # timeout's own, and that of a program it had to kill
    esac
    if [ $code -ge 128 ] && [ $code -ne 137 ]; then
        no "yard $*: ended by signal $((code - 128)): $(first_complaint)"
    fi
    return $code
}

# The line "yard: FILE:LINE: broken invariant: CONDITION: SENTENCE" gives "FILE:LINE: SENTENCE".
first_complaint() {
    sed -n '1s/^yard: \([^ ]*:\) broken invariant: [^:]*: /\1 /; 1p' "$TMP/err"
}

must_run() { # WORDS...
    student "$@" || no "yard $*: exit code $code: $(cat "$TMP/err" "$TMP/out" | grep -E -m 3 '^yard: |error:|^FAILED')"
}

reference() { # WORDS...
    (cd "$TOP" && "$REFERENCE" "$@" >"$TMP/reference.out" 2>"$TMP/reference.err" </dev/null)
}

all_values() { # FILE NAME
    json_values "$1" "$2" | paste -s -d ' '
}

# The line "peak_bytes = 4096   # I counted" gives 4096.
answer() { # NAME
    said=$(sed -n "s/^ *$1 *=\([^#]*\).*/\1/p" answers.txt 2>/dev/null | head -n 1 | tr -d ' \t\r')
    [ -n "$said" ] || no "answers.txt: $1 is empty"
    printf '%s\n' "$said"
}

near() { # NUMBER EXPECTED APART
    [ -n "$1" ] && awk -v number="$1" -v expected="$2" -v apart="$3" '
        BEGIN {
            above = number - expected
            exit !(above <= apart && -above <= apart)
        }'
}

no_longer() { # MS ITS_MS PERCENT: a nanosecond, 1e-6 ms, may come of rounding
    awk -v ms="$1" -v its="$2" -v percent="$3" 'BEGIN { exit !(ms > 0 && ms <= its * (1 + percent / 100) + 1e-6) }'
}

sum() { # NUMBER NUMBER
    awk -v first="$1" -v second="$2" 'BEGIN { printf "%.6f\n", first + second }'
}

minus() { # NUMBER NUMBER
    awk -v first="$1" -v second="$2" 'BEGIN { printf "%.6f\n", first - second }'
}

begin_draws() { # SEED: the numbers that follow are those of this seed
    echo $(($1 * 7919 + 17)) >"$TMP/state"
}

draw() { # LOW HIGH: the next number of Park and Miller (1988)
    state=$(($(cat "$TMP/state") * 16807 % 2147483647))
    echo $state >"$TMP/state"
    echo $(($1 + state % ($2 - $1 + 1)))
}

draw_list() { # LOW HIGH VARIABLES...
    list_seed=$(draw 1 100000)
    tasks=$(draw "$1" "$2")
    shift 2
    awk -v seed="$list_seed" -v n="$tasks" "$@" -f "$LABS/lib/draw.awk" -f "$LABS/lib/random.awk"
}

# ---- a grade ---------------------------------------------------------------------------------------------------------

grade() { # LAB TREE: prints how each part has ended, and the score; sets: YARD
    : >"$record"
    YARD=$2/yard
    reference devices || die "OpenCL fails on this machine (it needs /proc and /sys): $(head -n 1 "$TMP/reference.err")"
    if build "$2"; then
        run_grader "$1" "$2"
    else
        echo "build: FAIL"
        sed 's/^/    /' "$TMP/make" | grep -m 3 'error:' || tail -n 3 "$TMP/make"
        all_lost "$1" "your copy does not build: $(cat "$TMP/make")"
    fi
    give_result
}

run_grader() { # LAB TREE, which is built
    rm -rf "$TMP/grader"
    mkdir "$TMP/grader"
    ( # the grader's variables and files stay its own
        cd "$2" || exit 2
        TMP=$TMP/grader
        begin_draws "$SEED"
        . "$1/grade"
        grade_predictions "$1"
        end_part
    )
    [ "$(wc -l <"$record")" -eq "$(parts_of "$1" | wc -l)" ] || die "the grader of ${1##*/} has ended before its end"
}

all_lost() { # LAB WHY: no part gets points
    parts_of "$1" | while read -r points title; do
        put_on_record 0 "$points" "$title" "$2"
    done
}

# The grader's line  part 2 "the peak"  gives  2 the peak.
parts_of() { # LAB: prints a line for each part, with its points and title
    sed -n 's/^part \([0-9]*\) "\([^"]*\)".*/\1 \2/p' "$1/grade"
    echo "1 $PREDICTED"
}

# ---- the record ------------------------------------------------------------------------------------------------------

put_on_record() { # GOT OF TITLE WHY
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$(quoted "$3")" "$(quoted "$4")" >>"$record"
}

quoted() { # TEXT: prints it as a string of JSON, which cannot have most control characters: they become question marks
    printf '%s\n' "$1" | tr '\001-\010\013-\037' '[?*]' | tr -d '\177' | awk -f "$LABS/lib/json_string.awk"
}

lost_parts() { # prints the numbers of the parts without points, each after a space
    awk '$1 == 0 { printf " %d", NR }' "$record"
}

score() { # prints "POINTS/MOST"
    awk '{ got += $1; most += $2 } END { printf "%d/%d\n", got, most }' "$record"
}

in_json() { # FORM: prints the record in this form
    awk -F '\t' -v form="$1" -f "$LABS/lib/results.awk" "$record"
}

give_result() { # prints the score, and with JSON= the line for autograders
    echo "Score: $(score)"
    case ${JSON-} in
    '') ;;
    autolab | gradescope) in_json "$JSON" ;;
    *) in_json plain ;;
    esac
}
