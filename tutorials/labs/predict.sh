# predict.sh - what lab.sh asks before it shows any numbers, and the report that is handed in.
#
# A lab's file predict is shell.  It draws the student's own numbers by draw(), so they follow from the seed, and then
# it has, for each question,
#
#     ask NAME FUNCTION QUESTION     FUNCTION student, and FUNCTION reference, print the number that was asked for
#     measure NAME FUNCTION QUESTION FUNCTION student prints a number of a real run
#     picture FUNCTION               FUNCTION FILE writes the trace that the report shows
#
# given(), if it has one, prints a list for the student: predict.txt of the copy.  $PERSONAL is the seed.  For example:
#
#     draw 2 5
#     layers=$drawn
#     first_loss() { run_of loss --model tiny --layers "$layers" --steps 1 --seed "$PERSONAL"; }
#     measure loss first_loss "What is the first loss of --model tiny --layers $layers?"
#
# predictions.txt of the copy has a line `seed = S`, and a line `NAME =` for each question, which the student fills.
# A blank line loses the point for predicting.  Whether a number is right does not matter.

PREDICTED="a number for each line of predictions.txt" # the last part of every lab

value() { # student|reference FIELD ARGUMENTS...: a number of what the program prints with --json
    who=$1 name=$2
    shift 2
    case $who in
    student) student "$@" --json && json_value "$TMP/out" "$name" ;;
    reference) reference "$@" --json && json_value "$TMP/reference.out" "$name" ;;
    esac
}

run_of() { # FIELD ARGUMENTS...: of a real run of the student's program; of ms the median, of others the last
    name=$1
    shift
    rm -f "$TMP/log"
    student train "$@" --sample-tokens 0 --log "$TMP/log" || return
    json_values "$TMP/log" "$name" >"$TMP/values"
    if [ "$name" = ms ]; then
        sort -g "$TMP/values" | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
    else
        tail -n 1 "$TMP/values"
    fi
}

ratio() { # A B: A divided by B
    awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { if (b > 0) printf "%.3f", a / b }'
}

start_trace() { # FILE ARGUMENTS...: of `yard plan`
    file=$1
    shift
    student plan "$@" --simulate --trace "$file"
}

# What ask() and measure() do depends on $asking: questions are printed, or a row of the report is.
ask() { question simulated "$@"; }
measure() { question measured "$@"; }

question() { # simulated|measured NAME FUNCTION QUESTION
    if [ "$asking" = blanks ]; then
        printf '\n# %s (%s)\n' "$4" "$1"
        echo "$2 ="
        return
    fi
    theirs=
    mine=$(six_digits "$("$3" student)")
    [ "$1" = measured ] || theirs=$(six_digits "$("$3" reference)")
    measured=
    [ "$1" = simulated ] || { measured=$mine; mine=; }
    printf '<tr><td>%s<td>%s<td>%s<td>%s<td>%s\n' "$(html "$4")" "$(html "$(predicted_for "$2")")" \
        "$(html "$mine")" "$(html "$theirs")" "$(html "$measured")"
}

six_digits() { # NUMBER, or nothing where the program has failed
    if [ -n "$1" ]; then
        awk -v x="$1" 'BEGIN { printf (x == int(x) ? "%d" : "%.6g"), x }'
    fi
}

picture() { [ "$asking" = blanks ] || "$1" "$TMP/trace"; }

html() { # TEXT
    printf '%s\n' "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'
}

# The line "period_ms = 7.5   # I counted" gives 7.5.
predicted_for() { # NAME: what the student has filled in
    sed -n "s/^$1 *=\([^#]*\).*/\1/p" predictions.txt 2>/dev/null | head -n 1 | tr -d '\r' | sed 's/^ *//; s/ *$//'
}

given() { :; } # no list, where a lab's file does not say otherwise

# The lab's file predict calls ask() and measure(), each of which prints by $asking.
go_through() { # LAB blanks|rows SEED: prints blanks of predictions.txt or rows of the report; sets: asking, PERSONAL
    asking=$2
    PERSONAL=$3
    begin_draws "$PERSONAL"
    . "$1/predict"
}

write_blanks() { # LAB TREE: predictions.txt, and predict.txt where there is a list to look at
    REFERENCE=$TOP/yard
    (
        go_through "$1" blanks "$SEED" >"$TMP/blanks"
        {
            echo "# Fill in a number after each =, before you run anything.  A wrong number costs nothing."
            echo "# Leave the seed as it is."
            echo "seed = $SEED"
            cat "$TMP/blanks"
        } >"$2/predictions.txt"
        given >"$2/predict.txt"
        [ -s "$2/predict.txt" ] || rm "$2/predict.txt"
    )
}

ask_on_terminal() { # TREE: where there is a terminal, each blank is asked for; an empty answer leaves it
    [ -t 0 ] || return 0
    cp "$1/predictions.txt" "$TMP/unfilled"
    while IFS= read -r line <&3; do
        case $line in
        '# '*) echo "${line#\# }" >/dev/tty ;;
        *' =')
            printf '    %s ' "$line" >/dev/tty
            read -r number || number=
            line="$line $number"
            ;;
        esac
        printf '%s\n' "$line"
    done 3<"$TMP/unfilled" >"$1/predictions.txt"
}

# The blanks are the lines "NAME =" that go_through() prints.  Only a number counts as an answer: "no idea" is none.
blanks_of() { # LAB: the names of predictions.txt that have no number, on one line; all of them without the file
    (go_through "$1" blanks 1) | sed -n 's/^\([a-z_0-9]*\) =$/\1/p' | while read -r name; do
        predicted_for "$name" | grep -Eq '^[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?$' || echo "$name"
    done | paste -s -d ' '
}

grade_predictions() { # LAB: in the student's copy
    part 1 "$PREDICTED"
    blanks=$(blanks_of "$1")
    if [ -n "$blanks" ]; then
        no "predictions.txt has no number for: $blanks.  Write your guess there, right or wrong"
    fi
}

fill_blanks() { # TREE: for `check`, which proves the other parts
    sed 's/ =$/ = 1/' "$1/predictions.txt" >"$TMP/filled" && cp "$TMP/filled" "$1/predictions.txt"
}

sources_of() { # TREE: a number that any change of its sources changes
    (cd "$1" && find Makefile cl src data/gallery -type f | sort | while read -r file; do cat "$file"; done) |
        cksum | tr ' ' '-'
}

version_of() { # TREE: its commit, where git knows one
    commit=$(cd "$1" && [ -e .git ] && git rev-parse --short HEAD 2>/dev/null)
    changes=
    if [ -n "$commit" ] && ! (cd "$1" && git diff --quiet HEAD); then
        changes=' with changes'
    fi
    echo "${commit:+commit $commit$changes, }sources $(sources_of "$1")"
}

# ---- the report -----------------------------------------------------------------------------------------------------

must_be_filled() { # LAB, in the student's copy: ends where predictions.txt lacks a number, or its seed
    blanks=$(blanks_of "$1")
    if [ -n "$blanks" ]; then
        die "predict first: $PWD/predictions.txt has no number for: $blanks"
    fi
    case $(predicted_for seed) in
    '' | *[!0-9]*) die "$PWD/predictions.txt has lost its line 'seed = NUMBER'" ;;
    esac
}

draw_picture() { # of the trace that picture() has written, to $TMP/picture.png; none where there is no trace
    rm -f "$TMP/picture.png"
    if [ -s "$TMP/trace" ]; then
        reference view "$TMP/trace" --png "$TMP/picture.png" --size 1200
    fi
}

report_page() { # LAB TREE SECONDS: prints the page, with $TMP/rows, $TMP/picture.png and $TMP/grade
    echo '<!doctype html><meta charset="utf-8">'
    echo '<style>body { font: 11pt sans-serif; max-width: 60em; margin: 1em auto } img { width: 100% }'
    echo 'td, th { border: 1px solid #999; padding: 2px 6px; text-align: left } table { border-collapse: collapse }'
    echo '</style>'
    echo "<title>Report of lab ${1##*/}</title><h1>$(sed -n '1s/^# //p' "$1/README.md")</h1>"
    echo "<p>Seed $SEED. $(date -u '+%Y-%m-%d %H:%M:%S') UTC; the runs took $3 s.<br>"
    echo "Your program: $(version_of "$2").<br>The project's: $(version_of "$TOP").</p>"
    echo "<table><tr><th>question<th>predicted<th>simulated by your program<th>by the project's<th>measured"
    cat "$TMP/rows"
    echo '</table>'
    if [ -s "$TMP/picture.png" ]; then
        printf '<p><img alt="trace of your program" src="data:image/png;base64,'
        base64 <"$TMP/picture.png" | tr -d '\n'
        echo '">'
    fi
    echo "<pre>$(html "$(cat "$TMP/grade")")</pre>"
}

# lab.sh calls it in a shell of its own: it goes to the student's copy, and takes the seed there.
report() { # LAB TREE FILE: FILE becomes the report
    YARD=$2/yard
    REFERENCE=$TOP/yard
    cd "$2" || exit 2
    must_be_filled "$1"
    build "$2" || die "your copy does not build: $(grep -m 1 'error' "$TMP/make")"
    SEED=$(predicted_for seed)
    begun=$(date +%s)
    (
        go_through "$1" blanks "$SEED" >/dev/null
        given
    ) >"$TMP/predict.txt"
    mkdir -p build
    cp "$TMP/predict.txt" build/predict.txt # for the picture, whose title is this path
    grade "$1" "$2" >"$TMP/grade"
    (go_through "$1" rows "$SEED") >"$TMP/rows"
    draw_picture
    report_page "$1" "$2" $(($(date +%s) - begun)) >"$3"
}
