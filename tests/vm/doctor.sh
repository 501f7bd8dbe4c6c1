# doctor.sh DAQIRI-RUN: makes the machine wrong, has doctor look at it as a user without rights, runs each command that it gives, and
# has it look again. What it found both times is printed, as JSON; doctor_test.go compares.
program=$1
work=$(mktemp -d) && cd "$work" && chmod 777 "$work"
cp "$program" daqiri-run # the user must reach it
printf '#!/bin/sh\nexec "$@"\n' >sudo && chmod +x sudo
PATH=$work:$PATH
cat >x.yaml <<'END'
daqiri:
  cfg:
    version: 1
    stream_type: mixed
    master_core: 0
    memory_regions:
    - {name: packets, kind: huge, affinity: 0, num_bufs: 256, buf_size: 9000}
    interfaces:
    - name: wire
      address: eth0
      engine: packet
      rx:
        queues:
        - {name: rx, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
      tx:
        queues:
        - {name: tx, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [packets]}
    - name: pinned
      address: eth1
      engine: xdp
      rx:
        queues:
        - {name: rx, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
    - name: port
      address: 10.98.0.77
      socket_config: {mode: server, local_addr: "udp://10.98.0.77:7148"}
      rx:
        queues:
        - {name: datagrams, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
    - name: group
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://239.1.2.3:7149"}
      rx:
        queues:
        - {name: joined, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
END

look() { setpriv --reuid=65534 --regid=65534 --clear-groups ./daqiri-run doctor --json x.yaml >"$1"; }

# Wrong.
ip link set lo up
ip link set eth0 down
ethtool -K eth0 gro on
ethtool -K eth1 gro on
ip link set eth1 up
sysctl -qw net.ipv4.conf.eth0.rp_filter=1
sysctl -qw net.ipv4.conf.eth1.rp_filter=1
sysctl -qw net.ipv4.igmp_max_memberships=10
sysctl -qw net.core.rmem_max=65536
echo 0 >/proc/sys/vm/nr_hugepages
cat /sys/devices/system/clocksource/clocksource0/available_clocksource >&2
for slow in hpet acpi_pm refined-jiffies jiffies; do
  echo $slow >/sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null && break
done
mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job && echo "50000 100000" >/sys/fs/cgroup/job/cpu.max
echo $$ >/sys/fs/cgroup/job/cgroup.procs
ulimit -n 512
ulimit -S -l 64

look before.json
python3 - >commands <<'END'
import json
for f in json.load(open("before.json")):
    # What stands behind ", or " and in brackets are words.
    if f["state"] == "fail" and f["row"] not in ("rights", "time", "isolated cores", "cores", "features", "files"):
        print(f["command"].split(", or ")[0].split(" (")[0])
END
cat commands >&2
while read -r command; do eval "$command" >/dev/null || echo "failed: $command" >&2; done <commands
look after.json
printf '{"before": %s, "after": %s}\n' "$(cat before.json)" "$(cat after.json)"
