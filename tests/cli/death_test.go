package cli

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// dyingScript records into files that have room reserved until a process ends it.
const dyingScript = `
local daqiri = require "daqiri"
local s = daqiri.open()
local tx = s:tx_queue("loop0")
tx:pace{ pps = 10000 }
s:pipe(s:rx_queue("loop0"), s:write_pcap{ name = "disk", policy = "wait", rotate = "64MiB" })
tx:transmit{ template = tx:template{ payload_bytes = 1000 } }
s:after(0, function() print("ready") end)
s:run{}
`

// TestDeath ends a capture in ways that it can't refuse, and in some that it can: the exit code names which, the files have at least
// what the last ledger reports, and nothing is left.
func TestDeath(t *testing.T) {
	harness.Need(t, "capinfos")
	program := harness.Built(t)
	for _, c := range []struct {
		name   string
		end    func(t *testing.T, pid, reporter int)
		code   int // -1: by SIGKILL, which a shell shows as 137
		cause  string
		died   bool
		stderr string
	}{
		{"SIGKILL", signalTo(syscall.SIGKILL), -1, "killed", true, "daqiri-run was killed; its last ledger, "},
		{"SIGABRT", signalTo(syscall.SIGABRT), 70, "internal", true, "daqiri-run ended by the fatal error above, please report it; its last ledger, "},
		{"SIGQUIT", signalTo(syscall.SIGQUIT), 131, "quit", false, "goroutine "},
		{"Ctrl-C to the group", func(t *testing.T, pid, _ int) { harness.Kill(t, -pid, syscall.SIGINT) }, 130, "interrupted", false, "(Ctrl-C)"},
		{"without its crash reporter", func(t *testing.T, pid, reporter int) {
			harness.Kill(t, reporter, syscall.SIGKILL)
			harness.Await(t, "the crash reporter is reaped", func() bool { return !harness.Exists(reporter) })
			harness.Kill(t, pid, syscall.SIGTERM)
		}, 143, "terminated", false, "(SIGTERM)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "s.lua"), []byte(dyingScript), 0o644); err != nil {
				t.Fatal(err)
			}
			// In a group of its own.
			cmd, _, stderr := harness.StartReady(t, dir, "setsid", program, "--summary-json", "out.json", "s.lua")
			pid := cmd.Process.Pid
			var reporter int
			harness.Await(t, "a third record is kept", func() bool { reporter = reporterOf(pid); return reporter != 0 && recordsOf(pid) > 2 })
			c.end(t, pid, reporter)
			_ = cmd.Wait()
			harness.Await(t, "the crash reporter is gone", func() bool { return !harness.Exists(reporter) })
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit code %d, want %d, and on stderr %q", code, c.code, c.stderr)
			}
			if c.died != strings.Contains(stderr.String(), "its last ledger") {
				t.Error("a last ledger where there is another, or none")
			}
			checkLast(t, dir, c.cause, c.died)
			if t.Failed() {
				t.Logf("stderr:\n%.3000s", stderr.String())
			}
		})
	}
}

// checkLast compares the JSON summary with the files, as capinfos reads them.
func checkLast(t *testing.T, dir, cause string, died bool) {
	t.Helper()
	var last struct {
		Cause    string
		Died     bool
		Sessions []struct {
			Ledger struct {
				Lines []struct {
					Name string
					Out  int
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil || last.Cause != cause || last.Died != died || len(last.Sessions) != 1 {
		t.Fatalf("summary: %v, %+v", err, last)
	}
	output := -1
	for _, l := range last.Sessions[0].Ledger.Lines {
		if l.Name == "disk" {
			output = l.Out
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "disk_*.pcap"))
	found := 0
	for _, file := range files {
		found += harness.PacketsIn(t, file, died)
		var st syscall.Stat_t
		if err := syscall.Stat(file, &st); err != nil || st.Blocks*512 > st.Size+1<<20 {
			t.Errorf("%s: %d bytes take %d: %v", file, st.Size, st.Blocks*512, err)
		}
	}
	if output < 1 || found < output || !died && found != output {
		t.Errorf("the ledger says %d packets, the files have %d", output, found)
	}
}

func signalTo(s syscall.Signal) func(t *testing.T, pid, reporter int) {
	return func(t *testing.T, pid, _ int) { harness.Kill(t, pid, s) }
}

// reporterOf is the process that a program has started beside itself; 0: none.
func reporterOf(pid int) int {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		var child int
		if _, err := fmt.Sscan(string(text), &child); err == nil {
			return child
		}
	}
	return 0
}

// recordsOf is how many records a program has kept for its crash reporter.
func recordsOf(pid int) uint64 {
	most := uint64(0)
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if name, _ := os.Readlink(fd); !strings.HasPrefix(name, "/memfd:daqiri-last") {
			continue
		}
		if text, err := os.ReadFile(fd); err == nil && len(text) >= 8 {
			most = max(most, binary.NativeEndian.Uint64(text))
		}
	}
	return most
}

// TestNoCrashReporter: a program whose script opens no session starts no crash reporter.
func TestNoCrashReporter(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.lua"), []byte(`print("ready") while true do end`), 0o644); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, _ := harness.StartReady(t, dir, program, "s.lua")
	time.Sleep(1500 * time.Millisecond) // longer than the period of the records
	if w := reporterOf(cmd.Process.Pid); w != 0 {
		t.Errorf("process %d was started", w)
	}
	harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
}
