#!/bin/sh
# installs.sh - what a first `make` installs where something is missing, and what `make demo` promises.
#
# The package manager is a script of this test.  It writes down what it is asked for, and installs nothing.
#
# To see it fail: in packages.sh, name a package of SDL2's that there is not, such as libsdl-dev; or let can_answer()
# fail at once.
. tests/lib/helpers.sh

mkdir "$TMP/bin" "$TMP/icd"
: >"$TMP/icd/some.icd"
command_of() { # NAME: a command that does what its standard input says
    {
        echo '#!/bin/sh'
        cat
    } >"$TMP/bin/$1"
    chmod +x "$TMP/bin/$1"
}
echo "echo \"\$@\" >>'$TMP/asked'" | command_of apt-get
echo 'exit 1' | command_of sdl2-config
echo 'echo 0' | command_of id

# What packages.sh says is in $TMP/err, and in $TMP/asked what the manager was asked for.
packages() { # CODE NEED...: packages.sh ends with this exit code
    code=$1
    shift
    : >"$TMP/asked"
    PATH="$TMP/bin:$PATH" OCL_ICD_VENDORS=$TMP/icd src/make/packages.sh "$@" >"$TMP/err" 2>&1 </dev/null
    [ $? -eq "$code" ]
}
packages_without_compiler() { # CODE NEED...
    CC=false packages "$@"
}

check 'where SDL2 alone is missing and cannot be had, make goes on without it' packages 0 optional window
check 'where SDL2 alone is missing, make installs it' grep -q '^install .*libsdl2-dev' "$TMP/asked"
check 'where a compiler is missing and cannot be had, make ends' packages_without_compiler 1 build optional window
check 'root without a terminal is told that the command is run, and why' \
    grep -q 'run now: you are root, and there is no terminal' "$TMP/err"
check 'SDL2 and a compiler are installed in one command' grep -q '^install .*gcc.* libsdl2-dev' "$TMP/asked"
check 'packages.sh fails where the window alone is asked for and cannot be had' packages 1 window
check 'packages.sh installs SDL2 where the window alone is asked for' grep -q '^install .*libsdl2-dev' "$TMP/asked"

# The same on a terminal, which Python makes.
packages_on_terminal() { # ANSWER CODE NEED...
    answer=$1 expected=$2
    shift 2
    : >"$TMP/asked"
    echo "$answer" | PATH="$TMP/bin:$PATH" OCL_ICD_VENDORS=$TMP/icd python3 -c '
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)' src/make/packages.sh "$@" >"$TMP/err" 2>&1
    [ $? -eq "$expected" ]
}
name='root on a terminal'
if command -v python3 >/dev/null; then
    check "$name says no, and goes on without SDL2" packages_on_terminal n 0 optional window
    check "$name is asked" grep -q 'Run this command now?' "$TMP/err"
    check "$name has said no: nothing is installed" [ ! -s "$TMP/asked" ]
    check "$name says yes, and SDL2 cannot be had" packages_on_terminal y 1 window
    check "$name has said yes: SDL2 is installed" grep -q '^install .*libsdl2-dev' "$TMP/asked"
else
    skip "$name is asked" 'there is no python3 to make a terminal'
fi

echo 'echo 1000' | command_of id
name='a user who is not root and has no terminal'
check "$name goes on without SDL2" packages 0 optional window
check "$name: nothing is installed" [ ! -s "$TMP/asked" ]
check "$name is told that it goes on without SDL2" grep -q 'going on without SDL2' "$TMP/err"
check "$name is told how to install SDL2" grep -q 'libsdl2-dev' "$TMP/err"
check "$name does not go on without a compiler" packages_without_compiler 1 build optional window
check "$name: no compiler is installed" [ ! -s "$TMP/asked" ]
check "$name is told how to install a compiler" grep -q 'gcc.* libsdl2-dev' "$TMP/err"

demo() { # LIBRARIES OF SDL2: what `make demo` would say in the end, to $TMP/said
    make -n demo SDL2="$1" 2>"$TMP/err" | grep '^echo' >"$TMP/said"
    cat "$TMP/said" >>"$TMP/err"
}
demo ''
check 'make demo promises no window where this build has none' lacks 'opens it in a window' "$TMP/said"
check 'make demo says what installs the window' grep -q 'make deps installs it' "$TMP/said"
demo -lSDL2
check 'make demo names the window where this build has one' \
    grep -q 'yard view build/demo.trace opens it in a window' "$TMP/said"
finish
