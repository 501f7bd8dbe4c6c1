package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGnStopped: while the program stands still (SIGSTOP) a kernel's waits end at their limit; afterwards all goes on.
func TestGnStopped(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(rootDir, "tests/testdata/gn_stopped.lua"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := startReady(t, t.TempDir(), built(t), "--summary", "none", script)
	kill(t, cmd.Process.Pid, syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	kill(t, cmd.Process.Pid, syscall.SIGCONT)
	text, _ := io.ReadAll(stdout)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, stderr.String())
	}
	var got struct {
		InTime, AtLimit, Other, Restarted, Posted, Completed int
		LongestMs                                            float64
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "_", "")), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	t.Logf("%+v: the longest wait of 200 ms", got)
	if got.InTime == 0 || got.AtLimit < 3 || got.Other != 0 || got.Restarted != 0 || got.Posted != got.Completed || got.LongestMs < 200 || got.LongestMs > 2900 {
		t.Errorf("%+v", got)
	}
}

// cpuOf is the time of the CPU that a thread has taken.
func cpuOf(t *testing.T, task string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(task, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	const user, system = 11, 12 // fields behind the name, in hundredths of a second: proc(5)
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	u, _ := strconv.Atoi(f[user])
	s, _ := strconv.Atoi(f[system])
	return time.Duration(u+s) * 10 * time.Millisecond
}

// TestGnIdle: a proxy without work sleeps, and so does the script; rings pin little memory.
func TestGnIdle(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(rootDir, "tests/testdata/gn_idle.lua"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, _ := startReady(t, t.TempDir(), built(t), "--summary", "none", script)
	defer func() {
		kill(t, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		t.Fatal(err)
	}
	before, from := map[string]time.Duration{}, time.Now()
	for _, task := range tasks {
		before[task] = cpuOf(t, task)
	}
	time.Sleep(5 * time.Second)
	seen, all, took := 0, time.Duration(0), time.Since(from)
	for _, task := range tasks {
		name, _ := os.ReadFile(filepath.Join(task, "comm"))
		cpu := cpuOf(t, task) - before[task]
		all += cpu
		if strings.HasPrefix(string(name), "poll ") {
			seen++
			t.Logf("%s: %.1f %%", strings.TrimSpace(string(name)), 100*cpu.Seconds()/took.Seconds())
		}
	}
	// The proxy's part is 3 % where nothing else runs; twice that and more is for slow machines.
	if seen != 2 || all > took/5 {
		t.Errorf("%d pollers; all threads took %v in %v", seen, all, took)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if kib := mappedKiB(string(maps), "/memfd:daqiri-shared"); kib == 0 || kib > 1024 {
		t.Errorf("rings have %d KiB", kib)
	} else {
		t.Logf("rings have %d KiB", kib)
	}
}

// mappedKiB sums the sizes of the mappings of a file.
func mappedKiB(smaps, file string) (kib int) {
	_, rest, _ := strings.Cut(smaps, file)
	for ; rest != ""; _, rest, _ = strings.Cut(rest, file) {
		_, size, _ := strings.Cut(rest, "Size:")
		n, _ := strconv.Atoi(strings.Fields(size)[0])
		kib += n
	}
	return kib
}
