#!/bin/sh
# distro.sh RELEASE - checks that the README's two commands work on another, bare release of Debian: bookworm, trixie,
# forky or sid.
#
#     DOCKER=1     on the Debian of the Dockerfile, whose steps run in the root as a container engine would run them
#     QUICK=1      `make demo STEPS=40` alone
#
# This script copies what is committed into a minimal root.  There it does what a newcomer does in a container: it
# installs make, and types `make deps`, `make demo` and `make test`.  It needs root and debootstrap; packages come from
# MIRROR, or else from the mirror that apt uses here.  It makes the root again each time, in ROOTS (build/distro), and
# leaves it there for inspection: 2 GB.  The root sees /proc and /sys, but no /dev/pts, as in many containers.  Mounts
# and processes are in namespaces of their own, and so they end with this script, however it ends.
set -u
release=${1:?which release?}
if [ -n "${DOCKER:-}" ]; then
    release=$(sed -n 's/^FROM debian://p' Dockerfile)
fi
roots=${ROOTS:-build/distro}
root=$roots/$release    # where the release is installed
log=$roots/$release.log # what commands print
# The first address of the machine's packages:  URIs: http://deb.debian.org/debian  in a file .sources, or
# deb [signed-by=...] http://deb.debian.org/debian bookworm main  in a file .list.
mirror_of_apt() {
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*//p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -Eo -m 1 '^http[^ ]*/debian/?( |$)' | tr -d ' '
}
mirror=${MIRROR:-$(mirror_of_apt)}
mirror=${mirror:-http://deb.debian.org/debian}

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "make distro needs root and debootstrap: apt-get install debootstrap" >&2
    exit 1
fi

user=root folder=/ # who runs commands inside of the root, and where
inside() { # COMMAND: in the root, as a newcomer's shell would run it
    unshare --mount --pid --fork --kill-child tests/machines/distro_inside.sh "$root" "$user" "$folder" "$1"
}

copy() { # FROM FOLDER: what is committed of FROM goes into that folder of the root
    mkdir -p "$root$2" && git archive HEAD "$1" | tar -x -C "$root$2"
}

# No other instructions are known than those that it uses; sets: user, folder.
follow_dockerfile() { # its steps, one on each line
    while read -r instruction words; do
        case $instruction in
        '' | '#'* | FROM | CMD) ;;
        RUN) say "$words" inside "$words" || return ;;
        USER) user=$words ;;
        WORKDIR)
            folder=$words
            mkdir -p "$root$folder" || return ;;
        COPY) copy "${words%% *}" "$folder" || return ;; # to the same place below WORKDIR
        *)
            echo "distro.sh does not know the Dockerfile's $instruction" >&2
            return 1 ;;
        esac
    done <Dockerfile
}

say() { # NAME WORDS...: runs WORDS into the log, and prints a line of how that went; its exit code
    step=$1
    shift
    start=$(date +%s)
    echo "==== $step" >>"$log"
    "$@" >>"$log" 2>&1 </dev/null
    code=$?
    seconds=$(($(date +%s) - start))
    printf '%-9s %-14.14s %2d min %02d s   exit code %d   %s\n' "$release" "$step" \
        $((seconds / 60)) $((seconds % 60)) $code "$(grep -E '^[0-9]+ passed, ' "$log")"
    return $code
}

rm -rf --one-file-system "$root"
mkdir -p "$roots"
: >"$log"
say debootstrap \
    debootstrap --variant=minbase "$release" "$root" "$mirror" /usr/share/debootstrap/scripts/sid || exit 1
if [ -n "${DOCKER:-}" ]; then
    if ! follow_dockerfile; then
        tail -n 5 "$log"
        exit 1
    fi
else
    folder=/root/trainyard
    copy . "$folder"
    say 'install make' inside 'apt-get install -y --no-install-recommends make' || exit 1
    say 'make deps' inside 'make deps' || exit 1
fi
failed=0
for command in 'make demo' 'make test'; do
    if [ -n "${QUICK:-}" ]; then
        command='make demo STEPS=40'
    fi
    say "$command" inside "$command" || failed=1
    if [ -n "${QUICK:-}" ]; then
        break
    fi
done
[ $failed -eq 0 ] || grep -A 3 -e '^FAIL' -e '| not ok' -e 'rror: ' "$log"
echo "log: $log"
exit $failed
