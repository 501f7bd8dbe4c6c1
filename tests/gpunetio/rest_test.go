package gpunetio

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestGnStopped: while the program stands still (SIGSTOP) a kernel's waits end at their limit; afterwards all continues. A wait
// that had no core at its limit of 200 ms ends later: by the clock a quarter of them has a tenth more at most, and none waits
// until the program continues. By what its thread ran, of which a virtual machine may count what its host took, none has more.
func TestGnStopped(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_stopped.lua"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := harness.StartReady(t, t.TempDir(), harness.Built(t), "--summary", "none", script)
	harness.Kill(t, cmd.Process.Pid, syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	harness.Kill(t, cmd.Process.Pid, syscall.SIGCONT)
	text, _ := io.ReadAll(stdout)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, stderr.String())
	}
	var got struct {
		InTime, AtLimit, Within, Other, Restarted, Posted, Completed int
		LongestMs, LongestRunMs                                      float64
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "_", "")), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	t.Logf("%+v: the longest wait of 200 ms", got)
	if got.InTime == 0 || got.AtLimit < 3 || got.Other != 0 || got.Restarted != 0 || got.Posted != got.Completed || got.LongestMs < 200 || got.LongestMs > 2900 ||
		got.Within < got.AtLimit/4 || got.LongestRunMs > 250 {
		t.Errorf("%+v", got)
	}
}

// kernelOf is the process of the only kernel of a program.
func kernelOf(t *testing.T, program int) (pid int) {
	t.Helper()
	if pid = harness.WorkerOf(t, program, "daqiri-run: kernel"); pid == 0 {
		t.Fatal("it has no process of its own for its kernel")
	}
	return pid
}

// TestGnOrphan: the process of a kernel, on the host or a GPU, ends with a program that was killed.
func TestGnOrphan(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_idle.lua"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := gpu.Variables()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range all {
		t.Setenv(name, value)
	}
	for _, memory := range []string{"host", "device"} {
		cmd, _, _ := harness.StartReady(t, t.TempDir(), harness.Built(t), "--summary", "none", script, "--memory", memory)
		dir := fmt.Sprintf("/proc/%d", kernelOf(t, cmd.Process.Pid))
		harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		gone := func() bool {
			status, err := os.ReadFile(filepath.Join(dir, "status"))
			return err != nil || strings.Contains(string(status), "\nState:\tZ") // whichever process is its parent now
		}
		for until := time.Now().Add(time.Minute); !gone(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: the kernel's process goes on", memory)
			}
		}
	}
}

// TestGnKept: what a kernel took and had not released when it ended counts as received, and what lay in its ring as stopped: on the host, and where
// the kernel keeps its place in the ring in the memory of a GPU, in a process of its own and in the program's.
func TestGnKept(t *testing.T) {
	all, err := gpu.Variables()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range all {
		t.Setenv(name, value)
	}
	for _, args := range [][]string{{"--memory", "host"}, {"--memory", "device"}, {"--memory", "device", "--beside"}} {
		cmd := exec.Command(harness.Built(t), slices.Concat([]string{"--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_keep.lua")}, args)...)
		out, err := cmd.CombinedOutput()
		if want := "in 12, out 5 of 500 bytes, stopped 7, held 0\n"; err != nil || string(out) != want {
			t.Errorf("%v: %v\n%s\nwant %s", args, err, out, want)
		}
	}
}

// cpuOf is the time of the CPU that a thread has taken, to the ns: the first number of its schedstat (proc(5)).
func cpuOf(t *testing.T, task string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(task, "schedstat"))
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}

// sleepsOf is how often a thread went to sleep by itself (proc(5)).
func sleepsOf(t *testing.T, task string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(task, "status"))
	_, n, found := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
	if err != nil || !found {
		t.Fatalf("%s: %v", text, err)
	}
	count, err := strconv.Atoi(strings.Fields(n)[0])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(count)
}

// shares measures for a second the parts of a CPU that threads take, and keeps the least of each: a busy machine makes all of
// them slower now and then.
func shares(t *testing.T, least map[string]float64) {
	before, from := map[string]time.Duration{}, time.Now()
	for task := range least {
		before[task] = cpuOf(t, task)
	}
	time.Sleep(time.Second)
	for task, was := range least {
		least[task] = min(was, (cpuOf(t, task)-before[task]).Seconds()/time.Since(from).Seconds())
	}
}

// TestGnIdle: a proxy without work sleeps, and so does the script; rings pin little memory.
func TestGnIdle(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_idle.lua"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, _ := harness.StartReady(t, t.TempDir(), harness.Built(t), "--summary", "none", script)
	defer func() {
		harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		t.Fatal(err)
	}
	pollers, least := []string{}, map[string]float64{}
	ran, slept := map[string]time.Duration{}, map[string]time.Duration{}
	for _, task := range tasks {
		least[task], ran[task], slept[task] = 1, cpuOf(t, task), sleepsOf(t, task)
		if name, _ := os.ReadFile(filepath.Join(task, "comm")); strings.HasPrefix(string(name), "poll ") {
			pollers = append(pollers, task)
		}
	}
	const looks, aim, all = 30, 0.05, 0.15 // of a CPU: a poller; all threads
	idle := func() bool {
		sum := 0.0
		for _, share := range least {
			sum += share
		}
		return sum <= all && !slices.ContainsFunc(pollers, func(p string) bool { return least[p] > aim })
	}
	for k := 0; k < 2 || k < looks && !idle(); k++ {
		shares(t, least)
	}
	said := ""
	for _, p := range pollers {
		said += fmt.Sprintf(" %.2f %%", 100*least[p])
		// One that never sleeps takes little, too, where many others want the core.
		if cpu, sleeps := cpuOf(t, p)-ran[p], sleepsOf(t, p)-slept[p]; cpu > (sleeps+10)*100*time.Microsecond {
			t.Errorf("a poller ran for %v, and slept %d times", cpu, sleeps)
		}
	}
	if t.Logf("pollers:%s", said); len(pollers) != 2 || !idle() {
		t.Errorf("pollers take%s of a CPU, want two that take 5 at most, and 15 all threads: %v", said, least)
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
