package files

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// recorded is a capture of so many UDP datagrams, in a folder of its own.
func recorded(t *testing.T, packets int) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	cmd := writeCommand(t, dir, `{}`, "--packets", fmt.Sprint(packets))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, filepath.Join(dir, "disk.pcap")
}

// TestOutputsReplaceNothing names as output of a run what it reads, what it writes elsewhere, and what is there: nothing that was there
// changes, and the error names the remedy.
func TestOutputsReplaceNothing(t *testing.T) {
	program := harness.Built(t)
	dir, capture := recorded(t, 50)
	for link, make := range map[string]func(string, string) error{"soft.pcap": os.Symlink, "hard.pcap": os.Link} {
		if err := make(capture, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"other.txt":   "notes of another program\n",
		".fresh.lock": "lock of another program\n",
		"config.yaml": fmt.Sprintf(harness.ReplayConfig, "pcap:none.pcap", ""),
		"replay.lua": `local daqiri = require "daqiri"
			local args = daqiri.args{ options = "{}" }
			local o = daqiri.from_json(args.options)
			local s = daqiri.open("config.yaml")
			s:pipe(s:rx_queue("src"), s:write_pcap(o))
			s:run()`,
		"array.lua": `local a = require("daqiri").array{ kind = "host", type = "uint32", shape = 4 }
			print(pcall(a.write, a, "other.txt"))
			print(a:write("fresh.npy"), pcall(a.write, a, "fresh.npy"))
			print(a:write("fresh.npy", { overwrite = true }))`,
		"fail.golden": "", "fail.lua": "print(1)",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, dir)
	const taken, reads = "there is such a file, which stays as it is; hint: another name, or --overwrite", "is a file that this run reads"
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"record disk.pcap -w disk.pcap", 2, taken},
		{"record disk.pcap -w soft.pcap", 2, taken},
		{"record disk.pcap -w hard.pcap", 2, taken},
		{"record disk.pcap -w disk.pcap --overwrite", 6, "disk.pcap is the capture that interface input replays"},
		{"record disk.pcap -w soft.pcap --overwrite", 6, "disk.pcap is the capture that interface input replays"},
		{"record hard.pcap -w disk.pcap --overwrite", 6, "hard.pcap is the capture that interface input replays"},
		{"--source disk.pcap replay.lua --options {\"prefix\":\"disk\",\"overwrite\":true}", 6, "disk.pcap is the capture that interface src replays"},
		{"--source disk.pcap replay.lua --options {\"prefix\":\"soft\",\"append\":true}", 6, "disk.pcap is the capture that interface src replays"},
		{"--summary-json other.txt --source disk.pcap replay.lua", 2, "--summary-json: other.txt: " + taken},
		{"--report other.txt --source disk.pcap replay.lua", 2, "--report: other.txt: " + taken},
		{"--overwrite --report soft.pcap --source disk.pcap replay.lua", 2, "--report: soft.pcap " + reads},
		{"--overwrite --summary-json replay.lua --source disk.pcap replay.lua", 2, "--summary-json: replay.lua " + reads},
		{"record disk.pcap -w x.pcap --overwrite --report hard.pcap", 2, "--report: hard.pcap " + reads},
		{"--report x.html --summary-json x.html --source disk.pcap replay.lua", 2, "x.html is the file of --summary-json already"},
		{"test --junit other.txt fail.lua", 2, "--junit: other.txt: " + taken},
		{"new replay", 2, "replay.lua is there already: choose another name"},
	} {
		cmd := exec.Command(program, strings.Fields(c.line)...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.line, code, c.code, c.says, out)
		}
		for name, text := range contents(t, dir) {
			if was, there := before[name]; !there || text != was {
				t.Fatalf("%s: %s was there: %v, and has %d bytes", c.line, name, there, len(text))
			}
		}
	}
	record := exec.Command(program, "record", "disk.pcap", "-w", "fresh.pcap")
	record.Dir = dir
	if out, err := record.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := contents(t, dir)[".fresh.lock"]; got != before[".fresh.lock"] {
		t.Errorf("a recorder has taken .fresh.lock: %q", got)
	}
	cmd := exec.Command(program, "array.lua")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if want := "other.txt is there, and stays as it is"; strings.Count(string(out), " is there, and stays as it is") != 2 ||
		!strings.Contains(string(out), want) || !strings.HasSuffix(string(out), "\ntrue\n") {
		t.Errorf("arrays: %s", out)
	}
	if got := contents(t, dir)["other.txt"]; got != before["other.txt"] {
		t.Errorf("an array has replaced other.txt: %q", got)
	}
}

// TestOutputTakenMeanwhile names for the summary the file that a writer of the run makes: the capture stays whole.
func TestOutputTakenMeanwhile(t *testing.T) {
	program := harness.Built(t)
	dir, capture := recorded(t, 50)
	copied := filepath.Join(dir, "copy.pcap")
	cmd := exec.Command(program, "record", capture, "-w", copied, "--summary-json", copied)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(string(out), "copy.pcap: there is such a file") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if n := frames(t, copied); n != 50 {
		t.Errorf("the capture has %d packets", n)
	}
}

// TestSummaryStderrFull: where stderr takes nothing, the file of --summary-json has the summary, and reports what failed.
func TestSummaryStderrFull(t *testing.T) {
	dir, capture := recorded(t, 50)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := exec.Command(harness.Built(t), "record", capture, "-w", "copy.pcap", "--summary-json", "s.json")
	cmd.Dir, cmd.Stderr = dir, full
	_ = cmd.Run()
	var got struct {
		ExitCode int `json:"exit_code"`
		Errors   []string
	}
	text, err := os.ReadFile(filepath.Join(dir, "s.json"))
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || cmd.ProcessState.ExitCode() != 6 || got.ExitCode != 6 || !strings.Contains(strings.Join(got.Errors, "\n"), "no space left on device") {
		t.Errorf("exit code %d, %v: %s", cmd.ProcessState.ExitCode(), err, text)
	}
	if n := frames(t, filepath.Join(dir, "copy.pcap")); n != 50 {
		t.Errorf("the capture has %d packets", n)
	}
}

// TestOverwrite gives up what is there: the run's files are the new ones, also through a link.
func TestOverwrite(t *testing.T) {
	harness.Need(t, "tshark")
	program := harness.Built(t)
	dir, capture := recorded(t, 50)
	target, summary := filepath.Join(dir, "target.pcap"), filepath.Join(dir, "summary.json")
	for _, name := range []string{target, summary} {
		if err := os.WriteFile(name, []byte(strings.Repeat("old", 100000)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(program, "record", capture, "-w", target, "--overwrite", "--summary-json", summary).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := frames(t, target); n != 50 {
		t.Errorf("the capture has %d packets", n)
	}
	if text, _ := os.ReadFile(summary); !strings.HasPrefix(string(text), "{") || strings.Contains(string(text), "oldold") {
		t.Errorf("the summary: %.80s", text)
	}
}

// TestNamesOfFiles records into names that are long, that are not UTF-8, that a folder has, and from a folder whose path is longer than the
// kernel takes: the file is right, or one line reports why it is not, with the exit code of storage.
func TestNamesOfFiles(t *testing.T) {
	program := harness.Built(t)
	dir, capture := recorded(t, 9)
	run := func(at string, stdin string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"-c", `cd "$1" && shift && exec "$@"`, "bash", at, program}, args...)...)
		if strings.HasPrefix(at, "deep") {
			cmd.Args[2] = `d=$(printf 'a%.0s' $(seq 200)); for k in $(seq 21); do mkdir -p $d && cd $d || exit 1; done; shift && exec "$@"`
		}
		cmd.Dir = dir
		if stdin != "" {
			in, err := os.Open(stdin)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			cmd.Stdin = in
		}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.pcap"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 200)
	for _, c := range []struct {
		name, at, stdin string
		args            []string
		code            int
		says            string
	}{
		{"200 bytes", ".", "", []string{"record", capture, "-w", long + ".pcap"}, 0, "9 packets"},
		{"201 bytes", ".", "", []string{"record", capture, "-w", long + "a.pcap"}, 6, "a name of more than 200 bytes"},
		{"250 bytes", ".", "", []string{"record", capture, "-w", long + long[:50] + ".pcap"}, 6, "a name of more than 200 bytes"},
		{"no UTF-8", ".", "", []string{"record", capture, "-w", "lat\xfc.pcap"}, 0, "9 packets"},
		{"no UTF-8, verified", ".", "", []string{"verify", "lat\xfc.manifest.json"}, 0, `ok    ./lat\xfc.pcap: `},
		{"a folder", ".", "", []string{"record", capture, "-w", "folder.pcap"}, 6, "folder.pcap: it is a folder; hint: name a file"},
		{"below a file", ".", "", []string{"record", capture, "-w", "file/x.pcap"}, 6, "folder file can't be made"},
		{"in /proc", ".", "", []string{"record", capture, "-w", "/proc/x.pcap"}, 6, "writer file: "},
		{"a deep folder", "deep", capture, []string{"record", "-", "-w", "o.pcap"}, 0, "9 packets"},
	} {
		if c.args[0] == "record" {
			c.args = append(c.args, "--summary", "none")
		}
		out, code := run(c.at, c.stdin, c.args...)
		if code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, "traceback") {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.name, code, c.code, c.says, out)
		}
		if c.code != 0 && strings.Count(strings.TrimSpace(strings.Split(out, "\n\n")[0]), "\n") != 0 {
			t.Errorf("%s: more than a line:\n%s", c.name, out)
		}
	}
}

// TestCaptureBesideScript replays a capture that a table names and that lies beside the script, from another folder.
func TestCaptureBesideScript(t *testing.T) {
	program := harness.Built(t)
	dir, _ := recorded(t, 9)
	script := `local s = require("daqiri").open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
		memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } },
		interfaces = { { name = "src", address = "pcap:disk.pcap",
			rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 8, memory_regions = { "m" } } } } } } } } }
		s:rx_queue("src"):on_burst(function() end)
		print(s:run{}.src.rx.packets)`
	if err := os.WriteFile(filepath.Join(dir, "table.lua"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--summary", "none", filepath.Join(dir, "table.lua"))
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "9\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestErrorsCount records an interface that is down from the start, and one that is removed meanwhile: the run fails, unless its script
// sets that off by name.
func TestErrorsCount(t *testing.T) {
	harness.Need(t, "netns")
	program := harness.Built(t)
	c := harness.NewCable(t)
	if out, err := c.Command(c.Recv, "ip", "link", "set", "veth0", "down").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	const script = `local s = require("daqiri").open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
		memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 } },
		interfaces = { { name = "in", address = "veth0", engine = "packet",
			rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 8, memory_regions = { "m" } } } } } } } } }
		s:rx_queue("in"):on_burst(function() end)
		s:threshold("errors >= 0")
		s:every(0.01, function() if s:stats().errors > 0 then s:stop() end end)
		s:run{ seconds = 60 }`
	if err := os.WriteFile(filepath.Join(dir, "off.lua"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"record", "veth0", "-w", filepath.Join(dir, "down.pcap"), "--seconds", "1"}, 5, "FAIL  errors == 0: violated (errors = 1)"},
		{[]string{filepath.Join(dir, "off.lua")}, 0, "ok    errors >= 0: passed (errors = 1)"},
	} {
		cmd := c.Command(c.Recv, append([]string{program}, r.args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != r.code || !strings.Contains(string(out), r.says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", r.args, code, r.code, r.says, out)
		}
	}
}
