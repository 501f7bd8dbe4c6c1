package gpu_test

import (
	"bufio"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// launches is the name of the process of launches on the host.
const launches = "daqiri-run: launches"

// TestLaunchEnds: a kernel that spins on the host ends with its script, with the session of its stage, and with a program that was killed.
func TestLaunchEnds(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpu/testdata/launch_hostile.lua"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how    string
		signal syscall.Signal
		says   string // on stderr
	}{
		{"launch", syscall.SIGINT, ""},
		{"stage", syscall.SIGINT, "kernel hostile: on the host: it was killed, as it did not end"},
		{"launch", syscall.SIGKILL, ""},
		{"stage", syscall.SIGKILL, ""},
	} {
		t.Run(c.how+", "+c.signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd, out, stderr := harness.StartReady(t, t.TempDir(), harness.Built(t), "--summary", "full", script, "--how", c.how, "--distance", "1")
			worker := 0
			harness.Await(t, "the kernel runs", func() bool {
				worker = harness.WorkerOf(t, cmd.Process.Pid, launches)
				return worker != 0 && spins(t, worker)
			})
			harness.Kill(t, cmd.Process.Pid, c.signal)
			text, _ := io.ReadAll(out)
			err := cmd.Wait()
			if c.signal == syscall.SIGINT && (cmd.ProcessState.ExitCode() < 0 || !strings.Contains(string(text)+stderr.String(), harness.Balanced)) {
				t.Errorf("%v: %s%s", err, text, stderr.String())
			}
			if !strings.Contains(string(text)+stderr.String(), c.says) {
				t.Errorf("it lacks %q: %s%s", c.says, text, stderr.String())
			}
			harness.Await(t, "its process is gone", func() bool { return !harness.Exists(worker) })
		})
	}
}

// spins reports whether a thread of the process is running.
func spins(t *testing.T, pid int) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(statusOf(t, file, "State"), "R") {
			return true
		}
	}
	return false
}

// TestLaunchMemory: the process that had a session's memory is gone when the session is closed.
func TestLaunchMemory(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpu/testdata/launch_session.lua"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, out, stderr := harness.StartReady(t, t.TempDir(), harness.Built(t), "--summary", "none", script)
	defer func() {
		harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	if worker := harness.WorkerOf(t, cmd.Process.Pid, launches); worker != 0 {
		t.Errorf("process %d is still there", worker)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "100\n" {
		t.Errorf("it counted %q: %v\n%s", line, err, stderr.String())
	}
}
