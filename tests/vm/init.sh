#!/bin/busybox sh
# Runs first in the machine, from its initramfs: lays a file system that forgets over the host's root, mounts what a
# system has, and goes on with guest.sh on it. Where something fails it ends, and the kernel panics: the console tells.
set -e
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module"; done

# Nothing of the host's changes while the machine runs, as far as it cares: it may keep what it has read.
p9=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o ro,cache=loose,$p9 root /host
mount -t tmpfs -o size=90% rw /rw
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work root /new
mount -t tmpfs run /new/run
mkdir /new/run/vm
mount -t 9p -o $p9 exchange /new/run/vm

mkdir /dev/pts /dev/shm /dev/hugepages
mount -t devpts -o mode=620,ptmxmode=666 pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t hugetlbfs huge /dev/hugepages
mount -t bpf bpf /sys/fs/bpf
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
for dir in proc sys dev; do mount --move /$dir /new/$dir; done
exec switch_root /new /bin/sh /run/vm/guest.sh
