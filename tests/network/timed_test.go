package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// timedScript sends datagrams at absolute times and prints the first of them, in ns since the epoch. The last 8 packets
// have times that go back: they leave in their order, behind the one before them.
const timedScript = `
local daqiri = require "daqiri"
local s = daqiri.open("udp.yaml")
local tx = s:tx_queue("tx_port")
local b = tx:alloc(64)
b:fill(tx:template{ payload_bytes = 32, vary = { { at = "start", bit_offset = 0, bit_width = 32, step = 1 } } })
local t0 = daqiri.time("now + 300ms")
local first, times = s:clock() + (t0 - daqiri.now()) * 1e9, {}
for i = 1, 56 do times[i] = math.floor(first) + (i - 1) * 3e6 end
for i = 57, 64 do times[i] = times[56] - (i - 56) * 1e6 end
b:tx_times(times)
s:start()
assert(tx:send(b))
print(t0.ns)
local sum = s:run{ seconds = 0.8 }
print(sum.tx_port.tx.timed, sum.tx_port.tx.packets)
`

const timedConfig = `daqiri:
  cfg:
    version: 1
    stream_type: socket
    master_core: 0
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: tx_port
      address: ` + harness.SendAddr + `
      socket_config: {mode: client, remote_addr: "udp://` + harness.RecvAddr + `:7148"}
      tx:
        accurate_send: true
        queues:
        - {name: tx, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [packets]}
`

// TestTimedSendOnTheWire checks packets with send times where they arrive, by the kernel's stamps: all come, in
// order, and none before its time.
func TestTimedSendOnTheWire(t *testing.T) {
	harness.Need(t, "tcpdump", "tshark")
	program, c, dir := harness.Built(t), newCable(t), t.TempDir()
	for name, text := range map[string]string{"udp.yaml": timedConfig, "timed.lua": timedScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "seen.pcap")
	var output harness.Buffer
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "-n", "-U", "-Z", "root", "--time-stamp-precision=nano", "-w", file, "-c", "64",
		"udp port 7148")
	dump.Stderr = &output
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Process.Kill() })
	harness.Until(t, "capture file", func() bool { info, err := os.Stat(file); return err == nil && info.Size() >= 24 })
	script := c.Command(c.Send, program, "--summary", "none", "timed.lua")
	script.Dir = dir
	out, err := script.Output()
	if err != nil {
		t.Fatalf("timed.lua: %v\n%s", err, out)
	}
	if err := dump.Wait(); err != nil {
		t.Fatalf("tcpdump: %v\n%s", err, output.String())
	}
	lines := strings.Fields(string(out))
	if len(lines) != 3 || lines[1] != "64" || lines[2] != "64" {
		t.Fatalf("timed.lua printed %q, want a time, 64 and 64", out)
	}
	first, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	compareTimes(t, arrivals(t, file), first)
}

// compareTimes holds arrivals against the times that were asked for, the first one's ns since the epoch.
func compareTimes(t *testing.T, seen []arrival, first int64) {
	const slack = 2_000_000 // ns: the script reads two clocks one after the other, and the wall clock may be slewed
	if len(seen) != 64 {
		t.Fatalf("%d packets were seen, want 64", len(seen))
	}
	for i, a := range seen {
		if a.seq != i {
			t.Fatalf("packet %d arrived in place %d", a.seq, i)
		}
		due := first + int64(min(i, 55))*3_000_000
		if a.ns < due-slack {
			t.Errorf("packet %d arrived %d ns before its time", i, due-a.ns)
		}
	}
}

// An arrival is a packet in a capture: its number, and when it came in ns since the epoch.
type arrival struct {
	seq int
	ns  int64
}

func arrivals(t *testing.T, file string) []arrival {
	t.Helper()
	out, err := exec.Command("tshark", "-n", "-r", file, "-T", "fields", "-e", "frame.time_epoch", "-e", "udp.payload").Output()
	if err != nil {
		t.Fatalf("tshark -r %s: %v", file, err)
	}
	var list []arrival
	for line := range strings.Lines(string(out)) {
		epoch, payload, _ := strings.Cut(strings.TrimSpace(line), "\t")
		ns, err := strconv.ParseInt(strings.Replace(epoch, ".", "", 1), 10, 64)
		seq, errSeq := strconv.ParseInt(payload[:min(8, len(payload))], 16, 64)
		if err != nil || errSeq != nil {
			t.Fatalf("tshark printed %q", line)
		}
		list = append(list, arrival{int(seq), ns})
	}
	return list
}
