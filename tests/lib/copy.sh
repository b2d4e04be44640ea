# copy.sh - copies of the project, for tests and labs.  Both functions are called at the project's top.
#
#     copy_files TO ITEM...     these files and folders, with their paths: tests/data goes to TO/tests/data
#     copy_build TO             what is built of them, so that a make in TO compiles only what is edited from now on

copy_files() { # TO ITEM...
    to=$1
    shift
    for item in "$@"; do
        mkdir -p "$to/$(dirname "$item")"
        cp -Rp "$item" "$to/$item"
    done
}

copy_build() { # TO
    mkdir -p "$1/build"
    for item in src embedded.c embedded.o packages flags; do
        if [ -e "build/$item" ]; then
            cp -Rp "build/$item" "$1/build"
        fi
    done
    (cd "$1" && make -s build/flags build/packages >/dev/null 2>&1)
    # One time for all, later than that of any source: an object that is older than build/flags would be compiled again.
    touch "$1/build/flags"
    find "$1/build" -type f -exec touch -r "$1/build/flags" {} +
}
