package files

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// factsConfig has two interfaces on one wire: what one sends comes to two. The buffers of two are few, and of a size
// of their own, so that packets are copied into them.
const factsConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: "raw"
    master_core: 0
    loopback: "sw"
    memory_regions:
    - { name: "buffers", kind: "host", affinity: 0, num_bufs: 4096, buf_size: 2048 }
    - { name: "few", kind: "host", affinity: 0, num_bufs: 100, buf_size: 1920 }
    interfaces:
    - name: "one"
      address: "loop0"
      rx: { queues: [ { name: "a", id: 0, cpu_core: -1, batch_size: 10, timeout_us: 1000, memory_regions: ["buffers"] } ] }
      tx: { queues: [ { name: "b", id: 0, cpu_core: -1, batch_size: 10, memory_regions: ["buffers"] } ] }
    - name: "two"
      address: "loop1"
      rx: { queues: [ { name: "a", id: 0, cpu_core: -1, batch_size: 10, timeout_us: 1000, memory_regions: ["few"] } ] }
      tx: { queues: [ { name: "b", id: 0, cpu_core: -1, batch_size: 10, memory_regions: ["buffers"] } ] }
`

// factsScript records 300 packets that two receives, and keeps them, so that it is soon without buffers; and 120 of one.
const factsScript = `
local daqiri = require "daqiri"
local s = daqiri.open("facts.yaml")
local one, two = s:rx_queue("one"), s:rx_queue("two")
local ng = s:write_pcap{ name = "ng", format = "pcapng", policy = "wait" }
s:pipe(one, ng)
s:pipe(two, ng)
s:pipe(one, s:write_pcap{ name = "nano", policy = "wait" })
s:pipe(one, s:write_pcap{ name = "micro", precision = "us", policy = "wait" })
s:pipe(one, s:write_pcap{ name = "ngmicro", precision = "us", format = "pcapng", policy = "wait" })
local kept = {}
two:on_burst(function(b) kept[#kept + 1] = b:keep() end, { policy = "wait" })
for name, n in pairs{ one = 300, two = 120 } do
  local tx = s:tx_queue(name)
  tx:pace{ pps = 9999 }
  tx:transmit{ template = tx:template{ payload_bytes = 100, udp_dst = 7000 + n }, count = n }
end
s:every(0.01, function()
  local l = s:stats()
  if l.one.rx.packets == 120 and l.two.rx.packets == 300 then s:stop() end
end)
s:run{ seconds = 60 }
`

// runFacts runs a script in a folder of its own, which it returns, and fails where that ends with another code.
func runFacts(t *testing.T, want int, script string, args ...string) (dir, out string) {
	t.Helper()
	program := harness.Built(t)
	dir = t.TempDir()
	for name, text := range map[string]string{"facts.yaml": factsConfig, "facts.lua": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, append([]string{"facts.lua"}, args...)...)
	cmd.Dir = dir
	text, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("exit code %d, want %d\n%s", code, want, text)
	}
	return dir, string(text)
}

// TestCaptureFacts has tshark say of which interface a packet is, what an interface lost, and when packets came.
func TestCaptureFacts(t *testing.T) {
	harness.Need(t, "tshark")
	dir, _ := runFacts(t, 0, factsScript)
	ng := filepath.Join(dir, "ng.pcapng")
	count := map[string]int{}
	ids := map[string]string{}
	for _, line := range harness.TsharkLines(t, ng, "frame.interface_name", "udp.dstport", "frame.interface_id") {
		name, rest, _ := strings.Cut(line, "\t")
		port, id, _ := strings.Cut(rest, "\t")
		count[name+" "+port]++
		ids[name] = id
	}
	there := count["two 7300"]
	if len(count) != 2 || count["one 7120"] != 120 || there == 0 || there > 100 || ids["one"] == ids["two"] {
		t.Fatalf("frames by interface and port: %v; interfaces %v", count, ids)
	}
	want := map[string]string{ids["one"]: "received 120, dropped 0, by the system 0", ids["two"]: fmt.Sprintf("received 300, dropped %d, by the system 0", 300-there)}
	blocks, err := exec.Command("tshark", "-n", "-r", ng, "-X", "read_format:MIME Files Format", "-V").Output()
	if err != nil {
		t.Fatal(err)
	}
	output := 0
	for _, m := range statistics.FindAllStringSubmatch(string(blocks), -1) {
		output++
		if got := fmt.Sprintf("received %s, dropped %s, by the system %s", m[2], m[3], m[4]); got != want[m[1]] {
			t.Errorf("interface %s: %s, want %s", m[1], got, want[m[1]])
		}
	}
	if output != 2 {
		t.Errorf("tshark shows statistics of %d interfaces, not of 2", output)
	}

	nano := harness.TsharkLines(t, filepath.Join(dir, "nano.pcap"), "frame.time_epoch")
	fine := slices.IndexFunc(nano, func(at string) bool { return !strings.HasSuffix(at, "000") })
	if len(nano) != 120 || fine < 0 {
		t.Fatalf("%d times, none of them finer than µs", len(nano))
	}
	for _, name := range []string{"micro.pcap", "ngmicro.pcapng"} {
		for k, at := range harness.TsharkLines(t, filepath.Join(dir, name), "frame.time_epoch") {
			if cut := nano[k][:len(nano[k])-3]; strings.TrimRight(at, "0") != strings.TrimRight(cut, "0") {
				t.Fatalf("%s: packet %d came at %s, in ns at %s", name, k, at, nano[k])
			}
		}
	}
}

// statistics finds the blocks in what tshark reports of a pcapng as a file.
var statistics = regexp.MustCompile(`(?s)Interface Statistics Block\n.*?Interface: (\d+)\n.*?Received Packets = (\d+)\n.*?Number of Dropped Packets = (\d+)\n.*?Dropped by OS = (\d+)\n`)

// TestManifestFacts compares a manifest with what others say: when packets began to move and came, what the script is, and which
// files are still there.
func TestManifestFacts(t *testing.T) {
	harness.Need(t, "tshark")
	dir, from := t.TempDir(), time.Now()
	cmd := writeCommand(t, dir, `{"rotate": "100KB", "quota": "400KB", "when_full": "delete_oldest"}`, "--packets", "1000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	end := time.Now()
	m := readManifest(t, filepath.Join(dir, "disk.manifest.json"))
	script, err := os.ReadFile(filepath.Join(dir, "write.lua"))
	if want := fmt.Sprintf("%x", sha256.Sum256(script)); err != nil || m.ScriptSHA256 != want {
		t.Errorf("the script is %s, the manifest has %s", want, m.ScriptSHA256)
	}
	var first time.Time
	deleted := 0
	for _, f := range m.Files {
		path := filepath.Join(dir, f.Path)
		if f.First == nil || f.Last == nil {
			t.Fatalf("%s has no times: %+v", f.Path, f)
		}
		if first.IsZero() {
			first = *f.First
		}
		if _, err := os.Stat(path); (err != nil) != f.Deleted {
			t.Errorf("%s: deleted is %v, and of the file: %v", f.Path, f.Deleted, err)
		}
		if f.Deleted {
			deleted++
			continue
		}
		times := harness.TsharkLines(t, path, "frame.time_epoch")
		if got := []time.Time{*f.First, *f.Last}; !got[0].Equal(epoch(t, times[0])) || !got[1].Equal(epoch(t, times[len(times)-1])) {
			t.Errorf("%s: first and last %v, and by tshark %s and %s", f.Path, got, times[0], times[len(times)-1])
		}
	}
	if deleted == 0 || deleted == len(m.Files) {
		t.Errorf("%d of %d files are deleted", deleted, len(m.Files))
	}
	if !m.Started.After(from) || !m.Started.Before(first) || m.Ended == nil || !m.Ended.After(first) || !m.Ended.Before(end) {
		t.Errorf("run from %v to %v: the manifest says from %v to %v, with the first packet at %v", from, end, m.Started, m.Ended, first)
	}
}

// epoch reads a time as tshark writes it.
func epoch(t *testing.T, text string) time.Time {
	t.Helper()
	s, ns, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseInt(s, 10, 64)
	frac, err2 := strconv.ParseInt((ns + "000000000")[:9], 10, 64)
	if err != nil || err2 != nil {
		t.Fatalf("%q is no time", text)
	}
	return time.Unix(sec, frac)
}

// pipeScript records into a pipe.
const pipeScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ writer = "pcap", options = "{}", seconds = 60 }
local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local o = daqiri.from_json(args.options)
o.name, o.manifest = "disk", false
s:pipe(rx, args.writer == "pcap" and s:write_pcap(o) or s:write_raw(o))
tx:transmit{ template = tx:template{ payload_bytes = 1000 }, count = 30000 }
tx:pace{ pps = 100000 }
s:run{ packets = 30000, seconds = args.seconds }
`

// TestDefaultPolicy records into a pipe that nothing reads. Without a policy a writer never holds its queue up: packets that it has
// no room for are lost to it, and counted as behind. With policy wait none is.
func TestDefaultPolicy(t *testing.T) {
	for _, c := range []struct {
		file, writer, options string
		seconds               string
		behind                bool
	}{
		{"disk.pcap", "pcap", `{}`, "60", true},
		{"disk.raw", "raw", `{}`, "60", true},
		{"disk.pcap", "pcap", `{"policy": "wait"}`, "2", false}, // its queue is held up for as long as it may
	} {
		t.Run(c.writer+" "+c.options, func(t *testing.T) {
			t.Parallel()
			program, dir := harness.Built(t), t.TempDir()
			path := filepath.Join(dir, c.file)
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			if err := os.WriteFile(filepath.Join(dir, "pipe.lua"), []byte(pipeScript), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "pipe.lua", "--writer", c.writer, "--options", c.options, "--seconds", c.seconds)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			code, behind := cmd.ProcessState.ExitCode(), strings.Contains(string(out), "dropped disk.behind: ")
			if code != 6 || behind != c.behind || !strings.Contains(string(out), "every packet is accounted for") {
				t.Errorf("exit code %d, packets behind: %v\n%s", code, behind, out)
			}
		})
	}
}
