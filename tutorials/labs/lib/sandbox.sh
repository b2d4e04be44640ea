#!/bin/sh
# sandbox.sh TREE NEW ARGUMENT... - builds a copy of TREE with the folders of NEW among its techniques, where nothing
# else can be seen or changed, and runs its program: `./yard plan ARGUMENT...`, of which stdout is that of this script.
#
#     sandbox.sh --works     exit code 0: this machine has such a place
#
#     $ tutorials/labs/lib/sandbox.sh . /tmp/new --model tiny --print-list >list.txt
#
# with a pass in /tmp/new/mine/mine.c builds this tree with src/techniques/mine/mine.c.  What make says is on stderr.
#
#     files       a new, empty file system in memory of $DISK bytes, with TREE and NEW; of the machine only /usr
#                 (compiler and libraries), /bin, /lib, three files of /etc, and null, zero and urandom of /dev
#     processes   it sees only its own (a pid namespace), and all end with the first
#     network     none, not even the loopback
#     user        root's judge: user 54321; anybody else's: the judge's user, in a user namespace, without any right
#     limits      $SECONDS_OF_ALL by the clock, $SECONDS_OF_ONE of a process's CPU, $MEMORY bytes of a process's
#                 addresses, $PROCESSES processes, $FILE bytes of a file; each can be set
#
# What is not limited is the memory of all processes together: $PROCESSES times $MEMORY.  A container can do that.
set -u
LC_ALL=C
export LC_ALL
DISK=${DISK:-512m}
SECONDS_OF_ALL=${SECONDS_OF_ALL:-300}
SECONDS_OF_ONE=${SECONDS_OF_ONE:-200}
MEMORY=${MEMORY:-4294967296}
PROCESSES=${PROCESSES:-64}
FILE=${FILE:-67108864}
export DISK SECONDS_OF_ONE MEMORY PROCESSES FILE
user=54321

# ---- outside: new namespaces, and the clock --------------------------------------------------------------------------

enter() { # TREE NEW ARGUMENT...: calls this script again, inside
    own=--map-root-user
    if [ "$(id -u)" -eq 0 ]; then
        own=
    fi
    timeout -k 1 "$SECONDS_OF_ALL" unshare $own --mount --net --ipc --uts --pid --fork --kill-child \
        setsid --wait sh "$0" --inside "$(id -u)" "$@" </dev/null
}

works() { # does nothing, inside: can that be done here?
    for program in unshare setpriv prlimit pivot_root timeout setsid; do
        command -v $program >/dev/null || return 1
    done
    empty=$(mktemp -d) || return 1
    mkdir "$empty/tree" "$empty/new"
    enter "$empty/tree" "$empty/new" --nothing >/dev/null 2>&1
    code=$?
    rm -rf "$empty"
    return $code
}

# ---- inside: files of its own ----------------------------------------------------------------------------------------

fail() { # SENTENCE
    echo "sandbox: $*" >&2
    exit 9
}

show() { # ROOT PATH: that of the machine, to be read only
    mount --rbind "$2" "$1$2" && mount -o remount,bind,ro,nosuid "$1$2" || fail "no $2"
}

make_root() { # ROOT: a file system in memory, with what is seen of the machine
    mkdir -p "$1" && mount -t tmpfs -o "size=$DISK,mode=755" box "$1" || fail 'no file system in memory'
    (cd "$1" && mkdir usr etc dev proc tmp work old) || fail 'no folders'
    show "$1" /usr
    for folder in /bin /sbin /lib /lib32 /lib64; do
        if [ -L $folder ]; then
            ln -s "$(readlink $folder)" "$1$folder"
        elif [ -d $folder ]; then
            mkdir "$1$folder"
            show "$1" $folder
        fi
    done
    for file in /dev/null /dev/zero /dev/urandom; do
        : >"$1$file"
        mount --bind $file "$1$file" || fail "no $file"
    done
    for file in /etc/alternatives /etc/ld.so.cache /etc/ld.so.conf; do
        if [ -e $file ]; then
            cp -Rp $file "$1/etc"
        fi
    done
    mount -t proc proc "$1/proc" || fail 'no /proc'
}

fill_root() { # ROOT TREE NEW
    cp -Rp "$2/." "$1/work" || fail 'no copy of the tree'
    for folder in "$3"/*; do
        if [ -d "$folder" ]; then
            cp -Rp "$folder" "$1/work/src/techniques" || fail 'no copy of the pass'
        fi
    done
}

# ---- inside: limits, and no rights -----------------------------------------------------------------------------------

run_inside() { # JUDGE'S-USER TREE NEW ARGUMENT...
    judge=$1 tree=$2 new=$3
    shift 3
    root=$new.box
    make_root "$root"
    fill_root "$root" "$tree" "$new"
    as= # who runs it: the judge's user, who has no rights here; or for root, who would have some, $user
    if [ "$judge" -eq 0 ]; then
        as="--reuid $user --regid $user --clear-groups"
        chown -R $user:$user "$root/work" "$root/tmp" || fail "no user $user"
    fi
    cd "$root" && pivot_root . old && cd / && umount -l /old && rmdir /old && cd /work ||
        fail 'the files of the machine cannot be left'
    program='make -s >&2 && exec ./yard plan "$@"'
    if [ "${1-}" = --nothing ]; then # for works()
        program=true
    fi
    # shellcheck disable=SC2086 # options of setpriv
    exec env -i PATH=/usr/bin:/bin HOME=/work TMPDIR=/tmp LC_ALL=C \
        prlimit --as="$MEMORY" --nproc="$PROCESSES" --fsize="$FILE" --cpu="$SECONDS_OF_ONE" --core=0 \
        setpriv $as --bounding-set=-all --inh-caps=-all --no-new-privs \
        sh -c "$program" sh "$@"
}

case ${1-} in
--works) works ;;
--inside)
    shift
    run_inside "$@" ;;
*) enter "$@" ;;
esac
