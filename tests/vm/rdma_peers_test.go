package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

// TestRDMAWire looks at the packets of soft-RoCE, as tcpdump has them on the other end of the wire: the MTU and the traffic class of
// connections that the manager makes and of those by hand. IPv6 both ways; a raw interface on a device without raw packets is refused.
func TestRDMAWire(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	if _, err := tool("tcpdump"); err != nil {
		require.Lack(t, "tcpdump", err.Error())
	}
	d := build(t, "./cmd/daqiri-run")
	said := must(t, k, machine{modules: rdmaModules, dir: root(t)}, rdmaScript+`
		dump() { # what the two packets of each message's middle and end are like
			tcpdump -i v1 -w /dev/shm/wire -U udp port 4791 2>/dev/shm/dumping &
			until grep -q listening /dev/shm/dumping; do sleep 0.1; done
			`+d+` --summary none tests/vm/rdma/wire.lua "$@" 2>&1 || exit
			sleep 0.5
			kill $!
			wait $!
			tcpdump -nvr /dev/shm/wire 2>/dev/null | grep -o "tos 0x[0-9a-f]*\|length [0-9]*)" | paste - - | sort | uniq -c | sed 's/^ */packets /'
		}
		dump --mtu 1024 --class 106
		dump --hand true --mtu 512 --class 40
		`+d+` --summary none tests/vm/rdma/wire.lua --at fd09::1 --from fd09::2 2>&1 || exit
		`+d+` --summary none tests/vm/rdma/wire.lua --hand true --at fd09::1 --from fd09::2 2>&1 || exit
		`+d+` --summary none tests/vm/rdma/raw.lua 2>&1
		true`)
	said = strings.ReplaceAll(said, "\t", " ")
	// 5000 bytes are 4 packets of 1024 and one of 904, 9 of 512 and one of 392; 20 + 8 + 12 + 4 bytes of IPv4, UDP, BTH and ICRC are around them.
	says(t, said, "connected 10.9.0.2:", "came 4 20000", "packets 16 tos 0x6a length 1068)", "packets 4 tos 0x6a length 948)",
		"connected 10.9.0.2:0 10.9.0.1:4791", "came 4 20000", "packets 36 tos 0x28 length 556)", "connected [fd09::2]:", "came 4 20000",
		"connected [fd09::2]:0 [fd09::1]:4791", "came 4 20000", "device rxe0: no raw packet queue pair: Operation not supported")
	if strings.Contains(said, "tos 0x0") {
		t.Errorf("packets without the class\n%s", said)
	}
}

// TestRDMARping has `rping`, a server that is a stranger's, read from and write into memory that is lent to it: it says what it read.
func TestRDMARping(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	said := must(t, k, machine{modules: rdmaModules, dir: root(t)}, rdmaScript+`
		rping -s -a 10.9.0.1 -p 7174 -C 3 -S 3000 -v >/dev/shm/rping 2>&1 &
		until grep -qs . /sys/class/infiniband/rxe0/ports/1/state; do sleep 0.1; done
		sleep 2
		`+build(t, "./cmd/daqiri-run")+` tests/vm/rdma/rping.lua 2>&1
		cat /dev/shm/rping`)
	says(t, strings.ReplaceAll(said, "\t", " "), "back 3", "every packet is accounted for", "server ping data: ping 1 of daqiri-run AAAA",
		"server ping data: ping 2 of daqiri-run BBBB", "server ping data: ping 3 of daqiri-run CCCC")
}

// TestRDMAOutage takes the link away under a client, and brings it back; then the device. Each ends the connection, which the client
// makes again by itself where it can, and the device is gone once the program is.
func TestRDMAOutage(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	said := must(t, k, machine{modules: rdmaModules, dir: root(t)}, rdmaScript+`
		`+build(t, "./cmd/daqiri-run")+` --allow-exec tests/vm/rdma/outage.lua 2>&1 || exit
		for n in 1 2 3 4 5 6 7 8 9 10; do rdma link | grep -q rxe1 || break; sleep 1; done
		rdma link`)
	says(t, strings.ReplaceAll(said, "\t", " "), "down connection timed out true", "up again true", "gone no such device", "every packet is accounted for", "link rxe0/1")
	if strings.Contains(said, "link rxe1/1") {
		t.Errorf("the device is still there\n%s", said)
	}
}

// TestRDMAMatrix sends to a program on librdmacm, which compares each message: 1 byte to 8 MiB, around the MTU, in one segment and in up
// to four whose lengths are odd, over 1 to 64 connections.
func TestRDMAMatrix(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	peer := filepath.Join(t.TempDir(), "matrix")
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-o", peer, "rdma/matrix.c", "-lrdmacm", "-libverbs").CombinedOutput(); err != nil {
		require.Lack(t, "rdma", err.Error()+": "+string(out))
	}
	d := build(t, "./cmd/daqiri-run")
	runs := []struct{ runs, last, segments string }{
		{"1:1:2000 64:1:10000 64:64:50 4095:4:100 4096:1:500 4097:4:100 65536:4:50", "65536", "1"},
		{"1:1:100 64:16:10 1001:1:50 1002:2:50 4095:4:25 4097:1:50 65536:4:20", "65536", "4"},
		{"1048576:1:6 8388608:1:2 1048576:16:1", "8388608", "4"},
	}
	script, want := rdmaScript, []string{}
	for _, r := range runs {
		script += `
			` + peer + ` 10.9.0.1 4795 ` + r.runs + ` >/dev/shm/matrix 2>&1 &
			until grep -q ready /dev/shm/matrix; do sleep 0.1; done
			` + d + ` tests/vm/rdma/matrix.lua --runs "` + r.runs + `" --last ` + r.last + ` --segments ` + r.segments + ` 2>&1 || exit
			wait
			cat /dev/shm/matrix`
		want = append(want, "every packet is accounted for")
		for _, run := range strings.Fields(r.runs) {
			var bytes, conns, messages int
			if _, err := fmt.Sscanf(run, "%d:%d:%d", &bytes, &conns, &messages); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("%d bytes, %d connections: %d messages, 0 wrong\n", bytes, conns, conns*messages))
		}
	}
	said := must(t, k, machine{modules: rdmaModules, dir: root(t), timeout: 5 * time.Minute}, script)
	says(t, said, want...)
}
