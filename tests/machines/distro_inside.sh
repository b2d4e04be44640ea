#!/bin/sh
# distro_inside.sh ROOT USER FOLDER COMMAND - runs the command in a root that distro.sh has made: as that user, who is
# known there, in that folder of the root, and with no variables of ours.
#
# distro.sh starts it in namespaces of mounts and processes, so that what is mounted here ends with the command.
set -eu
root=$1 user=$2 folder=$3 command=$4
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
# The root's own sh knows the user's home.
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot --userspec="$user:" "$root" \
    sh -c "HOME=~$user; export HOME; cd $folder && $command"
