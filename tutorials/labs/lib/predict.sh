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
#     layers=$(draw 2 5)
#     first_loss() { run_of loss --model tiny --layers "$layers" --steps 1 --seed "$PERSONAL"; }
#     measure loss first_loss "What is the first loss of --model tiny --layers $layers?"
#
# predictions.txt of the copy has a line `seed = S`, and a line `NAME =` for each question, which the student fills.
# A blank line loses the point for predicting.  Whether a number is right does not matter.

PREDICTED="a number for each line of predictions.txt" # the last part of every lab

output_of() { # student|reference ARGUMENTS...: prints what the program prints; nothing where it fails
    case $1 in
    student)
        shift
        student "$@" && cat "$TMP/out" ;;
    reference)
        shift
        reference "$@" && cat "$TMP/reference.out" ;;
    esac
}

value() { # student|reference FIELD ARGUMENTS...: prints a number of what the program prints with --json
    who=$1
    field=$2
    shift 2
    output_of "$who" "$@" --json | json_value - "$field"
}

run_of() { # FIELD ARGUMENTS...: prints a number of a real run of the student's program: the last, or of ms the median
    field=$1
    shift
    rm -f "$TMP/log"
    student train "$@" --sample-tokens 0 --log "$TMP/log" || return
    json_values "$TMP/log" "$field" >"$TMP/values"
    if [ "$field" = ms ]; then
        sort -g "$TMP/values" | awk '
            { ms[NR] = $1 }
            END { if (NR) print ms[int((NR + 1) / 2)] }'
    else
        tail -n 1 "$TMP/values"
    fi
}

ratio() { # NUMBER NUMBER: prints the first divided by the second
    awk -v first="${1:-0}" -v second="${2:-0}" 'BEGIN { if (second > 0) printf "%.3f", first / second }'
}

start_trace() { # FILE ARGUMENTS...: of `yard plan`
    file=$1
    shift
    student plan "$@" --simulate --trace "$file"
}

# ---- what becomes of a file predict ----------------------------------------------------------------------------------

# It is read in a shell of its own each time, in which ask(), measure() and picture() do what is wanted of it then.
read_predict() { # LAB SEED; sets: PERSONAL
    PERSONAL=$2
    begin_draws "$PERSONAL"
    . "$1/predict"
}

given() { :; } # no list, where a lab's file does not say otherwise

print_blanks() ( # LAB SEED: prints the lines of predictions.txt that the student fills in
    ask() { print_blank "$1" "$3 (simulated)"; }
    measure() { print_blank "$1" "$3 (measured)"; }
    picture() { :; }
    read_predict "$@"
)

print_given() ( # LAB SEED: prints the list for the student, if there is one
    ask() { :; }
    measure() { :; }
    picture() { :; }
    read_predict "$@"
    given
)

print_rows() ( # LAB SEED: prints the rows of the report, and makes $TMP/trace for its picture
    ask() { print_row "$1" "$3" "$("$2" student)" "$("$2" reference)" ''; }
    measure() { print_row "$1" "$3" '' '' "$("$2" student)"; }
    picture() { "$1" "$TMP/trace"; }
    read_predict "$@"
)

print_blank() { # NAME QUESTION
    printf '\n# %s\n%s =\n' "$2" "$1"
}

print_row() { # NAME QUESTION MINE ITS MEASURED: numbers of the student's program, of the project's, and of a real run
    printf '<tr>'
    for cell in "$2" "$(predicted_for "$1")" "$(six_digits "$3")" "$(six_digits "$4")" "$(six_digits "$5")"; do
        printf '<td>%s' "$(html "$cell")"
    done
    echo
}

six_digits() { # NUMBER: prints it, or nothing where the program has failed
    if [ -n "$1" ]; then
        awk -v number="$1" 'BEGIN { printf (number == int(number) ? "%d" : "%.6g"), number }'
    fi
}

html() { # TEXT: prints it for a page
    printf '%s\n' "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'
}

# The line "period_ms = 7.5   # I counted" gives 7.5.
predicted_for() { # NAME: prints what the student has filled in
    sed -n "s/^$1 *=\([^#]*\).*/\1/p" predictions.txt 2>/dev/null | head -n 1 | tr -d '\r' | sed 's/^ *//; s/ *$//'
}

# ---- predictions.txt -------------------------------------------------------------------------------------------------

write_blanks() { # LAB TREE: makes predictions.txt there, and predict.txt where there is a list to look at
    {
        echo "# Fill in a number after each =, before you run anything.  A wrong number costs nothing."
        echo "# Leave the seed as it is."
        echo "seed = $SEED"
        print_blanks "$1" "$SEED"
    } >"$2/predictions.txt"
    print_given "$1" "$SEED" >"$2/predict.txt"
    [ -s "$2/predict.txt" ] || rm "$2/predict.txt"
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
            line="$line $number" ;;
        esac
        printf '%s\n' "$line"
    done 3<"$TMP/unfilled" >"$1/predictions.txt"
}

# The blanks are the lines "NAME =" of print_blanks().  Only a number counts as an answer: "no idea" is none.
blanks_of() { # LAB: prints the names of predictions.txt that have no number, on one line; all of them without the file
    print_blanks "$1" 1 | sed -n 's/^\([a-z_0-9]*\) =$/\1/p' | while read -r name; do
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

all_sources() { # TREE: prints them, one after another
    (cd "$1" && find Makefile cl src data/gallery -type f | sort | while read -r file; do cat "$file"; done)
}

sources_of() { # TREE: prints a number that any change of its sources changes
    all_sources "$1" | cksum | tr ' ' '-'
}

version_of() { # TREE: prints its commit, where git knows one
    commit=$(cd "$1" && [ -e .git ] && git rev-parse --short HEAD 2>/dev/null)
    changes=
    if [ -n "$commit" ] && ! (cd "$1" && git diff --quiet HEAD); then
        changes=' with changes'
    fi
    echo "${commit:+commit $commit$changes, }sources $(sources_of "$1")"
}

# ---- the report ------------------------------------------------------------------------------------------------------

must_be_filled() { # LAB, in the student's copy: ends where predictions.txt lacks a number, or its seed
    blanks=$(blanks_of "$1")
    if [ -n "$blanks" ]; then
        die "predict first: $PWD/predictions.txt has no number for: $blanks"
    fi
    case $(predicted_for seed) in
    '' | *[!0-9]*) die "$PWD/predictions.txt has lost its line 'seed = NUMBER'" ;;
    esac
}

draw_picture() { # makes $TMP/picture.png of the trace that picture() has written; none where there is no trace
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

report() ( # LAB TREE FILE: FILE becomes the report; in a shell of its own, which goes to the student's copy
    YARD=$2/yard
    cd "$2" || exit 2
    must_be_filled "$1"
    build "$2" || die "your copy does not build: $(grep -m 1 'error' "$TMP/make")"
    SEED=$(predicted_for seed)
    begun=$(date +%s)
    print_given "$1" "$SEED" >"$TMP/predict.txt"
    mkdir -p build
    cp "$TMP/predict.txt" build/predict.txt # for the picture, whose title is this path
    grade "$1" "$2" >"$TMP/grade"
    print_rows "$1" "$SEED" >"$TMP/rows"
    draw_picture
    report_page "$1" "$2" $(($(date +%s) - begun)) >"$3"
)
