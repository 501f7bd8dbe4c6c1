package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// limitScript writes twice as much as a file may hold, on the clock given as its argument.
const limitScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ clock = "real" }
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = args.clock } } })
local tx = s:tx_queue("loop0")
s:pipe(s:rx_queue("loop0"), s:write_pcap{ name = "disk", policy = "wait" })
tx:transmit{ template = tx:template{ payload_bytes = 1000 }, count = 40000 }
s:run{ seconds = 3 }
`

// TestFileLimit lets a file grow to the process's limit (RLIMIT_FSIZE), which is a signal to the process that writes on: the
// program ends in order, the file holds whole records, and what is not in it is counted.
func TestFileLimit(t *testing.T) {
	const record = 16 + 42 + 1000
	program := harness.Built(t)
	for _, clock := range []string{"real", "virtual"} {
		t.Run(clock, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "limit.lua"), []byte(limitScript), 0o644); err != nil {
				t.Fatal(err)
			}
			// In blocks of 512 bytes; less would not hold the packets' memory, which is a file too.
			cmd := exec.Command("sh", "-c", `ulimit -f 40001; exec "$0" limit.lua --clock "$1"`, program, clock)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 6 {
				t.Errorf("exit code %d, want 6", code)
			}
			for _, want := range []string{"ulimit -f allows", "disk.write_error: ", "every packet is accounted for"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output lacks %q", want)
				}
			}
			info, err := os.Stat(filepath.Join(dir, "disk.pcap"))
			if err != nil || (info.Size()-24)%record != 0 || info.Size() < 40001*512-record {
				t.Errorf("the file ends within a record, or early: %v, %v", info.Size(), err)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
