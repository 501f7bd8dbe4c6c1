package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

//go:embed rdma.sh
var rdmaScript string

// rdmaModules are those of soft-RoCE. Without the checksums' a device can't be made.
var rdmaModules = []string{"crc32_generic", "crc32c_generic", "rdma_rxe", "rdma_ucm", "ib_uverbs", "veth"}

// needRDMA skips t where the machine, or a command that comes with the libraries, is missing.
func needRDMA(t *testing.T) kernel {
	t.Helper()
	k := need(t, "ip")
	for _, name := range []string{"rdma", "rping", "ib_send_bw"} {
		if _, err := tool(name); err != nil {
			require.Lack(t, "rdma", err.Error()+": `make deps` installs what soft-RoCE needs")
		}
	}
	return k
}

// tests builds the tests of a package; its program and the folder that they expect.
func tests(t *testing.T, pkg string) (program, dir string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "go.test")
	dir, err := buildTest(context.Background(), pkg, program)
	if err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// TestEngineRDMA runs the contract suite over reliable and unreliable connections and datagrams of soft-RoCE.
func TestEngineRDMA(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	program, dir := tests(t, "../../runtime/session/contract")
	output := rdmaMust(t, k, dir, []string{"DAQIRI_TEST_RDMA=10.9.0.1,10.9.0.2"},
		quote(program)+" -test.run 'TestContract.*/rdma' -test.parallel 1 -test.v 2>&1")
	if passed := count(output, `    --- PASS: \w+/rdma-(rc|uc|ud)/`); passed < 60 {
		t.Errorf("%d tests passed\n%s", passed, output)
	}
}

// peer is the C program that shares no code with the engine, on librdmacm.
func peer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "peer")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-o", program, "rdma/peer.c", "-lrdmacm", "-libverbs").CombinedOutput(); err != nil {
		require.Lack(t, "rdma", err.Error()+": "+string(out))
	}
	return program
}

// wantText fails t unless the text has all of these, in their order.
func wantText(t *testing.T, text string, wants ...string) {
	t.Helper()
	rest := text
	for _, want := range wants {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing in\n%s", want, text)
		}
		rest = after
	}
}

// TestRDMAOnStrangersMemory writes, reads and counts in the memory of a program on librdmacm: what that has in its memory at
// the end, and what was reported to it, is what was written; a wrong key ends the connection, the ledger closes.
func TestRDMAOnStrangersMemory(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	output := rdmaMust(t, k, root(t), nil, `
		`+peer(t)+` 10.9.0.1 4791 >/dev/shm/peer &
		until grep -q ready /dev/shm/peer; do sleep 0.1; done
		`+build(t, "./cmd/daqiri-run")+` tests/vm/rdma/onesided.lua --port 4791 2>&1 || exit
		wait
		cat /dev/shm/peer`)
	output = strings.ReplaceAll(output, "\t", " ")
	wantText(t, output, "private a key\n")
	wantText(t, output, "written", "fetch_add 0\nfetch_add 5\ncompare_swap 0\ncompare_swap 12345\n",
		`its peer lends no "rings"; it lends ring`, "beyond what its peer lends", "beyond what its peer lends", "multiples of 8", "has the packets of queue rx",
		"wrong key connection 1: remote access error", "disconnected permission denied", "every packet is accounted for")
	sums := regexp.MustCompile(`(?m)^(written|message|plain|final) (\d+)$`).FindAllStringSubmatch(output, -1)
	if len(sums) != 4 {
		t.Fatalf("%d sums in\n%s", len(sums), output)
	}
	wantText(t, output, "imm 4711 "+sums[0][2]+"\n", "imm 4294967294 "+sums[1][2]+"\n", "- 0 "+sums[2][2]+"\n", "end "+sums[3][2]+"\n")
}

// TestRDMALend lends a region to a client, which writes, reads, loses it, and connects again by itself after the device has
// stopped its late write.
func TestRDMALend(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	output := rdmaMust(t, k, root(t), nil, `
		`+build(t, "./cmd/daqiri-run")+` tests/vm/rdma/lend.lua 2>&1`)
	output = strings.ReplaceAll(output, "\t", " ")
	wantText(t, output, "region mine does not allow that", "longer than 47 bytes", "17 slots of 4096 bytes",
		"remote 65536 16 4096 true true true true", "reported 0 bytes, imm 0 0 bytes, imm 15", "read 16 65536 00000000ABCDEFGH0000 0015",
		`lends no "ring"; it lends nothing`, "late connection", "remote access error", "untouched 0000",
		"again true true", "beyond connection", "remote access error", "every packet is accounted for")
	if n := strings.Count(output, "client's end permission denied\n"); n != 2 {
		t.Errorf("the client was informed %d times, not twice, that it had no right\n%s", n, output)
	}
}

// TestRDMAFaults has connections refused, peers that are not there, don't read, have too little room, or are killed: each is
// reported, in bounded time, and the ledger closes.
func TestRDMAFaults(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	program := build(t, "./cmd/daqiri-run")
	output := rdmaMust(t, k, root(t), nil, `
		`+program+` --allow-exec tests/vm/rdma/faults.lua --recv "`+program+` scripts/rdma/rdma_recv.lua --port 4801 --size 8192 --seconds 60" 2>&1`)
	wantText(t, strings.ReplaceAll(output, "\t", " "), "refused connection refused", "unreachable connection timed out", "deaf NO_SPACE_AVAILABLE true",
		"closed closed by the peer", "kept connection", "crowd 24", "too long remote I/O error", "long connection", "remote operation error", "killed ",
		"last connection", "every packet is accounted for")
}

// TestRDMAMemory has connections come and go, 144 of them at a time, or 4000 by DAQIRI_VM_WIDE=1, more than one completion queue of
// soft-RoCE's has room for (127, where one queue does both directions): no descriptor and no pinned memory stay, the
// program's memory is flat, and one end of a connection takes no more than 32 KiB of it. What the device's driver maps is its own.
func TestRDMAMemory(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	connects, together, pinned := 144, 144, 9216
	if wide() {
		connects, together, pinned = 4000, 4000, 36000
	}
	output := rdmaMust(t, k, root(t), nil, fmt.Sprintf(`
		%s --allow-exec tests/vm/rdma/memory.lua --connects %d --together %d 2>&1`, build(t, "./cmd/daqiri-run"), connects, together))
	wantText(t, output, fmt.Sprintf("after %d connects: 0 descriptors more, 0 KiB pinned more of %d, ", connects, pinned), "every packet is accounted for")
	var more, one int
	_, after, _ := strings.Cut(output, fmt.Sprintf("pinned more of %d, ", pinned))
	if _, err := fmt.Sscanf(after, "%d KiB more\none end of a connection: %d KiB", &more, &one); err != nil || more > 4096 || one > 32 {
		t.Errorf("%v, %d KiB more, %d KiB of a connection\n%s", err, more, one, output)
	}
}

// TestRDMAReferenceBench opens the reference's configuration, with fewer buffers, and moves its 8 MB messages both ways through
// daqiri.api.
func TestRDMAReferenceBench(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	few := ""
	for n := range 4 {
		few += fmt.Sprintf(" --set 'memory_regions[%d].num_bufs=4'", n)
	}
	output := rdmaMust(t, k, root(t), nil, `
		ip addr add 10.100.1.1/16 dev v1
		ip addr add 10.100.3.1/16 dev v0
		`+build(t, "./cmd/daqiri-run")+` --memory host --cores auto`+few+` tests/vm/rdma/both_ways.lua --config tests/vm/rdma/reference.yaml 2>&1`)
	wantText(t, strings.ReplaceAll(output, "\t", " "), "client 1 8000001 1 from", "server 1 8000001 1 from", "client 2 8000002 2 from", "server 2 8000002 2 from",
		"every packet is accounted for")
}

// TestRDMAScripts runs the scripts that users copy, the one behind `daqiri-run bench`, and operations one at a time between workers that
// sleep.
func TestRDMAScripts(t *testing.T) {
	t.Parallel()
	k := needRDMA(t)
	d := build(t, "./cmd/daqiri-run")
	output := rdmaMust(t, k, root(t), nil, `
		`+d+` scripts/rdma/rdma_pingpong.lua --count 200 2>&1 || exit
		`+d+` scripts/rdma/rdma_put.lua --count 200 2>&1 || exit
		`+d+` run --summary none cmd/daqiri-bench/internal/bench/scripts/rdma.lua --seconds 1 2>&1 || exit
		`+d+` run --summary none cmd/daqiri-bench/internal/bench/scripts/rdma.lua --what write --seconds 1 2>&1 || exit
		`+d+` run --summary none cmd/daqiri-bench/internal/bench/scripts/rdma.lua --what latency --size 64 --seconds 1 2>&1 || exit
		`+d+` tests/vm/rdma/quiet.lua 2>&1 || exit
		`+d+` scripts/rdma/rdma_recv.lua --address 10.9.0.1 --seconds 120 >/dev/shm/recv 2>&1 &
		receiver=$!
		timeout 120 `+d+` scripts/rdma/rdma_send.lua --from 10.9.0.2 --to 10.9.0.1:4096 --count 200 2>&1
		kill -INT $receiver
		wait
		cat /dev/shm/recv`)
	wantText(t, output, "200 round trips of 64 bytes", "every packet is accounted for", "200 slots of 16384 bytes, 0 wrong", "every packet is accounted for",
		"40 operations, 0 not completed within 2 s", "every packet is accounted for", "200 messages of 65536 bytes", "every packet is accounted for", "200 messages, 13107200 bytes", "every packet is accounted for")
	if n := count(output, `"bytes":[1-9]`) + count(output, `"mean":[1-9]`); n != 3 {
		t.Errorf("the bench's script moved something in %d of 3 runs\n%s", n, output)
	}
}

// compiled runs a script here, so that the cache of the user has its kernels.
func compiled(t *testing.T, program, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}
