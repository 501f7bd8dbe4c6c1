package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// onWire counts the packets of RoCE in a capture by class and length, each once however often it was sent.
func onWire(t *testing.T, file string) map[string]int {
	t.Helper()
	out, err := exec.Command("tshark", "-n", "-r", file, "-Y", "infiniband", "-T", "fields", "-e", "ip.dsfield", "-e", "ip.len", "-e", "infiniband.bth.psn").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	n := map[string]int{}
	for _, line := range slices.Compact(lines) {
		field := strings.Split(line, "\t")
		n["class "+field[0]]++
		n[field[0]+" "+field[1]]++
	}
	return n
}

// TestRDMAWire checks the packets of soft-RoCE, as tcpdump has them on the other end of the wire: the MTU and the traffic class of
// connections that the manager makes and of those by hand. IPv6 both ways; a raw interface on a device without raw packets is refused.
func TestRDMAWire(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	for _, name := range []string{"tcpdump", "tshark"} {
		if _, err := tool(name); err != nil {
			require.Lack(t, name, err.Error())
		}
	}
	d, dir := build(t, "./cmd/daqiri-run"), inShared(t, "wire")
	output := rdmaMust(t, k, root(t), nil, `
		dump() { # FILE ARGUMENTS
			file=$1
			shift
			rm -f /dev/shm/dumping
			tcpdump -i v1 -w /dev/shm/$file -B 8192 -U --immediate-mode udp port 4791 2>/dev/shm/dumping &
			until grep -qs listening /dev/shm/dumping; do sleep 0.1; done
			`+d+` --summary none tests/vm/rdma/wire.lua "$@" 2>&1 || exit
			had=-1 # tcpdump takes its time to write what it has seen
			while [ $had != $(stat -c %s /dev/shm/$file) ]; do had=$(stat -c %s /dev/shm/$file); sleep 1; done
			kill $!
			wait $!
			cp /dev/shm/$file `+dir+`
		}
		dump managed --mtu 1024 --class 106
		dump byhand --hand true --mtu 512 --class 40
		`+d+` --summary none tests/vm/rdma/wire.lua --at fd09::1 --from fd09::2 2>&1 || exit
		`+d+` --summary none tests/vm/rdma/wire.lua --hand true --at fd09::1 --from fd09::2 2>&1 || exit
		`+d+` --summary none tests/vm/rdma/raw.lua 2>&1
		true`)
	output = strings.ReplaceAll(output, "\t", " ")
	wantText(t, output, "connected 10.9.0.2:", "came 4 20000", "connected 10.9.0.2:0 10.9.0.1:4791", "came 4 20000", "connected [fd09::2]:", "came 4 20000",
		"connected [fd09::2]:0 [fd09::1]:4791", "came 4 20000", "device rxe0: cannot create a raw packet queue pair: Operation not supported")
	// 5000 bytes are 4 packets of 1024 and one of 904, 9 of 512 and one of 392; 20 + 8 + 12 + 4 bytes of IPv4, UDP, BTH and ICRC are around them.
	for _, want := range []struct {
		file, packets string
		n             int
	}{
		{"managed", "0x6a 1068", 16}, {"managed", "0x6a 948", 4}, {"managed", "class 0x00", 0},
		{"byhand", "0x28 556", 36}, {"byhand", "0x28 436", 4}, {"byhand", "class 0x00", 0},
	} {
		if got := onWire(t, filepath.Join(dir, want.file)); got[want.packets] != want.n {
			t.Errorf("%s: %d packets %s, want %d: %v", want.file, got[want.packets], want.packets, want.n, got)
		}
	}
}

// TestRDMARping has `rping`, a server that is a stranger's, read from and write into memory that is lent to it: it reports what it read.
func TestRDMARping(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	output := rdmaMust(t, k, root(t), nil, `
		rping -s -a 10.9.0.1 -p 7174 -C 3 -S 3000 -v >/dev/shm/rping 2>&1 &
		until grep -qs . /sys/class/infiniband/rxe0/ports/1/state; do sleep 0.1; done
		sleep 2
		`+build(t, "./cmd/daqiri-run")+` tests/vm/rdma/rping.lua 2>&1
		cat /dev/shm/rping`)
	wantText(t, strings.ReplaceAll(output, "\t", " "), "back 3", "every packet is accounted for", "server ping data: ping 1 of daqiri-run AAAA",
		"server ping data: ping 2 of daqiri-run BBBB", "server ping data: ping 3 of daqiri-run CCCC")
}

// TestRDMAOutage takes the link away under a client, and brings it back; then the device. Each ends the connection, which the client
// makes again by itself where it can, and the device is gone once the program is.
func TestRDMAOutage(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	output := rdmaMust(t, k, root(t), nil, `
		`+build(t, "./cmd/daqiri-run")+` --allow-exec tests/vm/rdma/outage.lua 2>&1 || exit
		for n in 1 2 3 4 5 6 7 8 9 10; do rdma link | grep -q rxe1 || break; sleep 1; done
		rdma link`)
	wantText(t, strings.ReplaceAll(output, "\t", " "), "down connection timed out true connection", "up again true", "gone no such device connection", "every packet is accounted for", "link rxe0/1")
	if strings.Contains(output, "link rxe1/1") {
		t.Errorf("the device is still there\n%s", output)
	}
}
