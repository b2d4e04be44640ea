# mistakes.sh - how scripts make a mistake of a user and look at what comes of it.  They read it with
# `. tests/lib/mistakes.sh`, after helpers.sh.
#
#     yard_with VARIABLES WORDS...              yard WORDS with these variables in its environment
#     in_silence WORDS...                       it succeeds, and $TMP/err is empty
#     prints 'TEXT' WORDS...                    it succeeds, and $TMP/out has that text
#     warns 'TEXT' WORDS...                     it succeeds, and $TMP/err has that text
#     save_model                                trains a model and saves it in $TMP/saved
#     train_short OPTIONS...                    a short training of the smallest model, with these options
#
# These are checks:
#
#     refuse CODE 'PART' WORDS...               yard WORDS ends with CODE, saying one sentence "yard: ..." with PART
#     refuse_with VARIABLES CODE 'PART' WORDS...
#                                               refuse CODE 'PART' WORDS, with these variables in the environment
#     refuse_train CODE 'PART' OPTIONS...       a short training of the smallest model, saved to $TMP/saved, is refused
#     refuse_train_with VARIABLES CODE 'PART' OPTIONS...
#                                               refuse_train, with these variables in the environment
#     unharmed 'MISTAKES'                       the model in $TMP/saved has come through these mistakes
#
# VARIABLES are words of `env` in one string: 'YARD_VEC=x' sets a variable, '-u HOME' removes one, '' does neither.  In
# PART, "..." stands for any words: 'device 0:0 cannot allocate ...: use a smaller model'.
# `YARD=PROGRAM refuse ...` looks at another program.
#
# $saved is the model of save_model.  A mistake may let yard hang: after $limit seconds it is ended.
saved=$TMP/saved/model.safetensors
limit=60
short_training='train --model tiny --steps 2 --sample-tokens 0 --val-batches 1'

yard_with() { # VARIABLES WORDS...
    words_of_env=$1
    shift
    # shellcheck disable=SC2086 # VARIABLES are words
    env $words_of_env "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
}

in_silence() { # WORDS...
    yard "$@" && [ ! -s "$TMP/err" ]
}

prints() { # TEXT WORDS...
    printed=$1
    shift
    yard "$@" && grep -qF -- "$printed" "$TMP/out"
}

warns() { # TEXT WORDS...
    warning=$1
    shift
    yard "$@" && grep -qF -- "$warning" "$TMP/err"
}

refuse() { # CODE PART WORDS...
    refuse_with '' "$@"
}

refuse_with() { # VARIABLES CODE PART WORDS...
    variables=$1 expected=$2 part=$3
    shift 3
    # shellcheck disable=SC2086 # VARIABLES are words
    limited env $variables "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
    echo "exit code $code, expected $expected" | cat - "$TMP/err" >"$TMP/failure"
    [ "$code" -eq "$expected" ] && says_only "$part"
    verdict $? "$* -> $expected: $part" "$TMP/failure" 30
}

limited() { # WORDS...: runs them, for $limit seconds at most where there is a program timeout
    if command -v timeout >/dev/null; then
        timeout "$limit" "$@"
    else
        "$@"
    fi
}

says_only() { # PART: beside warnings, $TMP/err is one line, which has PART
    grep -q -- "$(pattern_of "$1")" "$TMP/err" && [ "$(grep -vc '^yard: warning: ' "$TMP/err")" -eq 1 ]
}

pattern_of() { # PART: as grep takes it
    printf '%s\n' "$1" | sed 's/[]\.*^$[]/\\&/g; s/\\\.\\\.\\\./.*/g'
}

refuse_train() { # CODE PART OPTIONS...
    refuse_train_with '' "$@"
}

refuse_train_with() { # VARIABLES CODE PART OPTIONS...
    # These are no names of refuse_with(): a variable of sh belongs to the whole script, and both functions set theirs.
    in_environment=$1 ends_with=$2 says=$3
    shift 3
    # shellcheck disable=SC2086 # words
    refuse_with "$in_environment" "$ends_with" "$says" $short_training --save "$TMP/saved" "$@"
}

train_short() { # OPTIONS...
    # shellcheck disable=SC2086 # words
    yard $short_training "$@"
}

save_model() { # sets: before
    train_short --save "$TMP/saved" || return
    before=$(cksum <"$saved")
}

unharmed() { # MISTAKES
    same "the saved model is as it was after $1" "$(cksum <"$saved")" "$before"
    beside=$(ls -A "$TMP/saved" | tr '\n' ' ')
    same "nothing else lies beside the saved model after $1" "$beside" 'model.safetensors step-2 '
}
