package reorder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// restartScript counts what a reorder stage and a heaps stage put together.
const restartScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "max.yaml", what = "" }
local s = daqiri.open(args.config)
local st
if args.what == "heaps" then
  st = s:heaps{ name = "st", format = "spead-64-40", memory_region = "blocks", timeout_us = 5000, policy = "wait" }
else
  st = s:reorder{ name = "st", memory_region = "blocks", at = "payload", payload_byte_offset = 8, slot_bytes = 64, timeout_us = 100000, policy = "wait",
    sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, packets_per_batch = 32 }
end
s:pipe(s:rx_queue("rx_port"), st)
st:on_burst(function() end)
local l = s:run{ seconds = 1000 }.st
print(l.out, l.dropped, l.resyncs, l.missing)
`

// speadPiece is a part of a heap of 1000 bytes, as SPEAD-64-40.
func speadPiece(id uint64, at int) []byte {
	be := binary.BigEndian
	out := []byte{0x53, 4, 3, 5, 0, 0, 0, 4}
	for k, v := range []uint64{id, 1000, uint64(at), 500} {
		out = be.AppendUint64(out, 1<<63|uint64(k+1)<<40|v)
	}
	return append(out, bytes.Repeat([]byte{byte(id)}, 500)...)
}

// A timedPayload is one of a datagram, of some ns after the first.
type timedPayload struct {
	ns   int64
	data []byte
}

// TestCaptureGap: a gap of years in a capture takes no time on the virtual clock, and ends no run.
func TestCaptureGap(t *testing.T) {
	program, dir := harness.Built(t), t.TempDir()
	const year = 365 * 24 * 3600 * int64(1e9)
	text := harness.PcapOf(1, harness.Captured{Ns: 20 * year, Data: harness.Datagram(1, 9, true)}, harness.Captured{Ns: 40 * year, Data: harness.Datagram(2, 9, true)})
	script := `local daqiri = require "daqiri"
local s = daqiri.open(daqiri.args{ config = "" }.config)
s:pipe(s:rx_queue("rx_port"), s:count{ name = "n" })
local l = s:run{}
print(l.n.out, l.reason, l.seconds > 600000000)`
	for name, text := range map[string]string{"in.pcap": string(text), "gap.lua": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := filepath.Abs(filepath.Join(tree.Root, "scripts/loop/virtual.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--source", "in.pcap", "gap.lua", "--config", config)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("2\tsource exhausted\ttrue\n")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStreamRestart has senders begin again: packets' times say so, at whatever speed a capture is replayed. Numbers of the
// first run may be among those of the next; ids of 8 bits come again soon.
func TestStreamRestart(t *testing.T) {
	program, dir := harness.Built(t), t.TempDir()
	const second = 1_000_000_000
	var numbered, heaps, round []timedPayload
	for run := range int64(3) {
		for k := range 200 {
			data := append(binary.BigEndian.AppendUint32(nil, uint32(k)), "anrunbytes of a payload that fills a part of the slot"...)
			numbered = append(numbered, timedPayload{run*second + int64(k)*500_000, data})
		}
	}
	for run := range int64(2) {
		for id := range int64(100) {
			for at := range int64(2) {
				heaps = append(heaps, timedPayload{run*60*second + id*10_000_000 + at*500, speadPiece(uint64(id+1), int(500*at))})
			}
		}
	}
	for k := range int64(1024) {
		for at := range int64(2) {
			round = append(round, timedPayload{k*20_000 + at*500, speadPiece(uint64(k%256), int(500*at))})
		}
	}
	config := `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    %s
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 4096, buf_size: 2048}
    - {name: blocks, kind: host, affinity: 0, num_bufs: 64, buf_size: 8192}
    interfaces:
    - name: rx_port
      address: loop1
      rx:
        queues:
        - {name: rx_q_0, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
`
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("max.yaml", fmt.Sprintf(config, "loopback: {mode: sw}"))
	write("virtual.yaml", fmt.Sprintf(config, "loopback: {mode: sw, clock: virtual, seed: 1}"))
	write("restart.lua", restartScript)
	for _, c := range []struct {
		name    string
		what    string
		packets []timedPayload
		want    string
	}{
		{"three runs of numbers", "numbers", numbered, "600\t0\t2\t0\n"},
		{"two runs of heaps", "heaps", heaps, "400\t0\t0\t0\n"},
		{"ids of 8 bits", "heaps", round, "2048\t0\t0\t0\n"},
	} {
		var frames []harness.Captured
		for i, p := range c.packets {
			f := harness.Datagram(uint16(i), len(p.data), true)
			copy(f[42:], p.data)
			frames = append(frames, harness.Captured{Ns: 1_700_000_000*second + p.ns, Data: f})
		}
		write("in.pcap", string(harness.PcapOf(1, frames...)))
		for _, how := range [][]string{{"in.pcap", "virtual.yaml"}, {"in.pcap,speed=max", "virtual.yaml"}, {"in.pcap,speed=max", "max.yaml"}} {
			cmd := exec.Command(program, "--source", how[0], "restart.lua", "--config", how[1], "--what", c.what)
			var stderr bytes.Buffer
			cmd.Dir, cmd.Stderr = dir, &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != c.want {
				t.Errorf("%s, %s, %s: %v, %q, want %q\n%s", c.name, how[0], how[1], err, out, c.want, stderr.String())
			}
		}
	}
}
