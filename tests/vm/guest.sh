# Runs in the machine on the host's root: sets up what was asked for, runs the command, and ends the machine. /run/vm
# is the exchange with the host: settings and command in, exit code out.
. /run/vm/settings # NICS, VIRTIO, RELEASE, MODULES (where they are), LOAD (which), SHARE
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# end FILE WORDS: tells the host, and reboots, whereupon qemu ends.
end() {
    file=$1
    shift
    echo "$*" >"/run/vm/$file"
    echo b >/proc/sysrq-trigger
}

# port NAME: the device of a port.
port() {
    for p in /sys/class/virtio-ports/*; do
        if [ "$(cat "$p/name")" = "$1" ]; then echo "/dev/${p##*/}"; fi
    done
}

ip link set lo up

# The kernel asks /sbin/modprobe for most of what it lacks, so few modules have to be named.
if [ ! -e "/lib/modules/$RELEASE" ]; then
    mkdir -p /lib/modules
    ln -s "$MODULES" "/lib/modules/$RELEASE"
fi
if [ "$VIRTIO" -gt 0 ]; then LOAD="virtio_net $LOAD"; fi
modprobe -a tun loop $LOAD 2>/run/vm/modprobe || end fault "$(cat /run/vm/modprobe)"

for n in $(seq 0 $((VIRTIO - 1))); do
    ip link set "eth$n" addrgenmode none up || end fault "eth$n can't be set up"
done
if [ "$NICS" -gt 0 ]; then
    modprobe uio_pci_generic
    for slot in $(seq 5 $((4 + NICS))); do
        address=$(printf '0000:00:%02x.0' "$slot")
        echo uio_pci_generic >"/sys/bus/pci/devices/$address/driver_override"
        echo "$address" >/sys/bus/pci/drivers/uio_pci_generic/bind || end fault "$address could not be bound"
    done
    echo 200 >/proc/sys/vm/nr_hugepages
fi
if [ -n "$SHARE" ]; then
    mkdir -p "$SHARE"
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 share "$SHARE" || end fault "$SHARE could not be mounted"
fi

# A port can be open once only, a command may open its output again: hence the pipes.
mkfifo /run/out /run/err
cat /run/out >"$(port out)" &
out=$!
cat /run/err >"$(port err)" &
err=$!
: >/run/vm/begun
while echo >/run/vm/beat; do sleep 5; done &
sh /run/vm/command </dev/null >/run/out 2>/run/err
code=$?

# What it left running may hold the pipes open: it gets a second to say something more.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 $out 2>/dev/null || kill -0 $err 2>/dev/null || break
    sleep 0.1
done
end code $code
