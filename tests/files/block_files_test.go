package files

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// TestBlockFiles compares every block, bit and byte of what is written from a bad wire, and again from the capture of it,
// with what was sent and what came in.
func TestBlockFiles(t *testing.T) {
	harness.Need(t, "scapy") // for python3
	program, dir := harness.Built(t), t.TempDir()
	run := func(args ...string) map[string]int {
		t.Helper()
		cmd := harness.BlocksRun(t, program, dir, args...)
		var output strings.Builder
		cmd.Stderr = &output
		out, err := cmd.Output()
		figures := map[string]int{}
		if err == nil {
			err = json.Unmarshal(out, &figures)
		}
		if err != nil || !strings.Contains(output.String(), "every packet is accounted for") {
			t.Fatalf("%v: %s\n%s", err, out, output.String())
		}
		return figures
	}
	f := run("--options", `{"dirs": ["a", "b", "c"], "rotate": "1MB"}`, "--pcap", "seen")
	files := harness.CheckBlocksManifest(t, dir, "a/disk.manifest.json")
	if len(files) < 12 {
		t.Errorf("%d files, of 400 blocks of 36 KiB in 3 folders", len(files))
	}
	blocks, packets, holes := harness.ReadBlocks(t, dir, "seen.pcap", files)
	if blocks != 400 || blocks != f["written"] || holes < 100 || f["duplicates"] < 100 || holes != f["missing"] || f["lost"] != 0 {
		t.Errorf("%d blocks, %d packets, %d holes: %v", blocks, packets, holes, f)
	}
	again := run("--options", `{"dirs": ["d", "e"], "rotate": {"packets": 70}}`, "--policy", "wait", "--source", "seen.pcap")
	if more := again["lost"] + again["dropped"] - again["duplicates"]; more != 0 || again["duplicates"] != f["duplicates"] {
		t.Errorf("replayed: %v, at first: %v", again, f)
	}
	files = harness.CheckBlocksManifest(t, dir, "d/disk.manifest.json")
	if b, p, h := harness.ReadBlocks(t, dir, "seen.pcap", files); b != blocks || p != packets || h != holes {
		t.Errorf("replayed: %d blocks, %d packets, %d holes; at first %d, %d, %d", b, p, h, blocks, packets, holes)
	}
}

// TestBlockFaults has block files on a disk that fills up and in a folder that goes away: whole blocks up to there, what
// is lost is counted, and the exit code reports it.
func TestBlockFaults(t *testing.T) {
	harness.Need(t, "netns", "scapy")
	program := harness.Built(t)
	for _, c := range []struct{ name, prepare, options, meanwhile, want string }{
		{"full", "mount -t tmpfs -o size=2m disk d", `{"dir": "d"}`, "", "no space left on device"},
		{"full while rotating", "mount -t tmpfs -o size=2m disk d", `{"dir": "d", "rotate": "300KB"}`, "", "no space left on device"},
		{"removed", "true", `{"dir": "d", "rotate": "300KB"}`, "while ! [ -e d/disk_000003.dqb ]; do sleep 0.01; done; mv d gone", "removed while writing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := harness.BlocksRun(t, program, dir, "--clock", "real", "--pps", "50000", "--options", c.options)
			line := "mkdir d && " + c.prepare + " || exit 99\n(true; " + c.meanwhile + "\n) & \"$@\"; code=$?; wait\n" +
				"mkdir -p gone; cp d/* gone 2>/dev/null; exit $code"
			cmd := exec.Command("unshare", append([]string{"-m", "sh", "-c", line, "sh"}, run.Args...)...)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 6 || !strings.Contains(string(out), c.want) ||
				!strings.Contains(string(out), "every packet is accounted for") {
				t.Errorf("exit code %d, want 6, %q and a balanced account:\n%s", code, c.want, out)
			}
			checkLeft(t, filepath.Join(dir, "gone"), 20)
			if m := readManifest(t, filepath.Join(dir, "gone", "disk.manifest.json")); c.meanwhile == "" && m.State != "finished" {
				t.Errorf("the manifest's state is %s", m.State)
			}
		})
	}
}

// TestKilledBlocks kills the program while it writes: the file reads up to its last whole block.
func TestKilledBlocks(t *testing.T) {
	harness.Need(t, "scapy")
	dir := t.TempDir()
	cmd := harness.BlocksRun(t, harness.Built(t), dir, "--clock", "real", "--pps", "50000", "--packets", "10000000", "--options", `{"dir": "d"}`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if info, err := os.Stat(filepath.Join(dir, "d", "disk_000000.dqb")); err == nil && info.Size() > 6e6 {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	checkLeft(t, filepath.Join(dir, "d"), 100)
	if m := readManifest(t, filepath.Join(dir, "d", "disk.manifest.json")); m.State != "unfinished" {
		t.Errorf("manifest: %+v", m)
	}
}

// checkLeft reads the block files in dir, of which there have to be so many blocks.
func checkLeft(t *testing.T, dir string, least int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.dqb"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	if blocks, packets, _ := harness.ReadBlocks(t, dir, "", files); blocks < least || packets < 40*least {
		t.Errorf("%d blocks with %d packets are in the files", blocks, packets)
	}
}
