package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const replaySender = `    - name: out
      address: veth0
      tx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [m]}]}
`

const replayOn = `
local daqiri = require "daqiri"
local s = daqiri.open("replay.yaml")
local tx = s:tx_queue("out")
s:pipe(s:rx_queue("src"), tx)
tx:pace{ follow = "rx_timestamp" }
s:threshold("out.tx.packets == src.rx.packets")
print(s:run{}.reason)
`

const replayRecord = `
local daqiri = require "daqiri"
local s = daqiri.open("replay.yaml")
s:pipe(s:rx_queue("src"), s:write_pcap{ name = "disk", dir = "out", policy = "wait" })
s:threshold("disk.dropped + src.rx.dropped == 0")
print(s:run{}.reason)
`

// inFolder writes a script and its configuration and returns how to run it there.
func inFolder(t *testing.T, dir, program, script, address, more string) []string {
	t.Helper()
	for name, text := range map[string]string{"replay.yaml": fmt.Sprintf(harness.ReplayConfig, address, more), "script.lua": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return []string{program, "script.lua"}
}

// listen records what comes in at the receiving end until n frames are there.
func (c *cable) listen(file string, n int) (wait func()) {
	c.T.Helper()
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "-n", "-U", "-Z", "root", "--time-stamp-precision=nano", "-w", file, "-c", fmt.Sprint(n),
		"udp port 7148")
	var output harness.Buffer
	dump.Stderr = &output
	if err := dump.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { _ = dump.Process.Kill() })
	harness.Until(c.T, "capture file", func() bool { info, err := os.Stat(file); return err == nil && info.Size() >= 24 })
	done := make(chan error, 1)
	go func() { done <- dump.Wait() }()
	return func() {
		c.T.Helper()
		select {
		case err := <-done:
			if err != nil {
				c.T.Fatalf("tcpdump: %v\n%s", err, output.String())
			}
		case <-time.After(30 * time.Second):
			c.T.Fatalf("tcpdump has not seen %d frames\n%s", n, output.String())
		}
	}
}

// TestReplayRoundTrip replays a capture onto a wire where tcpdump records it, records that recording ourselves, and has
// tcpreplay send our file: the frames are the same each time, and none leaves before its gap is over.
func TestReplayRoundTrip(t *testing.T) {
	harness.Need(t, "tcpdump", "tcpreplay", "tshark")
	const n = 300
	program, c, dir := harness.Built(t), newCable(t), t.TempDir()
	sent, seen, again := filepath.Join(dir, "sent.pcap"), filepath.Join(dir, "seen.pcap"), filepath.Join(dir, "again.pcap")
	took := harness.BigEndianCapture(t, sent, n)
	wait := c.listen(seen, n)
	replay := c.Command(c.Send, inFolder(t, dir, program, replayOn, "pcap:sent.pcap", replaySender)...)
	replay.Dir = dir
	if out, err := replay.CombinedOutput(); err != nil || !strings.Contains(string(out), "source exhausted") {
		t.Fatalf("%v\n%s", err, out)
	}
	wait()
	fields := []string{"frame.len", "eth.dst", "udp.dstport", "data.data"}
	want := harness.TsharkLines(t, sent, fields...)
	if got := harness.TsharkLines(t, seen, fields...); !slices.Equal(got, want) {
		t.Errorf("tcpdump saw other frames: %d, sent %d", len(got), len(want))
	}
	gaps := gapErrors(harness.TsharkLines(t, sent, "frame.time_relative"), harness.TsharkLines(t, seen, "frame.time_relative"))
	t.Logf("gaps off by %v at the median, %v at nine of ten", gaps[len(gaps)/2], gaps[len(gaps)*9/10])
	last := harness.TsharkLines(t, seen, "frame.time_relative")[n-1]
	if d, err := time.ParseDuration(last + "s"); err != nil || d < took*9/10 {
		t.Errorf("%d frames within %v, which took %v when they were captured", n, d, took)
	}

	record := exec.Command(program, "script.lua")
	inFolder(t, dir, program, replayRecord, "pcap:seen.pcap", "")
	record.Dir = dir
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fields = append(fields, "frame.time_epoch")
	ours := filepath.Join(dir, "out", "disk.pcap")
	if got, want := harness.TsharkLines(t, ours, fields...), harness.TsharkLines(t, seen, fields...); !slices.Equal(got, want) {
		t.Error("our recording of tcpdump's file has other frames or times")
	}
	wait = c.listen(again, n)
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=5000", "--intf1=veth0", ours)
	wait()
	if got := harness.TsharkLines(t, again, fields[:4]...); !slices.Equal(got, want) {
		t.Error("tcpreplay sent other frames from our file")
	}
}

// gapErrors are how far gaps of one list of times are off those of the other, sorted.
func gapErrors(want, got []string) []time.Duration {
	at := func(list []string, k int) time.Duration {
		d, _ := time.ParseDuration(list[k] + "s")
		return d
	}
	var off []time.Duration
	for k := 1; k < len(want) && k < len(got); k++ {
		off = append(off, (at(got, k) - at(got, k-1) - at(want, k) + at(want, k-1)).Abs())
	}
	slices.Sort(off)
	return off
}

// TestReplayFormats replays what Wireshark's tools write in their formats: frames and times are those that tshark finds.
func TestReplayFormats(t *testing.T) {
	harness.Need(t, "tshark", "capinfos") // editcap and mergecap come with capinfos
	program, base := harness.Built(t), t.TempDir()
	first, second := filepath.Join(base, "first.pcap"), filepath.Join(base, "second.pcap")
	harness.BigEndianCapture(t, first, 50)
	harness.BigEndianCapture(t, second, 20)
	for name, tool := range map[string][]string{
		"pcap":            {"editcap", "-F", "pcap", first},
		"nsecpcap":        {"editcap", "-F", "nsecpcap", "-t", "0.000000321", first},
		"pcapng":          {"editcap", "-F", "pcapng", "-t", "-3600", first},
		"snapped":         {"editcap", "-F", "pcapng", "-s", "77", first},
		"two-interfaces":  {"mergecap", "-F", "pcapng", "-w", "OUT", first, second},
		"duplicates-gone": {"editcap", "-d", first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "in.cap")
			args := append(slices.Clone(tool[1:]), file)
			if k := slices.Index(args, "OUT"); k >= 0 {
				args = slices.Clone(args[:len(args)-1])
				args[k] = file
			}
			if out, err := exec.Command(tool[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", tool[0], err, out)
			}
			cmd := exec.Command(program, inFolder(t, dir, program, replayRecord, "pcap:in.cap", "")[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			fields := []string{"frame.time_epoch", "frame.cap_len", "udp.length", "data.data"}
			if name == "snapped" {
				fields = fields[:2] // of a frame that reports that it was longer tshark shows no data
			}
			want, got := harness.TsharkLines(t, file, fields...), harness.TsharkLines(t, filepath.Join(dir, "out", "disk.pcap"), fields...)
			if len(want) < 50 || len(got) != len(want) {
				t.Fatalf("%d frames, tshark finds %d", len(got), len(want))
			}
			for k := range want {
				if w, g := plainTime(want[k]), plainTime(got[k]); w != g {
					t.Fatalf("frame %d:\nin the capture %s\nreplayed       %s", k, w, g)
				}
			}
		})
	}
}

// plainTime takes the digits that a coarser file doesn't have out of the time that begins a line.
func plainTime(line string) string {
	at, rest, _ := strings.Cut(line, "\t")
	return strings.TrimRight(at, "0") + "\t" + rest
}

// TestSource runs a script from a capture in the place of its network card.
func TestSource(t *testing.T) {
	program, dir := harness.Built(t), t.TempDir()
	harness.BigEndianCapture(t, filepath.Join(dir, "a.pcap"), 200)
	inFolder(t, dir, program, strings.Replace(replayOn, "tx:pace{ follow = \"rx_timestamp\" }", "", 1), "0000:3b:00.0", replaySender)
	config := filepath.Join(dir, "replay.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, bytes.Replace(text, []byte("      replay: {speed: max}\n"), nil, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "a.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tail.pcap"), whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"--source a.pcap,speed=max,loops=3", "out.tx.0    600  600", 0},
		{"--source src=a.pcap,pps=1e5 --summary full", "note: interface src: pcap:a.pcap, at 100000 packets/s, once", 0},
		{"--source a.pcap,loops=0", `--source loops: "0" is not a number of loops from 1 on, or forever`, 2},
		{"--source none.pcap", "interface src: none.pcap: No such file or directory", 4},
		{"--source a.pcap --source sorc=a.pcap", `there is no interface sorc; did you mean "src"?`, 3},
		{"--source a.pcap --engine loop", "--source and --engine exclude each other", 2},
		{"--source cut.pcap", "cut.pcap: at byte 24: a packet of 4294967295 bytes", 4},
		{"--source tail.pcap", "tail.pcap: it is cut off in the record at byte", 6},
		{"--source bad.pcap", "bad.pcap: at byte 9999: a packet of", 6},
	} {
		if strings.Contains(tt.args, "cut.pcap") || strings.Contains(tt.args, "bad.pcap") {
			at := damage(t, dir, tt.args)
			tt.want = strings.Replace(tt.want, "9999", fmt.Sprint(at), 1)
		}
		cmd := exec.Command(program, append(strings.Fields(tt.args), "script.lua")...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: code %d, want %d and %q in\n%s", tt.args, code, tt.code, tt.want, out)
		}
	}
}

// damage writes cut.pcap, whose first packet has an impossible length, or bad.pcap, whose third has, and returns the place.
func damage(t *testing.T, dir, name string) (at int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "a.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	at, file := 24, "cut.pcap"
	if strings.Contains(name, "bad") {
		file = "bad.pcap"
		for range 2 {
			at += 16 + int(binary.BigEndian.Uint32(data[at+8:]))
		}
	}
	binary.BigEndian.PutUint32(data[at+8:], 0xffffffff)
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}
