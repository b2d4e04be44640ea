# help.sh - what a program prints as its help.  Scripts read it with `. tests/lib/help.sh`, after helpers.sh.

commands() { # PROGRAM: names of its commands
    "$1" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}

# The words that other programs have for an option are left out: they are no options here.
all_help() { # PROGRAM [COMMAND...]: the help of each of its commands, and of these, such as 'trace summary'
    program_of_help=$1
    shift
    {
        commands "$program_of_help"
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } | while read -r helped; do
        # shellcheck disable=SC2086 # a command has one word or two
        "$program_of_help" $helped --help 2>/dev/null </dev/null | sed '/^Words of other programs/,$d'
    done
}
