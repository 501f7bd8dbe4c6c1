package files

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const hungDiskScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ dir = "" }
local s = daqiri.open()
local tx = s:tx_queue("loop0")
s:pipe(s:rx_queue("loop0"), s:write_pcap{ name = "disk", dir = args.dir, prefix = "run", policy = "drop" })
tx:pace{ pps = 50000 }
tx:transmit{ template = tx:template{ payload_bytes = 1000 } }
s:run{ seconds = 1.5 }
s:close()
print "the script went on"
`

// TestHungDisk freezes a file system while a writer is at work, as a network share does whose server is gone: the run ends
// all the same, names which stage it left behind, accounts for its packets, and ends with the code of a device. The disk
// comes back afterwards, as the kernel lets no process go that waits for it.
func TestHungDisk(t *testing.T) {
	harness.Need(t, "root", "loopmount")
	program, dir := harness.Built(t), t.TempDir()
	disk := filepath.Join(dir, "disk")
	sh := func(line string) error {
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Logf("%s: %v: %s", line, err, out)
		}
		return err
	}
	image := filepath.Join(dir, "image")
	if sh("truncate -s 400M "+image+" && mkfs.ext4 -q "+image+" && mkdir "+disk+" && mount -o loop "+image+" "+disk) != nil {
		t.Fatal("no disk of its own")
	}
	t.Cleanup(func() { _ = sh("umount " + disk) })
	script, report := filepath.Join(dir, "script.lua"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(script, []byte(hungDiskScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--summary-json", report, script, "dir="+disk)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "file", func() bool {
		info, err := os.Stat(filepath.Join(disk, "run.pcap"))
		return err == nil && info.Size() > 100_000
	})
	if sh("fsfreeze -f "+disk) != nil {
		t.Fatal("the disk can't be frozen")
	}
	thaw := func() { _ = sh("fsfreeze -u " + disk) }
	defer func() {
		if cmd.ProcessState == nil {
			thaw()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	harness.Until(t, "report", func() bool { data, err := os.ReadFile(report); return err == nil && json.Valid(data) })
	thaw()
	err := cmd.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 4 {
		t.Errorf("the program ended with %v, want exit code 4", err)
	}
	for _, want := range []string{"stage disk did not end", "every packet is accounted for"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("its summary lacks %q:\n%s", want, stderr.String())
		}
	}
	if !strings.Contains(stdout.String(), "the script went on") {
		t.Errorf("the script did not go on: %s", stdout.String())
	}
	var r struct {
		Cause    string
		Sessions []struct{ Abandoned []string }
	}
	data, _ := os.ReadFile(report)
	if err := json.Unmarshal(data, &r); err != nil || r.Cause != "device" || len(r.Sessions) != 1 || len(r.Sessions[0].Abandoned) != 1 || r.Sessions[0].Abandoned[0] != "disk" {
		t.Errorf("the report says %+v (%v)", r, err)
	}
}
