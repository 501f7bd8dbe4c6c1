package network

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// endlessSender sends numbered datagrams of 200 bytes at a rate, 0 as fast as it can, until it is killed.
const endlessSender = `
import socket, struct, sys, time
pps, s, n, start, rest = float(sys.argv[1]), socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, time.perf_counter(), bytes(192)
while True:
    wait = start + n / pps - time.perf_counter() if pps else 0
    if wait > 0: time.sleep(wait)
    s.sendto(struct.pack(">Q", n) + rest, ("` + harness.RecvAddr + `", 7148))
    n += 1
`

// A numbered packet of a capture, and when the kernel got it.
type numbered struct {
	seq uint64
	ns  int64
}

// readNumbered reads a nanosecond pcap of the sender's datagrams.
func readNumbered(t *testing.T, path string) (all []numbered) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 24 || binary.LittleEndian.Uint32(data) != 0xa1b23c4d {
		t.Fatalf("%s is no nanosecond pcap: %v", path, err)
	}
	const payload = 14 + 20 + 8
	for data = data[24:]; len(data) >= 16+payload+8; {
		n := int(binary.LittleEndian.Uint32(data[8:]))
		ns := int64(binary.LittleEndian.Uint32(data))*1e9 + int64(binary.LittleEndian.Uint32(data[4:]))
		all = append(all, numbered{binary.BigEndian.Uint64(data[16+payload:]), ns})
		data = data[16+n:]
	}
	return all
}

// One capture of a stream that continues.
type endlessRound struct {
	file   []numbered
	stopNS int64 // when receiving ended, by the report
	lost   uint64
}

// captureEndless records with capture.lua, for some time or until an interrupt, and holds file and ledger together.
func (c *cable) captureEndless(program, seconds string, interrupt bool) endlessRound {
	t := c.T
	t.Helper()
	dir, code, output := "", 0, ""
	for range 5 { // where others keep the machine busy the writer may be behind, which the program reports, or the sender may send nothing
		dir = t.TempDir()
		before, _ := c.udp()
		code, output = c.captureOnce(program, seconds, interrupt, dir)
		now, _ := c.udp()
		if (code != 5 || !strings.Contains(output, "writer disk was behind")) && now > before {
			break
		}
	}
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one pcap\n%s", files, output)
	}
	r := endlessRound{file: readNumbered(t, files[0])}
	r.ledger(t, filepath.Join(dir, "summary.json"), output)
	return r
}

// captureOnce is the program's exit code, and what it printed.
func (c *cable) captureOnce(program, seconds string, interrupt bool, dir string) (int, string) {
	t := c.T
	t.Helper()
	script, err := filepath.Abs(filepath.Join(tree.Root, "scripts/network/capture.lua"))
	if err != nil {
		t.Fatal(err)
	}
	if interrupt {
		seconds = "300"
	}
	var out harness.Buffer
	before, _ := c.udp()
	cmd := c.Command(c.Recv, program, "--summary-json", filepath.Join(dir, "summary.json"), script, "--listen", harness.RecvAddr+":7148",
		"--generate=false", "--dir", dir, "--seconds", seconds)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if interrupt {
		harness.Until(t, "thousand datagrams", func() bool { now, _ := c.udp(); return now >= before+1000 })
		_ = cmd.Process.Signal(os.Interrupt)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

// ledger compares the report with the file: nothing was dropped, and each line has what the file has.
func (r *endlessRound) ledger(t *testing.T, path, output string) {
	t.Helper()
	var report struct {
		Sessions []struct {
			Violated []string
			Ledger   struct {
				StartNS int64 `json:"start_ns"`
				Seconds float64
				Lines   []struct {
					Kind, Name string
					In, Out    uint64
					Dropped    map[string]uint64
					Extra      map[string]uint64
				}
			}
		}
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil || len(report.Sessions) != 1 || len(report.Sessions[0].Violated) != 0 {
		t.Fatalf("the report: %v\n%s\n%s", err, data, output)
	}
	l := report.Sessions[0].Ledger
	r.stopNS = l.StartNS + int64(l.Seconds*1e9)
	for _, x := range l.Lines {
		dropped := uint64(0)
		for _, n := range x.Dropped {
			dropped += n
		}
		r.lost += x.Extra["kernel_dropped"]
		if x.Name == "rx_port" || x.Name == "disk" {
			if n := uint64(len(r.file)); x.In != n || x.Out != n || dropped != 0 {
				t.Errorf("%s: %d in, %d out, %d dropped, and %d packets in the file\n%s", x.Name, x.In, x.Out, dropped, n, output)
			}
		}
	}
}

// judge compares a capture with what tcpdump saw beside it: the file has all from its first packet up to the stop, and none
// after it. The two times of a packet are one reading of the wall clock, so their difference is that of the session's clock:
// where the wall clock was set by less than the engine takes for a step, times near the stop are off by so much.
func (r *endlessRound) judge(t *testing.T, round int, seen map[uint64]int64) {
	const near = 50 * time.Microsecond // two readings of two clocks, on a busy machine
	if len(r.file) == 0 {
		t.Errorf("round %d: an empty file", round)
		return
	}
	last := r.file[len(r.file)-1]
	off := time.Duration(seen[last.seq] - last.ns)
	if off.Abs() > near {
		t.Logf("round %d: the session's clock is %v behind the wall clock", round, off)
	}
	stop, slack := r.stopNS+int64(off), int64(near+off.Abs())
	for k, p := range r.file {
		at, ok := seen[p.seq]
		switch {
		case !ok:
			t.Fatalf("round %d: tcpdump has not seen packet %d", round, p.seq)
		case r.lost == 0 && p.seq != r.file[0].seq+uint64(k):
			t.Fatalf("round %d: packet %d follows packet %d", round, p.seq, r.file[k-1].seq)
		case at > stop+slack:
			t.Fatalf("round %d: packet %d came %v after the stop, and is in the file", round, p.seq, time.Duration(at-stop))
		}
	}
	next := last.seq + 1
	if at, ok := seen[next]; r.lost == 0 && (!ok || at < stop-slack) {
		t.Errorf("round %d: packet %d came %v before the stop, and is not in the file", round, next, time.Duration(stop-at))
	}
}

// A stream that does not pause is recorded again and again, ended by time and by Ctrl-C: no packet is dropped, and the file is
// what tcpdump beside it saw up to the stop. DAQIRI_TEST_ENDLESS is the number of captures, of 2 s each.
func TestCaptureEndlessStream(t *testing.T) {
	rounds, seconds := 6, "1"
	if n, err := strconv.Atoi(os.Getenv("DAQIRI_TEST_ENDLESS")); err == nil {
		rounds, seconds = n, "2"
	}
	c, program := newCable(t), harness.Built(t)
	c.endless(t, program, "2000", rounds, seconds)
}

// The same as fast as the kernel takes it; what it has no room for is its own to count.
func TestCaptureFlood(t *testing.T) {
	c, program := newCable(t), harness.Built(t)
	c.endless(t, program, "0", 2, "1")
}

func (c *cable) endless(t *testing.T, program, pps string, rounds int, seconds string) {
	t.Helper()
	harness.Need(t, "tcpdump", "scapy") // which brings python3
	beside := filepath.Join(t.TempDir(), "beside.pcap")
	var output harness.Buffer
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "-n", "-U", "--immediate-mode", "-s", "64", "-B", "65536", "--time-stamp-precision=nano", "-w", beside, "udp", "port", "7148")
	dump.Stderr = &output
	sender := c.Command(c.Send, "python3", "-c", endlessSender, pps)
	for _, cmd := range []*exec.Cmd{dump, sender} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		if cmd == dump {
			harness.Until(t, "tcpdump", func() bool { return strings.Contains(output.String(), "listening on") })
		}
	}
	var all []endlessRound
	for k := range rounds {
		all = append(all, c.captureEndless(program, seconds, k%2 == 1))
		if t.Failed() {
			t.Fatalf("in round %d", k)
		}
	}
	last := all[rounds-1].file
	harness.Until(t, "tcpdump to have what followed the last capture", func() bool {
		seen := readNumbered(t, beside) // an interrupt leaves what it has not read yet
		return len(seen) > 0 && len(last) > 0 && seen[len(seen)-1].seq > last[len(last)-1].seq
	})
	_ = sender.Process.Kill()
	_ = dump.Process.Signal(os.Interrupt)
	_ = dump.Wait()
	if !strings.Contains(output.String(), "\n0 packets dropped by kernel") {
		t.Skip("tcpdump itself has lost packets: ", output.String())
	}
	seen := map[uint64]int64{}
	for _, p := range readNumbered(t, beside) {
		seen[p.seq] = p.ns
	}
	packets := 0
	for k := range all {
		all[k].judge(t, k, seen)
		packets += len(all[k].file)
	}
	t.Logf("%d captures, %d packets, %d seen by tcpdump", rounds, packets, len(seen))
}
