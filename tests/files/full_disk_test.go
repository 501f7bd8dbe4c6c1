package files

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// fillScript writes frames of 1042 bytes by a writer of any kind.
const fillScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ kind = "write_pcap", options = "{}", packets = 5000 }
local s = daqiri.open()
local tx = s:tx_queue("loop0")
local o = daqiri.from_json(args.options)
o.name, o.dir, o.policy = "disk", "d", "wait"
s:pipe(s:rx_queue("loop0"), s[args.kind](s, o))
tx:transmit{ template = tx:template{ payload_bytes = 1000, udp_dst = 7148 }, count = args.packets }
s:run{ packets = args.packets, seconds = 60 }
`

// fillSteps run the program in a mount namespace with a disk of 2 MiB at d, three times: it fills the disk, finds it full, and finds it larger.
// Behind each run the disk is copied; what verify reports of the first two is kept.
const fillSteps = `
mkdir d && mount -t tmpfs -o size=2m disk d || exit 99
"$@" --packets 20000 >run1 2>&1; echo $? >code1
"$0" verify d/disk.manifest.json >verify1; cp -r d full
"$@" --packets 20000 >run2 2>&1; echo $? >code2
cp -r d refused
mount -o remount,size=20m d || exit 99
"$@" --packets 50 >run3 2>&1; echo $? >code3
cp -r d freed
"$0" verify d/disk.manifest.json >verify3`

// TestFullDisk fills a disk: the manifest has the run's end all the same, and verify reports what is there and what was lost. A run that finds the
// disk full does not start and leaves all as it is; one that finds room keeps both manifests.
func TestFullDisk(t *testing.T) {
	harness.Need(t, "netns", "tshark")
	for _, c := range []struct{ name, kind, options string }{
		{"pcap", "write_pcap", `{}`},
		{"pcapng", "write_pcap", `{"format": "pcapng"}`},
		{"rotated", "write_pcap", `{"rotate": "300KB"}`},
		{"file per packet", "write_raw", `{"per": "packet"}`},
		{"flat", "write_raw", `{}`},
		{"recording", "write_sigmf", `{"samples": {"type": "ci8"}}`},
		{"rotated recordings", "write_sigmf", `{"samples": {"type": "ri8"}, "rotate": "300KB"}`},
		{"more files than room", "write_pcap", `{"rotate": {"packets": 2}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "fill.lua"), []byte(fillScript), 0o644); err != nil {
				t.Fatal(err)
			}
			program := harness.Built(t)
			cmd := exec.Command("unshare", "-m", "sh", "-c", fillSteps, program, program, "fill.lua", "--kind", c.kind, "--options", c.options)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text := func(name string) string {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(text))
			}
			if codes := text("code1") + text("code2") + text("code3"); codes != "660" {
				t.Errorf("exit codes %s, want 6, 6 and 0\n%s\n%s\n%s", codes, text("run1"), text("run2"), text("run3"))
			}
			checkFilled(t, dir, c.kind == "write_pcap", c.name == "more files than room", text("verify1"))
			if !strings.Contains(text("run2"), "its manifest: ") || !strings.Contains(text("run2"), "no space left on device") {
				t.Errorf("the run on the full disk printed:\n%s", text("run2"))
			}
			before := contents(t, filepath.Join(dir, "full"))
			for _, later := range []string{"refused", "freed"} {
				after := contents(t, filepath.Join(dir, later))
				if later == "freed" {
					after["disk.manifest.json"] = after["disk.manifest.1.json"]
				} else if len(after) != len(before) {
					t.Errorf("%d files were there, and %d after the run that was refused", len(before), len(after))
				}
				for name, text := range before {
					if after[name] != text {
						t.Errorf("%s has changed", name)
					}
				}
			}
			if m := readManifest(t, filepath.Join(dir, "freed", "disk.manifest.json")); m.State != "finished" || m.Error != "" || m.written() != 50 || strings.Contains(text("verify3"), "FAIL") {
				t.Errorf("the last run: %+v\n%s", m, text("verify3"))
			}
		})
	}
}

// checkFilled holds the manifest of the run that filled the disk, and what verify reported, to the files.
func checkFilled(t *testing.T, dir string, captures, cut bool, verified string) {
	t.Helper()
	path := filepath.Join(dir, "full", "disk.manifest.json")
	m := readManifest(t, path)
	if m.State != "finished" || m.Ended == nil || !strings.Contains(m.Error, "no space left on device") {
		t.Errorf("the manifest has state %q, end %v, error %q", m.State, m.Ended, m.Error)
	}
	var more struct {
		LeftOut int `json:"files_left_out"`
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &more)
	}
	if err != nil || (more.LeftOut > 0) != cut || cut && !strings.Contains(verified, fmt.Sprintf("%d more files were written", more.LeftOut)) {
		t.Errorf("%d files were left out: %v", more.LeftOut, err)
	}
	packets := 0
	for _, f := range m.Files {
		file := filepath.Join(dir, "full", filepath.Base(f.Path))
		data, err := os.ReadFile(file)
		sum := fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
		if err != nil || len(data) != f.Bytes || sum != f.CRC32C {
			t.Errorf("%s: %d bytes with checksum %s: the manifest has %+v, %v", f.Path, len(data), sum, f, err)
		}
		if captures && !cut {
			if n := frames(t, file); n != f.Packets {
				t.Errorf("%s: tshark reads %d frames, the manifest has %d", f.Path, n, f.Packets)
			}
		}
		if want := fmt.Sprintf("ok    %s: %d bytes, %d packets", f.Path, len(data), f.Packets); !strings.Contains(verified, want) {
			t.Errorf("verify does not say %q", want)
		}
		packets += f.Packets
	}
	if len(m.Files) > 0 && !cut && packets != m.written() {
		t.Errorf("%d packets are in the files, the ledger has %d", packets, m.written())
	}
	want := fmt.Sprintf("%d of 20000 packets were written, %d were not: %d write_error", m.written(), 20000-m.written(), 20000-m.written())
	if !strings.Contains(verified, want) || strings.Contains(verified, "did not end") {
		t.Errorf("verify does not say %q:\n%s", want, verified)
	}
}
