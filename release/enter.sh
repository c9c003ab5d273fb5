#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# enter.sh ROOT SHM RELEASE WHEELS COMMAND: a shell command in a bare root, as an unprivileged user, without network.
# The root and the user's home are read-only; /work and /tmp can be written. SHM: "noexec" or "absent". All mounts are
# in a separate namespace and end with it; started by `unshare --mount --net --ipc --pid --fork --kill-child`.
set -euo pipefail
root=$1 shm=$2 release=$3 wheels=$4 command=$5

mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755,uid=1000,gid=1000 tmpfs "$root/work"
mount -t tmpfs -o mode=755 tmpfs "$root/wheels"
mkdir "$root/wheels/release" "$root/wheels/others"
mount --bind -o ro "$release" "$root/wheels/release"
mount --bind -o ro "$wheels" "$root/wheels/others"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
for link in "fd /proc/self/fd" "stdin /proc/self/fd/0" "stdout /proc/self/fd/1" "stderr /proc/self/fd/2"; do
	ln -s "${link#* }" "$root/dev/${link%% *}"
done
if [ "$shm" = noexec ]; then
	mkdir -m 1777 "$root/dev/shm"
	mount -t tmpfs -o mode=1777,noexec,nosuid,nodev tmpfs "$root/dev/shm"
fi
mount -t proc proc "$root/proc"
exec chroot --userspec=1000:1000 --groups= "$root" /usr/bin/env -i HOME=/home/user USER=user TERM=dumb \
	PATH=/usr/local/bin:/usr/bin:/bin /bin/sh -euc "cd /work; $command"
