package files

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// speedConfig replays a capture on the virtual clock, a packet a burst.
const speedConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: {mode: sw, clock: virtual}
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 8192, buf_size: 2048}
    interfaces:
    - name: src
      address: pcap:in.pcap
      replay: {REPLAY}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 1, timeout_us: 0, memory_regions: [m]}]}
`

// speedScript prints the length of each packet and when it came, in ns.
const speedScript = `
local s = require "daqiri".open("replay.yaml")
s:rx_queue("src"):on_burst(function(b) print(b.bytes, ("%.0f"):format(s:clock())) end, { policy = "wait" })
s:run{}
`

// TestReplaySpeed replays a capture at speeds and rates of which tshark knows what they make of its gaps.
func TestReplaySpeed(t *testing.T) {
	harness.Need(t, "tshark")
	const n = 40
	program := harness.Built(t)
	base := t.TempDir()
	capture := filepath.Join(base, "in.pcap")
	harness.BigEndianCapture(t, capture, n)
	at, size := make([]float64, n), make([]float64, n) // ns after the first; bytes
	for k, line := range harness.TsharkLines(t, capture, "frame.time_relative", "frame.len") {
		when, length, _ := strings.Cut(line, "\t")
		d, err := time.ParseDuration(when + "s")
		bytes, err2 := strconv.Atoi(length)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		at[k], size[k] = float64(d), float64(bytes)
	}
	sent := func(k int) (bytes float64) { // before packet k
		for _, b := range size[:k] {
			bytes += b
		}
		return bytes
	}
	for _, c := range []struct {
		replay string
		source string // "", or the arguments of --source
		due    func(k int) float64
	}{
		{"speed: 1", "", func(k int) float64 { return at[k] }},
		{"speed: 4", "", func(k int) float64 { return at[k] / 4 }},
		{"speed: 0.5", "", func(k int) float64 { return at[k] * 2 }},
		{"speed: max", "", func(int) float64 { return 0 }},
		{"pps: 1000", "", func(k int) float64 { return float64(k) * 1e6 }},
		{"rate: 1Mbit/s", "", func(k int) float64 { return sent(k) * 8e3 }},
		{"speed: 4", "in.pcap,speed=10", func(k int) float64 { return at[k] / 10 }},
		{"speed: 4", "in.pcap", func(k int) float64 { return at[k] / 4 }},
		{"loops: 2", "", func(k int) float64 { return at[k%n] + float64(k/n)*(at[n-1]+math.Floor(at[n-1]/(n-1))) }},
	} {
		t.Run(c.replay+" "+c.source, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Link(capture, filepath.Join(dir, "in.pcap")); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"replay.yaml": strings.Replace(speedConfig, "REPLAY", c.replay, 1), "s.lua": speedScript} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"s.lua"}
			if c.source != "" {
				args = []string{"--source", c.source, "s.lua"}
			}
			cmd := exec.Command(program, args...)
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			want := n
			if strings.HasPrefix(c.replay, "loops") {
				want = 2 * n
			}
			if len(lines) != want {
				t.Fatalf("%d packets, want %d", len(lines), want)
			}
			var first float64
			for k, line := range lines {
				length, when, _ := strings.Cut(line, "\t")
				ns, err := strconv.ParseFloat(when, 64)
				if err != nil || length != strconv.Itoa(int(size[k%n])) {
					t.Fatalf("packet %d: %q, want %v bytes", k, line, size[k%n])
				}
				if k == 0 {
					first = ns
				}
				if off := ns - first - c.due(k); math.Abs(off) > 1000 { // a double holds epochs to 256 ns
					t.Fatalf("packet %d came %.0f ns after the first, want %.0f", k, ns-first, c.due(k))
				}
			}
		})
	}
}
