#!/bin/sh
# installs.sh - what `make` and `make deps` install where something is missing, and what `make demo` promises.
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

name='make deps as root without a terminal'
check "$name installs a compiler and SDL2, and fails where they cannot be had" \
    packages_without_compiler 1 --install build window
check "$name says that the command is run, and why" \
    grep -q 'run now: you asked for it, and there is no terminal' "$TMP/err"
check "$name installs all in one command" grep -q '^install .*gcc.* libsdl2-dev' "$TMP/asked"
check "$name goes on without SDL2 where that is optional" packages 0 --install --optional window
check "$name has tried to install SDL2" grep -q '^install .*libsdl2-dev' "$TMP/asked"

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
if python3 -c 'import os; os.openpty()' 2>/dev/null; then
    check "$name says no, and goes on without SDL2" packages_on_terminal n 0 --optional window
    check "$name is asked" grep -q 'Run this command now?' "$TMP/err"
    check "$name has said no: nothing is installed" [ ! -s "$TMP/asked" ]
    check "$name says yes, and SDL2 cannot be had" packages_on_terminal y 1 window
    check "$name has said yes: SDL2 is installed" grep -q '^install .*libsdl2-dev' "$TMP/asked"
else
    skip "$name is asked" 'no terminal can be made: python3 or /dev/pts is missing'
fi

installs_nothing() { # NAME: of a user without a terminal, who types make
    check "$1 goes on without SDL2" packages 0 --optional window
    check "$1: nothing is installed" [ ! -s "$TMP/asked" ]
    check "$1 is told that it goes on without SDL2" grep -q 'going on without SDL2' "$TMP/err"
    check "$1 is told how to install SDL2" grep -q 'libsdl2-dev' "$TMP/err"
    check "$1 does not go on without a compiler" packages_without_compiler 1 build --optional window
    check "$1: no compiler is installed" [ ! -s "$TMP/asked" ]
    check "$1 is told what a compiler's package is" grep -q 'gcc.* libsdl2-dev' "$TMP/err"
}
installs_nothing 'root without a terminal'
check 'root without a terminal is told to type make deps' grep -q 'by make deps' "$TMP/err"

echo 'echo 1000' | command_of id
echo 'exec "$@"' | command_of sudo
installs_nothing 'a user with sudo and without a terminal'
check 'such a user is told to type make deps' grep -q 'by make deps' "$TMP/err"
name="such a user's make deps"
check "$name fails where a compiler cannot be had" packages_without_compiler 1 --install build
check "$name calls the manager through sudo" grep -q '^install .*gcc' "$TMP/asked"

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
