# helpers.sh - what several scripts need: to wait for something, and to put a library of their own before OpenCL's.
# They read it with `. tests/run/helpers.sh`, after report.sh.
#
#     within SECONDS COMMAND    waits until COMMAND succeeds; fails when the seconds are over, or before that when the
#                               process $child ends, if there is one
#     build_shim NAME <<'END'   $TMP/shim.so, for LD_PRELOAD, of the C that follows; where it cannot be loaded, the
#                               script ends, with NAME as what is skipped
child= # a process in the background, which the script starts

within() {
    tries=$(($1 * 100))
    until eval "$2" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        [ -z "$child" ] || kill -0 "$child" 2>/dev/null || return 1
        sleep 0.01
    done
}

build_shim() {
    # A sanitizer's runtime must be the first library: then the program does not start with this one before it.
    ${CC:-cc} -shared -fPIC -x c -o "$TMP/shim.so" - -ldl 2>"$TMP/err" &&
        LD_PRELOAD=$TMP/shim.so "$YARD" --version >"$TMP/out" 2>"$TMP/err" && return
    skip_all "$1" "a library cannot be put before OpenCL's: $(head -n 1 "$TMP/err")"
}
