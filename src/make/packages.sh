#!/bin/sh
# packages.sh [install|name] NEED... - is everything there?  Names what is missing, and installs it with the system's
# package manager once somebody has said yes.
#
#     packages.sh build              what ./yard needs: a C compiler, four libraries, an OpenCL driver
#     packages.sh build tests        ... and cmocka, for the test programs
#     packages.sh patch              the program patch, for the labs and their test
#     packages.sh window             SDL2, for the window of `yard view`; without it there are pictures
#     packages.sh build optional window    what follows is installed with the rest; nothing fails without it
#     packages.sh install NEED...    is what `make deps` calls: where nobody can be asked, this word is the yes
#     packages.sh name NEED...       only names what is missing: nobody needs it yet
#     packages.sh oclgrind           the kernel checker, for `make oclgrind`
#
# A library is there when a program that includes its header links against it, wherever it came from.  What is missing
# is named, and the command that installs it is shown.  Who runs that command:
#
#     on a terminal                      this script, after a yes: as root, through sudo, or with Homebrew as yourself
#     without a terminal, install        this script, without asking
#     without a terminal, no install     nobody: the exit code is 1, and you type `make deps`
#     neither root nor with sudo         nobody: the exit code is 1, and root types the command
set -u
system=$(uname)

# need       apt (Debian, Ubuntu)                    dnf (Fedora)                      pacman (Arch)            brew
packages='
compiler     gcc,libc6-dev                           gcc,glibc-devel                   gcc                      -
opencl       ocl-icd-opencl-dev,opencl-headers       ocl-icd-devel,opencl-headers      ocl-icd,opencl-headers   -
driver       pocl-opencl-icd                         pocl                              pocl                     -
clblast      libclblast-dev                          clblast-devel                     clblast                  clblast
zlib         zlib1g-dev                              zlib-devel                        zlib                     zlib
jansson      libjansson-dev                          jansson-devel                     jansson                  jansson
sdl2         libsdl2-dev                             SDL2-devel                        sdl2                     sdl2
cmocka       libcmocka-dev                           libcmocka-devel                   cmocka                   cmocka
patch        patch                                   patch                             patch                    gpatch
oclgrind     oclgrind                                -                                 -                        -
'

links() { # HEADER LIBRARY: does a program that includes the one link against the other?
    # shellcheck disable=SC2086 # options of a compiler
    printf '#include <setjmp.h>\n#include <stdarg.h>\n#include <stdint.h>\n#include <stdio.h>\n%s\n%s\n' \
        "#include <$1>" "int main(void) { return 0; }" |
        ${CC:-cc} ${CPPFLAGS:-} -x c -o /dev/null - ${LDFLAGS:-} $2 2>/dev/null
}

has_driver() { # which announces itself by a file in one of these folders; on macOS one is part of the system
    [ "$system" = Darwin ] && [ -z "${CONDA_PREFIX:-}" ] && return 0
    [ -n "${OCL_ICD_FILENAMES:-}${OPENCL_VENDOR_PATH:-}" ] && return 0
    for icd in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd /usr/share/OpenCL/vendors/*.icd \
        "${CONDA_PREFIX:-}"/etc/OpenCL/vendors/*.icd "${OCL_ICD_VENDORS:-}"; do
        [ -f "$icd" ] && return 0
    done
    return 1
}

has() { # NEED
    case $1 in
    compiler) links stdio.h '' ;;
    opencl)
        if [ "$system" = Darwin ] && [ -z "${CONDA_PREFIX:-}" ]; then
            links OpenCL/opencl.h '-framework OpenCL'
        else
            links CL/cl.h -lOpenCL
        fi ;;
    driver) has_driver ;;
    clblast) links clblast_c.h -lclblast ;;
    zlib) links zlib.h -lz ;;
    jansson) links jansson.h -ljansson ;;
    sdl2) sdl2-config --version >/dev/null 2>&1 ;;
    cmocka) links cmocka.h -lcmocka ;;
    patch | oclgrind) command -v "$1" >/dev/null ;;
    esac
}

what_is() { # NEED: in words
    case $1 in
    compiler) echo "a C compiler" ;;
    opencl) echo "the OpenCL headers and loader" ;;
    driver) echo "an OpenCL driver (PoCL runs OpenCL on the CPU)" ;;
    sdl2) echo "SDL2, for the window of yard view" ;;
    cmocka) echo "cmocka, for make test" ;;
    patch) echo "patch, for make test and the labs" ;;
    *) echo "$1" ;;
    esac
}

list_missing() { # of $wanted.  Without a compiler libraries cannot be tried, and count as missing
    for need in $wanted; do
        has "$need" || echo "$need"
    done
}

names_in_column() { # COLUMN: the names of the packages for $missing in that column of the table
    for need in $missing; do
        echo "$packages" | awk -v need="$need" -v column="$1" '$1 == need && $column != "-" { print $column }'
    done | tr ',\n' '  ' | sed 's/ *$//'
}

list_needed() { # those of $missing without which nothing goes on
    for needed in $missing; do
        case " $optional " in
        *" $needed "*) ;;
        *) echo "$needed" ;;
        esac
    done
}

go_without() { # the end where nothing was installed: well if all that is missing is optional
    if [ -n "$(list_needed)" ]; then
        exit 1
    fi
    for need in $missing; do
        echo "going on without $(what_is "$need"); $by_hand installs it"
    done
    exit 0
}

no_package() { # WHY
    echo "$1 Please install it, then type make again; tutorials/reference-systems.md has the names that we know."
    go_without
}

# ---- what is wanted, and is it there? --------------------------------------------------------------------------------

# only_name and may_install are yes or no; by_hand is the command that installs what is missing; optional are those of
# $wanted that nothing fails without.
read_words() { # [install|name] NEED...; sets: only_name, may_install, by_hand, wanted, optional
    only_name=no
    may_install=no
    by_hand='make deps'
    wanted=
    optional=
    is_optional=no # yes behind the word `optional`
    for argument in "$@"; do
        case $argument in
        name)
            only_name=yes
            continue ;;
        install)
            may_install=yes
            continue ;;
        optional)
            is_optional=yes
            continue ;;
        build) needs='compiler opencl driver clblast zlib jansson' ;;
        window) needs=sdl2 ;;
        tests) needs=cmocka ;;
        patch) needs=$argument ;;
        oclgrind)
            needs=$argument
            by_hand='src/make/packages.sh install oclgrind' ;; # `make deps` leaves it out: one test alone needs it
        *)
            echo "packages.sh: unknown need '$argument'; known are build, window, tests, patch, oclgrind" >&2
            exit 2 ;;
        esac
        wanted="$wanted $needs"
        if [ $is_optional = yes ]; then
            optional="$optional $needs"
        fi
    done
}

name_missing() {
    for need in $missing; do
        echo "missing  $(what_is "$need"); $by_hand installs it"
    done
}

describe_missing() { # SENTENCE
    echo "$1"
    for need in $missing; do
        echo "  - $(what_is "$need")"
    done
}

# ---- the package manager ---------------------------------------------------------------------------------------------

# install is its command; names are what it calls what is missing; as_root is yes where only root may call it; update is
# what brings the lists of packages up to date, if a command of its own does.
find_manager() { # sets: install, names, as_root, update
    as_root=yes
    update=
    if command -v apt-get >/dev/null; then
        update='apt-get update' # a fresh system has no lists yet, an old one has stale ones
        install='apt-get install -y --no-install-recommends'
        names=$(names_in_column 2)
    elif command -v dnf >/dev/null; then
        install='dnf install -y'
        names=$(names_in_column 3)
    elif command -v pacman >/dev/null; then
        install='pacman -S --needed --noconfirm'
        names=$(names_in_column 4)
    elif command -v brew >/dev/null; then
        install='brew install'
        names=$(names_in_column 5)
        as_root=no
    else
        no_package "There is no package manager here that we know (apt-get, dnf, pacman, brew)."
    fi
    if [ -z "$names" ]; then
        no_package "We know no package for this system."
    fi
}

# ---- may it be called? -----------------------------------------------------------------------------------------------

can_answer() { # is there someone to say yes?
    [ -t 2 ] && (: </dev/tty) 2>/dev/null
}

# ask is yes, no or impossible; through_sudo is yes or no; how is what is said of who must install it.
choose_asking() { # sets: ask, through_sudo, how
    ask=no
    through_sudo=no
    how=
    if [ "$as_root" = yes ] && [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            ask=impossible
            how='as root, with this command'
            return
        fi
        through_sudo=yes
    fi
    if can_answer; then
        ask=yes
    elif [ $may_install = no ]; then
        ask=impossible
        how="by $by_hand, which runs this command"
    fi
}

# Shows the command, and goes on if it may be called.
show_and_ask() {
    prefix=
    if [ $through_sudo = yes ]; then
        prefix='sudo '
    fi
    shown="${update:+$prefix$update && }$prefix$install $names"
    if [ $ask = impossible ]; then
        printf 'Install it %s:\n\n    %s\n\nThen type make again.\n' "$how" "$shown"
        go_without
    fi
    printf '\n    %s\n\n' "$shown"
    if [ $ask = no ]; then
        echo "This command is run now: you asked for it, and there is no terminal to ask again."
        return
    fi
    printf 'Run this command now? [y/N] '
    read -r answer </dev/tty
    case $answer in
    [yY]*) ;;
    *)
        echo "Nothing was installed.  Type make again when it is."
        go_without ;;
    esac
}

# ---- installing ------------------------------------------------------------------------------------------------------

call_manager() { # WORDS...
    if [ $through_sudo = yes ]; then
        sudo "$@"
    else
        "$@"
    fi
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a command and its words
    if [ -n "$update" ] && ! call_manager $update; then
        echo "(going on with the package lists as they are)"
    fi
    # shellcheck disable=SC2086 # a command and its words, and names of packages
    if ! call_manager $install $names; then
        echo "The installation failed: the messages above say why."
        go_without
    fi
}

# ---- from beginning to end -------------------------------------------------------------------------------------------

read_words "$@"
missing=$(list_missing)
if [ -z "$missing" ]; then
    exit 0
fi
if [ $only_name = yes ]; then
    name_missing
    exit 0
fi
describe_missing "Trainyard needs what this system lacks:"
find_manager
choose_asking
show_and_ask
install_packages

missing=$(list_missing)
if [ -n "$missing" ]; then
    describe_missing "Installed, and yet not found:"
    go_without
fi
