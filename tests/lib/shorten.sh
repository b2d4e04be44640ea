# shorten.sh - a command of a page that takes less time: fewer steps, no long evaluation.  pages/walk.sh reads it by
# `. tests/lib/shorten.sh`.
#
#     shorten COMMAND           prints the command that is run in its place
#
#         ./yard train --steps 200 --warmup 50    ./yard train --val-batches 1 --sample-tokens 0 --steps 4 --warmup 2
#         ./yard sample --from run                ./yard sample --from run --count 20
#         ./yard plot run.jsonl --smooth 50       ./yard plot run.jsonl --smooth 2
#         make demo                               what it would run, with 4 steps
#
#     takes_minutes COMMAND     succeeds if it does, however short it is made: then it is not run

shorten() { # COMMAND
    case $1 in
    *'yard train'*) shorten_training "$1" ;;
    *'yard sample'*) echo "$1 --count 20" ;;
    *'yard plot'*) echo "$1" | sed 's/--smooth [0-9]*/--smooth 2/' ;;
    'make demo') shorten_demo ;;
    *) echo "$1" ;;
    esac
}

shorten_training() { # COMMAND: a traced run of up to 99 steps keeps them, since pages count its records
    case $1 in
    *--trace*) long='[0-9]{3,}' ;;
    *) long='[0-9]{2,}' ;;
    esac
    echo "$1" | sed -E "s/--steps $long/--steps 4/; s/--warmup [0-9]+/--warmup 2/
        s/yard train/& --val-batches 1 --sample-tokens 0/"
}

# `make -n` prints what `make demo` would run, without running it.  From the training on, its lines become one command:
# ./yard train ... && ./yard sample ... --count 20
shorten_demo() {
    lines_of_demo | in_one_line | sed 's| ./yard| \&\& ./yard|g; s/$/ --count 20/'
}

lines_of_demo() { # from the training on, without what only speaks
    make -n --no-print-directory demo STEPS=4 | sed -n '/^echo/d; /yard train/,$p'
}

in_one_line() { # without the backslash, \134, at the end of a line that goes on in the next one
    tr -d '\134' | tr '\n' ' '
}

takes_minutes() { # COMMAND
    case $1 in
    *'yard bench'*--hardware*) return 1 ;; # it is simulated
    *'yard bench'* | 'make test') return 0 ;;
    esac
    return 1
}
