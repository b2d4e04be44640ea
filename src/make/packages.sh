#!/bin/sh
# packages.sh [--install|--name] NEED... [--optional NEED...] - is everything there?  It names what is missing, and
# installs that with the system's package manager once somebody has said yes.
#
#     packages.sh build              what ./yard needs: a C compiler, four libraries, an OpenCL driver
#     packages.sh build tests        ... and cmocka, for the test programs
#     packages.sh patch              the program patch, for the labs and their test
#     packages.sh window             SDL2, for the window of `yard view`; without it there are pictures
#     packages.sh oclgrind           the kernel checker, for `make oclgrind`
#
#     --optional NEED...             these are installed with the rest; nothing fails without them
#     --install                      is what `make deps` gives: where nobody can be asked, it is the yes
#     --name                         only names what is missing: nobody needs it yet
#
# A library is there when a program that includes its header links against it, wherever it came from.  What is missing
# is named, and the command that installs it is shown.  Who runs that command:
#
#     on a terminal                      this script, after a yes: as root, through sudo, or with Homebrew as yourself
#     without a terminal, --install      this script, without asking
#     without a terminal, no --install   nobody: the exit code is 1, and you type `make deps`
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

list_missing() { # NEED...: those of them.  Without a compiler libraries cannot be tried, and count as missing
    for wanted in "$@"; do
        has "$wanted" || echo "$wanted"
    done
}

names_in_column() { # COLUMN: the names of the packages for $missing in that column of the table
    for need in $missing; do
        echo "$packages" | awk -v need="$need" -v column="$1" '$1 == need && $column != "-" { print $column }'
    done | tr ',\n' '  ' | sed 's/ *$//'
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

end_without() { # the end where nothing was installed: well if all that is missing is optional
    # shellcheck disable=SC2086 # needs
    if [ -n "$(list_missing $required)" ]; then
        exit 1
    fi
    for need in $missing; do
        echo "going on without $(what_is "$need"); $by_hand installs it"
    done
    exit 0
}

no_package() { # WHY
    echo "$1 Please install it, then type make again; tutorials/reference-systems.md has the names that we know."
    end_without
}

# ---- what is wanted? -------------------------------------------------------------------------------------------------

mode=ask            # or install or name, as the options say
by_hand='make deps' # what installs it all
required=           # needs without which nothing goes on
optional=           # needs that nothing fails without

add_needs() { # NEED...; sets: required, or optional if $after_optional is yes
    if [ "$after_optional" = yes ]; then
        optional="$optional $*"
    else
        required="$required $*"
    fi
}

after_optional=no
for word; do
    case $word in
    --install) mode=install ;;
    --name) mode=name ;;
    --optional) after_optional=yes ;;
    build) add_needs compiler opencl driver clblast zlib jansson ;;
    window) add_needs sdl2 ;;
    tests) add_needs cmocka ;;
    patch) add_needs patch ;;
    oclgrind)
        add_needs oclgrind
        by_hand='src/make/packages.sh --install oclgrind' ;; # `make deps` leaves it out: one test alone needs it
    *)
        echo "packages.sh: unknown need '$word'; known are build, window, tests, patch, oclgrind" >&2
        exit 2 ;;
    esac
done

# ---- is it there? ----------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # needs
missing=$(list_missing $required $optional)
if [ -z "$missing" ]; then
    exit 0
fi
if [ $mode = name ]; then
    name_missing
    exit 0
fi
describe_missing "Trainyard needs what this system lacks:"

# ---- which command installs it? --------------------------------------------------------------------------------------

sudo='sudo ' # before each command; "" where no other user is needed
if [ "$(id -u)" -eq 0 ]; then
    sudo=
fi
update= # the command that brings the lists of packages up to date, if the manager wants one of its own
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
    sudo=
else
    no_package "There is no package manager here that we know (apt-get, dnf, pacman, brew)."
fi
if [ -z "$names" ]; then
    no_package "We know no package for this system."
fi

# ---- may it be called? -----------------------------------------------------------------------------------------------

whole_command() { # SUDO: all that is called, on one line
    echo "${update:+$1$update && }$1$install $names"
}

can_answer() { # is there someone to say yes?
    [ -t 2 ] && (: </dev/tty) 2>/dev/null
}

leave_to_user() { # HOW COMMAND
    printf 'Install it %s:\n\n    %s\n\nThen type make again.\n' "$1" "$2"
    end_without
}

ask_user() { # goes on after a yes
    printf 'Run this command now? [y/N] '
    read -r answer </dev/tty
    case $answer in
    [yY]*) ;;
    *)
        echo "Nothing was installed.  Type make again when it is."
        end_without ;;
    esac
}

if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
    leave_to_user 'as root, with this command' "$(whole_command '')"
fi
if [ $mode != install ] && ! can_answer; then
    leave_to_user "by $by_hand, which runs this command" "$(whole_command "$sudo")"
fi
printf '\n    %s\n\n' "$(whole_command "$sudo")"
if can_answer; then
    ask_user
else
    echo "This command is run now: you asked for it, and there is no terminal to ask again."
fi

# ---- installing ------------------------------------------------------------------------------------------------------

export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a command and its words
if [ -n "$update" ] && ! $sudo$update; then
    echo "(going on with the package lists as they are)"
fi
# shellcheck disable=SC2086 # a command and its words, and names of packages
if ! $sudo$install $names; then
    echo "The installation failed: the messages above say why."
    end_without
fi

# shellcheck disable=SC2086 # needs
missing=$(list_missing $required $optional)
if [ -n "$missing" ]; then
    describe_missing "Installed, and yet not found:"
    end_without
fi
