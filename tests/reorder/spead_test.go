package reorder

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// speadSender writes a capture of SPEAD packets with scapy: items in any order, further ones among them, some frames with a
// VLAN tag, some payloads that are not SPEAD or lack an item, and some packets that are lost.
const speadSender = `
import random, struct, sys
from scapy.all import Ether, Dot1Q, IP, UDP, Raw, wrpcap
r, frames = random.Random(7), []
def item(id, value, immediate=1): return struct.pack(">Q", immediate << 63 | id << 48 | value)
for n in range(1, 41):
    for feng in range(3):
        for chan in range(5):
            if (n * 15 + feng * 5 + chan) % 11 == 0: continue
            items = [item(1, n), item(0x1600, n << 20), item(0x4101, feng), item(0x4103, chan), item(0x1600, 99, 0), item(0x1234, 0xffffffffffff)]
            r.shuffle(items)
            items = items[:] if r.random() < 0.5 else items + [item(0x1235, r.getrandbits(48))]
            data = bytes((n + feng * 40 + chan + i) % 256 for i in range(100))
            p = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            if r.random() < 0.3: p = p / Dot1Q(vlan=5)
            frames.append(p / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5, dport=7148) /
                Raw(struct.pack(">BBBBHH", 0x53, 4, 2, 6, 0, len(items)) + b"".join(items) + data))
    bad = [b"", b"\x53\x04\x02\x06", struct.pack(">BBBBHH", 0x53, 4, 2, 6, 0, 9) + item(0x1600, n << 20),
        struct.pack(">BBBBHH", 0x53, 4, 3, 5, 0, 1) + item(0x1600, n << 20), struct.pack(">BBBBHH", 0x53, 4, 2, 6, 0, 1) + item(0x1600, n << 20)]
    frames.append(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5, dport=7148) / Raw(bad[n % 5] + b"?" * (n % 3)))
for i, f in enumerate(frames): f.time = 1700000000 + i * 1e-5
wrpcap(sys.argv[1], frames)
`

// speadReader compares the blocks with what was sent; it knows the page on the format and nothing of ours.
const speadReader = `
import struct, sys
d = open(sys.argv[1], "rb").read()
u = lambda f, at: struct.unpack_from("<" + f, d, at)[0]
head, step, data_at, slots, size, extra = u("I", 12), u("Q", 16), u("I", 24), u("I", 28), u("I", 32), u("I", 72)
ids = []
for at in range(head, len(d), step):
    n = u("Q", at + 8)
    ids.append(n)
    for slot in range(slots):
        there = d[at + u("I", 68) + slot // 8] >> slot % 8 & 1
        feng, chan = divmod(slot, 5)
        want = (n * 15 + slot) % 11 != 0
        got = d[at + data_at + slot * size:][:size]
        if there != want or got != (bytes((n + feng * 40 + chan + i) % 256 for i in range(100)) if want else bytes(100)) or \
                u("Q", at + extra + 8 * slot) != (n if want else 0): sys.exit("block %d slot %d: %d, %r" % (n, slot, there, got[:9]))
if ids != list(range(1, 41)) or (slots, size) != (15, 100): sys.exit("blocks %r of %d slots of %d" % (ids, slots, size))
`

// TestSpead has packets that scapy made put together by scripts/loop/spead.lua, and reads the blocks.
func TestSpead(t *testing.T) {
	harness.Need(t, "scapy")
	program, dir := harness.Built(t), t.TempDir()
	python := func(script, file string) {
		t.Helper()
		if out, err := exec.Command("/usr/bin/python3", "-c", script, filepath.Join(dir, file)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	python(speadSender, "sent.pcap")
	cmd := exec.Command(program, "--source", "rx_port="+filepath.Join(dir, "sent.pcap"), "spead.lua", "--dir", dir, "--spectra", "0",
		"--feng", "3", "--chan", "5", "--bytes", "100", "--seconds", "1")
	cmd.Dir = filepath.Join(tree.Root, "scripts/loop")
	out, err := cmd.CombinedOutput()
	// The first block lacks one packet, and the last four, which the end leaves open, lack five: these are cut.
	if err != nil || !strings.Contains(string(out), "40 blocks, 48 of 594 packets missing, 40 belong nowhere\n") ||
		!strings.Contains(string(out), "cut of blocks: 6 parts") {
		t.Fatalf("%v: %s", err, out)
	}
	python(speadReader, "disk_000000.dqb")
}
