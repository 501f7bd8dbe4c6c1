package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// writeScript writes numbered frames of 1042 bytes at a pace, to folders and with options of its own.
const writeScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ options = "{}", pps = 50000, packets = 5000, more = 0 }
local s = daqiri.open()
local tx = s:tx_queue("loop0")
local o = daqiri.from_json(args.options)
o.name, o.policy = "disk", "wait"
s:pipe(s:rx_queue("loop0"), s:write_pcap(o))
tx:transmit{ template = tx:template{ payload_bytes = 1000, udp_dst = 7148 }, count = args.packets }
tx:pace{ pps = args.pps }
s:run{ packets = args.packets + args.more, seconds = 60 }
`

// writeCommand is a run of writeScript in dir.
func writeCommand(t *testing.T, dir, options string, args ...string) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "write.lua"), []byte(writeScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"write.lua", "--options", options}, args...)...)
	cmd.Dir = dir
	return cmd
}

// writtenManifest is what a test checks in a manifest.
type writtenManifest struct {
	State, Reason, Error string
	ScriptSHA256         string `json:"script_sha256"`
	Started              time.Time
	Ended                *time.Time
	Files                []struct {
		Path        string
		Bytes       int
		Packets     int
		CRC32C      string
		First, Last *time.Time
		Deleted     bool
	}
	Writer struct{ Format, Precision, Policy, Text string }
	Ledger struct {
		Lines []struct {
			Name string
			Out  int
		}
	}
	Configuration map[string]any
}

func readManifest(t *testing.T, path string) (m writtenManifest) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// frames counts what tshark reads of a capture, up to where it may be cut off.
func frames(t *testing.T, path string) int {
	t.Helper()
	out, _ := exec.Command("tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.len").Output()
	return wholeFrames(t, out)
}

// framesOf is the sum of frames of many files: a tshark for each of hundreds takes minutes, so that mergecap, which opens all that
// it is given, puts a hundred at a time together.
func framesOf(t *testing.T, paths []string) (n int) {
	t.Helper()
	for some := range slices.Chunk(paths, 100) {
		read := exec.Command("sh", append([]string{"-c", `mergecap -a -w - "$@" | tshark -n -r - -T fields -e frame.len`, "sh"}, some...)...)
		out, err := read.Output()
		if err != nil {
			t.Errorf("mergecap and tshark: %v", err)
		}
		n += wholeFrames(t, out)
	}
	return n
}

// wholeFrames counts tshark's lines, and fails where one is not of a frame as it was sent.
func wholeFrames(t *testing.T, out []byte) int {
	t.Helper()
	n := bytes.Count(out, []byte("1042\n"))
	if n != bytes.Count(out, []byte("\n")) {
		t.Errorf("tshark reads other frames than were sent: %.200s", out)
	}
	return n
}

// TestRotatedFiles has tshark, capinfos and editcap read every file of a rotated capture in two folders, and Go
// compute their checksums.
func TestRotatedFiles(t *testing.T) {
	harness.Need(t, "tshark", "capinfos")
	for _, format := range []string{"pcap", "pcapng"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := writeCommand(t, dir, fmt.Sprintf(`{"dirs": ["a", "b"], "format": %q, "rotate": "1MB"}`, format)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m := readManifest(t, filepath.Join(dir, "a", "disk.manifest.json"))
			if m.State != "finished" || m.Reason == "" || m.ScriptSHA256 == "" || len(m.Ledger.Lines) == 0 || len(m.Configuration) == 0 || len(m.Files) < 6 {
				t.Errorf("manifest: %+v", m)
			}
			if w := m.Writer; w.Format != format || w.Precision != "ns" || w.Policy != "wait" {
				t.Errorf("the manifest has the options %+v", w)
			}
			total := 0
			for _, f := range m.Files {
				path := filepath.Join(dir, f.Path)
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if sum := fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))); sum != f.CRC32C || len(data) != f.Bytes || len(data) > 1e6 {
					t.Errorf("%s: %d bytes with checksum %s, the manifest has %+v", f.Path, len(data), sum, f)
				}
				if n := frames(t, path); n != f.Packets {
					t.Errorf("%s: tshark reads %d frames, the manifest has %d", f.Path, n, f.Packets)
				}
				total += f.Packets
				info, err := exec.Command("capinfos", "-c", "-M", path).CombinedOutput()
				if err != nil || !strings.Contains(string(info), fmt.Sprintf("Number of packets:   %d\n", f.Packets)) {
					t.Errorf("capinfos: %v\n%s", err, info)
				}
				if text, err := exec.Command("editcap", path, path+".copy").CombinedOutput(); err != nil {
					t.Errorf("editcap: %v\n%s", err, text)
				}
			}
			if total != 5000 {
				t.Errorf("%d packets are in the files, of 5000", total)
			}
		})
	}
}

// TestKilledWriter kills the program while it writes: what is there reads as far as it goes, the manifest reports
// that it is unfinished, and a run that appends continues behind the last whole record.
func TestKilledWriter(t *testing.T) {
	harness.Need(t, "tshark")
	for _, format := range []string{"pcap", "pcapng"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			options := fmt.Sprintf(`{"format": %q, "append": true}`, format)
			cmd := writeCommand(t, dir, options, "--packets", "10000000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "disk."+format)
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if info, err := os.Stat(path); err == nil && info.Size() > 3e6 {
					break
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if m := readManifest(t, filepath.Join(dir, "disk.manifest.json")); m.State != "unfinished" || len(m.Configuration) == 0 {
				t.Errorf("manifest: %+v", m)
			}
			before := frames(t, path)
			if before < 2000 {
				t.Errorf("%d frames can be read", before)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, info.Size()-1); err != nil { // surely cut off now
				t.Fatal(err)
			}
			whole := frames(t, path)
			if out, err := writeCommand(t, dir, options, "--packets", "100").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := frames(t, path); n != whole+100 {
				t.Errorf("%d frames, of %d and 100 more", n, whole)
			}
		})
	}
}

// TestWriterFaults runs writers into a disk that is full or read-only and folders that go away: exit code 6 where
// something was lost, every packet accounted for, and whole files.
func TestWriterFaults(t *testing.T) {
	harness.Need(t, "netns", "capinfos")
	for _, c := range []struct{ name, prepare, options, meanwhile, want string }{
		{"full", "mount -t tmpfs -o size=2m disk d", `{"dir": "d", "format": "pcapng"}`, "", "no space left on device"},
		{"full while rotating", "mount -t tmpfs -o size=2m disk d", `{"dir": "d", "rotate": "300KB"}`, "", "no space left on device"},
		{"read-only", "mount -t tmpfs -o ro disk d", `{"dir": "d", "rotate": "300KB"}`, "", "read-only file system"},
		{"quota", "true", `{"dir": "d", "format": "pcapng", "quota": "1MB", "rotate": "300KB"}`, "", "quota is used up"},
		{"removed", "true", `{"dir": "d", "rotate": "300KB"}`, "while ! [ -e d/disk_000002.pcap ]; do sleep 0.01; done; mv d gone", "removed while writing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := writeCommand(t, dir, c.options, "--packets", "20000")
			line := "mkdir d && " + c.prepare + " || exit 99\n(true; " + c.meanwhile + "\n) & \"$@\"; code=$?; wait\n" +
				`for f in d/*.pcap*; do [ ! -e "$f" ] || capinfos -M -c "$f" || exit 98; done; exit $code`
			cmd := exec.Command("unshare", append([]string{"-m", "sh", "-c", line, "sh"}, run.Args...)...)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			code, text := cmd.ProcessState.ExitCode(), string(out)
			if !strings.Contains(text, c.want) {
				t.Errorf("the output lacks %q", c.want)
			}
			if moved := c.name != "read-only"; code != 6 || strings.Contains(text, "every packet is accounted for") != moved {
				t.Errorf("exit code %d, want 6 and a balanced account", code)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// TestFilesOfEarlierRun runs a writer a second time: files and manifest of the first run stay, byte for byte, and the second names where its
// own are. With overwrite it takes their place.
func TestFilesOfEarlierRun(t *testing.T) {
	for _, tt := range []struct{ options, warning, files string }{
		{`{}`, "writer disk: disk.pcap of an earlier run stays; this run writes ./disk_000000.pcap; hint: overwrite = true", "disk.pcap disk_000000.pcap"},
		{`{"overwrite": true}`, "", "disk.pcap"},
		{`{"append": true}`, "", "disk.pcap"},
		{`{"rotate": "1MB"}`, "", "disk_000000.pcap disk_000001.pcap"},
		{`{"per": "file"}`, "writer disk: disk.raw of an earlier run stays; this run writes ./disk_000000.raw; hint: ", "disk.raw disk_000000.raw"},
		{`{"per": "packet"}`, "", "disk_0 disk_1 disk_2 disk_3 disk_4"},
		{`{"per": "packet", "overwrite": true}`, "", "disk_0 disk_1 disk_2"},
	} {
		t.Run(tt.options, func(t *testing.T) {
			t.Parallel()
			dir, before := t.TempDir(), map[string]string{}
			overwrites := strings.Contains(tt.options, "overwrite")
			for run, packets := range []string{"3", "2"} {
				cmd := writeCommand(t, dir, tt.options, "--packets", packets)
				if strings.Contains(tt.options, "per") {
					text := strings.Replace(writeScript, "write_pcap", "write_raw", 1)
					if err := os.WriteFile(filepath.Join(dir, "write.lua"), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				warns := strings.Contains(string(out), "of an earlier run")
				if want := run == 1 && tt.warning != ""; warns != want || want && !strings.Contains(string(out), tt.warning) {
					t.Errorf("run %d: want the warning %q:\n%s", run, tt.warning, out)
				}
				if run == 0 {
					before = contents(t, dir)
				}
			}
			after := contents(t, dir)
			manifests := 0
			var files []string
			for name := range after {
				if strings.Contains(name, "manifest") {
					manifests++
				} else if strings.HasPrefix(name, "disk") {
					files = append(files, name)
				}
			}
			slices.Sort(files)
			if got := strings.Join(files, " "); got != tt.files {
				t.Errorf("files %s, want %s", got, tt.files)
			}
			if one := overwrites && !strings.Contains(tt.options, "packet"); one != (manifests == 1) {
				t.Errorf("%d manifests", manifests)
			}
			for name, text := range before {
				switch {
				case overwrites || name == "write.lua":
				case name == "disk.manifest.json":
					if after["disk.manifest.1.json"] != text {
						t.Errorf("%s is not the first run's any more", name)
					}
				case !strings.HasPrefix(after[name], text):
					t.Errorf("%s has changed", name)
				}
			}
		})
	}
}

// contents are the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[e.Name()] = string(text)
	}
	return texts
}

// larger reports whether a file has more than so many bytes.
func larger(path string, bytes int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > bytes
}

// startWriter starts a run of writeScript that sends so many packets, and ends when it is asked to.
func startWriter(t *testing.T, dir, options, packets string, more ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd, out := writeCommand(t, dir, options, append([]string{"--packets", packets, "--more", "1"}, more...)...), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// endWriter asks a run to end; its exit code.
func endWriter(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// written is what the ledger in a manifest reports that writer disk has written.
func (m *writtenManifest) written() (n int) {
	for _, line := range m.Ledger.Lines {
		if line.Name == "disk" {
			n += line.Out
		}
	}
	return n
}

// TestTwoRunsOneFolder starts a second run where one writes files of the same prefix: it is refused, changes nothing, and the
// first one's ledger is what tshark reads. When that has ended, another run leaves all of its files as they are.
func TestTwoRunsOneFolder(t *testing.T) {
	harness.Need(t, "tshark", "capinfos") // mergecap comes with capinfos
	for _, c := range []struct {
		options, first string
	}{
		{`{"rotate": "100KB"}`, "disk_000000.pcap"},
		{`{"rotate": "100KB", "quota": "1GB", "when_full": "delete_oldest"}`, "disk_000000.pcap"},
		{`{"append": true}`, "disk.pcap"},
		{`{}`, "disk.pcap"},
	} {
		t.Run(c.options, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			total := func() int {
				files, _ := filepath.Glob(filepath.Join(dir, "disk*.pcap"))
				return framesOf(t, files)
			}
			first, out := startWriter(t, dir, c.options, "10000000")
			harness.WaitFor(t, "the first run's packets", func() bool { return larger(filepath.Join(dir, c.first), 50e3) })
			refused, err := writeCommand(t, dir, c.options, "--packets", "500").CombinedOutput()
			if err == nil || !strings.Contains(string(refused), "disk: another run writes files of this prefix there; hint: ") {
				t.Errorf("the second run: %v\n%s", err, refused)
			}
			if m := readManifest(t, filepath.Join(dir, "disk.manifest.json")); m.State != "unfinished" {
				t.Errorf("the first run's manifest is %s", m.State)
			}
			if code := endWriter(t, first); code != 130 {
				t.Errorf("the first run ends with %d\n%s", code, out)
			}
			m := readManifest(t, filepath.Join(dir, "disk.manifest.json"))
			before := total()
			if before == 0 || m.State != "finished" || m.written() != before {
				t.Errorf("tshark reads %d packets, the %s manifest has %d", before, m.State, m.written())
			}
			if text, err := writeCommand(t, dir, c.options, "--packets", "500").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if n := total(); n != before+500 {
				t.Errorf("tshark reads %d packets after another run of 500, want %d", n, before+500)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestNoStartNoManifest runs a writer that can't open one of its files: it leaves no manifest, and that of an earlier run stays.
func TestNoStartNoManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "b", "disk.pcap"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ earlier, how string }{{"", "append"}, {"{}\n", "append"}, {"{}\n", "overwrite"}} {
		earlier, path := c.earlier, filepath.Join(dir, "a", "disk.manifest.json")
		if earlier != "" {
			if err := os.WriteFile(path, []byte(earlier), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := writeCommand(t, dir, fmt.Sprintf(`{"dirs": ["a", "b"], %q: true}`, c.how))
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(string(out), "b/disk.pcap: ") {
			t.Errorf("exit code %d\n%s", code, out)
		}
		if got, _ := os.ReadFile(path); string(got) != earlier {
			t.Errorf("the manifest has become %q", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", ".*")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// TestLateWriterKeepsManifest makes a writer when packets move already, where an earlier run has left a manifest.
func TestLateWriterKeepsManifest(t *testing.T) {
	dir := t.TempDir()
	script := `
		local daqiri = require "daqiri"
		local s = daqiri.open()
		local tx = s:tx_queue("loop0")
		s:start()
		local w = s:write_pcap{ name = "disk", policy = "wait" }
		s:rx_queue("loop0"):on_burst(function(b) w:write(b) end)
		tx:transmit{ template = tx:template{ payload_bytes = 100 }, count = 7 }
		s:run{ packets = 7, seconds = 60 }`
	if err := os.WriteFile(filepath.Join(dir, "late.lua"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		cmd := exec.Command(harness.Built(t), "late.lua")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		manifests, err := filepath.Glob(filepath.Join(dir, "disk.manifest*.json"))
		if err != nil || len(manifests) != run+1 {
			t.Errorf("after run %d: %v, %v", run+1, manifests, err)
		}
		for _, path := range manifests {
			if m := readManifest(t, path); m.State != "finished" || m.written() != 7 {
				t.Errorf("%s: state %s, %d packets", path, m.State, m.written())
			}
		}
	}
}

// TestTouchedFile has another process cut, replace and rename the file of a run: exit code 6, the file is named, and the ledger
// claims none of its packets, but those of the files before it.
func TestTouchedFile(t *testing.T) {
	harness.Need(t, "tshark")
	for _, c := range []struct {
		name, options, path, words string
		touch                      func(path string) error
	}{
		{"cut", `{}`, "disk.pcap", "something else changed its length", func(path string) error { return os.Truncate(path, 1000) }},
		{"renamed", `{}`, "disk.pcap", "the file was removed", func(path string) error { return os.Rename(path, path+".old") }},
		{"replaced", `{}`, "disk.pcap", "another file took its name", func(path string) error {
			if err := os.Link(path, path+".kept"); err != nil {
				return err
			}
			if err := os.WriteFile(path+".new", nil, 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
		{"a later one cut", `{"rotate": {"packets": 1000}}`, "disk_000002.pcap", "something else changed its length",
			func(path string) error { return os.Truncate(path, 24) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run, out := startWriter(t, dir, c.options, "2500")
			path := filepath.Join(dir, c.path)
			packets := int64(2500)
			if strings.Contains(c.options, "rotate") {
				packets = 500 // of the third file
			}
			harness.WaitFor(t, "all of the file", func() bool { return larger(path, 23+packets*(16+1042)) }) // a change in the midst of a write may go unseen
			if err := c.touch(path); err != nil {
				t.Fatal(err)
			}
			if code := endWriter(t, run); code != 6 {
				t.Errorf("exit code %d", code)
			}
			if text := out.String(); !strings.Contains(text, c.path+": "+c.words) || !strings.Contains(text, "every packet is accounted for") {
				t.Errorf("want %q in the output:\n%s", c.words, text)
			}
			m := readManifest(t, filepath.Join(dir, "disk.manifest.json"))
			want := 0
			for _, f := range m.Files {
				if f.Path != c.path {
					want += frames(t, filepath.Join(dir, f.Path))
				}
			}
			if m.written() != want || !strings.Contains(m.Error, c.words) {
				t.Errorf("the manifest has %d packets and the error %q, want %d", m.written(), m.Error, want)
			}
		})
	}
}
