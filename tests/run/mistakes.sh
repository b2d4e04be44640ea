# mistakes.sh - how scripts make a mistake of a user and look at what comes of it.  They read it with
# `. tests/run/mistakes.sh`, after helpers.sh.
#
#     yard WORDS...                             runs it; what it prints is in $TMP/out and $TMP/err
#     yard_with 'NAME=VALUE...' WORDS...        the same with these variables in its environment
#     refuse CODE 'PART' WORDS...               yard WORDS ends with CODE, saying one sentence "yard: ..." with PART
#     refuse_in FOLDER CODE 'PART' WORDS...     the same in that folder
#     refuse_with 'NAME=VALUE...' CODE 'PART' WORDS...
#                                               the same with these variables in yard's environment
#     refuse_train CODE 'PART' OPTIONS...       a short training of the smallest model, saved to $TMP/saved, is refused
#     save_model, unharmed 'MISTAKES'           there is a model in $TMP/saved; it has come through these mistakes
#
# In PART, "..." stands for any words: 'device 0:0 cannot allocate ...: use a smaller model'.
# `YARD=PROGRAM refuse ...` looks at another program.
saved=$TMP/saved/model.safetensors
short='--model tiny --steps 2 --sample-tokens 0 --val-batches 1'
limit= # seconds for a run that may hang
! command -v timeout >/dev/null || limit='timeout 60'

yard() {
    "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
}

yard_with() { # sets: code
    variables=$1
    shift
    env $variables "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
}

refuse() {
    refuse_with '' "$@"
}

refuse_in() {
    cd "$1" || exit
    shift
    refuse "$@"
    cd "$OLDPWD" || exit
}

refuse_with() { # sets: code
    variables=$1 expected=$2 part=$3
    shift 3
    $limit env $variables "$YARD" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
    code=$?
    [ $code -eq "$expected" ] && grep -q -- "$(pattern_of "$part")" "$TMP/err" &&
        [ "$(grep '^yard: ' "$TMP/err" | grep -vc '^yard: warning: ')" -eq 1 ]
    result $? "$* -> $code: $part"
}

pattern_of() { # PART: as grep takes it
    printf '%s\n' "$1" | sed 's/[]\.*^$[]/\\&/g; s/\\\.\\\.\\\./.*/g'
}

refuse_train() {
    expected_code=$1 expected_part=$2
    shift 2
    refuse "$expected_code" "$expected_part" train $short --save "$TMP/saved" "$@"
}

save_model() { # sets: before
    yard train $short --save "$TMP/saved" || return
    before=$(cksum <"$saved")
}

unharmed() { # nothing of them changed it or left anything beside it
    [ "$(cksum <"$saved")" = "$before" ] && [ "$(ls -A "$TMP/saved" | tr '\n' ' ')" = 'model.safetensors step-2 ' ]
    result $? "the saved model is as it was after $1"
}
