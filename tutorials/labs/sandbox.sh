#!/bin/sh
# sandbox.sh TREE NEW ARGUMENT... - builds a copy of TREE with the folders of NEW among its techniques, where nothing
# else can be seen or changed, and runs its program: `./yard plan ARGUMENT...`, of which stdout is that of this script.
#
#     sandbox.sh --works     exit code 0: this machine has such a place
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

enter() { # WORDS...: this script again, inside
    own=--map-root-user
    if [ "$(id -u)" -eq 0 ]; then
        own=
    fi
    timeout -k 1 "$SECONDS_OF_ALL" unshare $own --mount --net --ipc --uts --pid --fork --kill-child \
        setsid --wait sh "$0" --inside "$(id -u)" "$@" </dev/null
}

case ${1-} in
--inside) judge=$2 ;;
--works)
    for program in unshare setpriv prlimit pivot_root timeout setsid; do
        command -v $program >/dev/null || exit 1
    done
    empty=$(mktemp -d) || exit 1
    mkdir "$empty/tree" "$empty/new"
    enter "$empty/tree" "$empty/new" --nothing >/dev/null 2>&1
    works=$?
    rm -rf "$empty"
    exit $works
    ;;
*)
    enter "$@"
    exit
    ;;
esac

# ---- inside: files of its own, then limits, and no rights ------------------------------------------------------------

tree=$3 new=$4
shift 4
root=$new.box
fail() { echo "sandbox: $*" >&2; exit 9; }
show() { # PATH: that of the machine, to be read only
    mount --rbind "$1" "$root$1" && mount -o remount,bind,ro,nosuid "$root$1" || fail "no $1"
}

mkdir -p "$root" && mount -t tmpfs -o "size=$DISK,mode=755" box "$root" || fail 'no file system in memory'
(cd "$root" && mkdir usr etc dev proc tmp work old) || fail 'no folders'
show /usr
for folder in /bin /sbin /lib /lib32 /lib64; do
    if [ -L $folder ]; then
        ln -s "$(readlink $folder)" "$root$folder"
    elif [ -d $folder ]; then
        mkdir "$root$folder"
        show $folder
    fi
done
for file in /dev/null /dev/zero /dev/urandom; do
    : >"$root$file"
    mount --bind $file "$root$file" || fail "no $file"
done
for file in /etc/alternatives /etc/ld.so.cache /etc/ld.so.conf; do
    if [ -e $file ]; then
        cp -Rp $file "$root/etc"
    fi
done
cp -Rp "$tree/." "$root/work" || fail 'no copy of the tree'
for folder in "$new"/*; do
    [ ! -d "$folder" ] || cp -Rp "$folder" "$root/work/src/techniques" || fail 'no copy of the pass'
done
mount -t proc proc "$root/proc" || fail 'no /proc'
as=
if [ "$judge" -eq 0 ]; then
    as="--reuid $user --regid $user --clear-groups"
    chown -R $user:$user "$root/work" "$root/tmp" || fail "no user $user"
fi
cd "$root" && pivot_root . old && cd / && umount -l /old && rmdir /old && cd /work ||
    fail 'the files of the machine cannot be left'
if [ "${1-}" = --nothing ]; then
    set -- --help
fi

exec env -i PATH=/usr/bin:/bin HOME=/work TMPDIR=/tmp LC_ALL=C \
    prlimit --as="$MEMORY" --nproc="$PROCESSES" --fsize="$FILE" --cpu="$SECONDS_OF_ONE" --core=0 \
    setpriv $as --bounding-set=-all --inh-caps=-all --no-new-privs \
    sh -c '[ "$1" != --help ] || exit 0
        make -s >&2 && exec ./yard plan "$@"' sh "$@"
