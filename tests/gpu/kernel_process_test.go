package gpu_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestKernelProcess: the process of a kernel, persistent or launched, has no capability, a filter of its calls in each thread, no descriptor but its socket and its output,
// nothing of the program's environment that is secret, and no memory that can be written and run: with a program that root runs, and with an ordinary user's.
func TestKernelProcess(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not for kernels")
	for _, c := range []struct {
		worker string
		script []string
	}{
		{"daqiri-run: kernel", []string{"gpunetio/testdata/gn_idle.lua"}},
		{launches, []string{"gpu/testdata/launch_hostile.lua", "--distance", "1"}},
	} {
		t.Run(c.worker+", own user", func(t *testing.T) { kernelProcess(t, c.worker, c.script, os.Geteuid() != 0) })
		t.Run(c.worker+", nobody", func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root can become another user")
			}
			kernelProcess(t, c.worker, c.script, true, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
		})
	}
}

// kernelProcess checks the process of this name that a script, with its arguments, starts; the program is run by a command before it.
func kernelProcess(t *testing.T, worker string, script []string, ordinary bool, before ...string) {
	t.Helper()
	home := t.TempDir()
	program, file := filepath.Join(home, "daqiri-run"), filepath.Join(home, filepath.Base(script[0]))
	for to, from := range map[string]string{program: harness.Built(t), file: filepath.Join(tree.Root, "tests", script[0])} { // others can't read the clone, perhaps
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for folder, mode := range map[string]os.FileMode{home: 0o777, filepath.Dir(home): 0o755} {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
	}
	line := slices.Concat(before, []string{program, "--summary", "none", file}, script[1:])
	cmd, _, _ := harness.StartReady(t, home, line[0], line[1:]...)
	defer func() {
		harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	pid := 0
	harness.Await(t, "its kernel has a process", func() bool {
		pid = harness.WorkerOf(t, cmd.Process.Pid, worker)
		return pid != 0 && (worker != launches || spins(t, pid))
	})
	dir := fmt.Sprintf("/proc/%d", pid)
	threads, err := filepath.Glob(dir + "/task/*/status")
	if err != nil || len(threads) != 2 { // its first one, and the kernel's
		t.Fatalf("threads %v: %v", threads, err)
	}
	for _, name := range threads {
		checkRights(t, name, ordinary)
	}
	checkDescriptors(t, dir, cmd.Process.Pid)
	checkMappings(t, dir)
	if env, err := os.ReadFile(dir + "/environ"); err != nil || bytes.Contains(env, []byte("not for kernels")) || !bytes.Contains(env, []byte("PATH=")) {
		t.Errorf("environment %q: %v", env, err)
	}
	if cwd, err := os.Readlink(dir + "/cwd"); err != nil || cwd != "/" {
		t.Errorf("it works in %s: %v", cwd, err)
	}
	if children, err := os.ReadFile(fmt.Sprintf("%s/task/%s/children", dir, filepath.Base(dir))); err == nil && len(children) > 0 {
		t.Errorf("it has children: %s", children)
	}
	if limits, err := os.ReadFile(dir + "/limits"); err != nil || !regexp.MustCompile(`Max core file size +0 +0 `).Match(limits) {
		t.Errorf("limits %s: %v", limits, err)
	}
}

// checkRights reads the rights of a thread. The bound of an ordinary user's can't be lowered; no_new_privs makes it one of nothing.
func checkRights(t *testing.T, status string, ordinary bool) {
	t.Helper()
	for key, want := range map[string]string{"CapInh": "", "CapPrm": "", "CapEff": "", "CapAmb": "", "CapBnd": "", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := strings.TrimLeft(statusOf(t, status, key), "0"); got != want && (key != "CapBnd" || !ordinary) {
			t.Errorf("%s: %s %q, want %q", status, key, got, want)
		}
	}
}

// statusOf is a line of a status file of proc(5).
func statusOf(t *testing.T, file, key string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, value, found := strings.Cut(string(text), "\n"+key+":")
	if !found {
		t.Fatalf("%s has no %s", file, key)
	}
	value, _, _ = strings.Cut(value, "\n")
	return strings.TrimSpace(value)
}

// checkDescriptors compares the descriptors of a kernel's process with those that it needs; its output is the program's.
func checkDescriptors(t *testing.T, dir string, program int) {
	t.Helper()
	want := map[string]string{"0": "/dev/null", "3": "socket:["}
	for _, fd := range []string{"1", "2"} {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", program, fd))
		if err != nil {
			t.Fatal(err)
		}
		want[fd] = to
	}
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		to, err := os.Readlink(filepath.Join(dir, "fd", file.Name()))
		if begins, needed := want[file.Name()]; err != nil || !needed || !strings.HasPrefix(to, begins) {
			t.Errorf("descriptor %s is %s: %v", file.Name(), to, err)
		}
		delete(want, file.Name())
	}
	if len(want) > 0 {
		t.Errorf("it lacks descriptors: %v", want)
	}
}

// checkMappings looks for files other than programs and shared memory, and for what may be written and run.
func checkMappings(t *testing.T, dir string) {
	t.Helper()
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if strings.Contains(fields[1], "w") && strings.Contains(fields[1], "x") {
			t.Errorf("memory that can be written and run: %s", line)
		}
		if len(fields) > 5 && strings.HasPrefix(fields[5], "/") && fields[1] == "rw-s" && !strings.HasPrefix(fields[5], "/memfd:daqiri") {
			t.Errorf("a file that it can write to: %s", line)
		}
	}
}

// libcDistances are how far functions of the C library lie from printf, by name.
func libcDistances(t *testing.T, program string) map[string]int64 {
	t.Helper()
	out, err := exec.Command("ldd", program).CombinedOutput()
	m := regexp.MustCompile(`libc\.so\.6 => (\S+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("ldd: %v: %s", err, out)
	}
	f, err := elf.Open(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{}
	for _, s := range symbols {
		at[s.Name] = int64(s.Value)
	}
	for name := range at {
		if name != "printf" {
			at[name] -= at["printf"]
		}
	}
	return at
}

// hostileCalls are calls of the C library, by which a kernel would start programs, read and write files, reach others or gain rights.
var hostileCalls = []struct {
	call, text           string
	first, second, third int    // -1: the address of the text
	gave                 string // "": the process dies of SIGSYS
}{
	{"system", "touch done", -1, 0, 0, ""},
	{"popen", "r", -1, -1, 0, "0"},
	{"execve", "/bin/true", -1, 0, 0, ""},
	{"fork", "", 0, 0, 0, ""},
	{"open", "/etc/passwd", -1, os.O_RDONLY, 0, ""},
	{"creat", "done", -1, 0o644, 0, ""},
	{"unlink", "/proc/self/cwd/kept", -1, 0, 0, ""},
	{"socket", "", syscall.AF_INET, syscall.SOCK_STREAM, 0, ""},
	{"kill", "", os.Getpid(), 0, 0, ""},
	{"ptrace", "", syscall.PTRACE_ATTACH, os.Getpid(), 0, ""},
	{"memfd_create", "x", -1, 0, 0, ""},
	{"mprotect", "", 0, 4096, syscall.PROT_EXEC, "-1"},
	{"setuid", "", 0, 0, 0, "-1"},
	{"dup", "", 1, 0, 0, "-1"},
	{"setrlimit", "", 4, -1, 0, "-1"},
}

// TestHostileKernels: a kernel, persistent or launched, that calls what its source can't name, by the function's address, dies of it, or
// the call fails. The run ends as a device's, or continues where the script has caught the error, with its files and its ledger whole;
// nothing was done, and no process is left.
func TestHostileKernels(t *testing.T) {
	harness.Need(t, "capinfos")
	at := libcDistances(t, harness.Built(t))
	for _, c := range hostileCalls {
		if at[c.call] == 0 {
			t.Fatalf("the C library has no %s", c.call)
		}
		args := []string{"--distance", strconv.FormatInt(at[c.call], 10), "--text", c.text, "--first", strconv.Itoa(c.first), "--second", strconv.Itoa(c.second),
			"--third", strconv.Itoa(c.third)}
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			code, seconds := 4, "60"
			if c.gave != "" {
				code, seconds = 0, "1"
			}
			runHostile(t, "gn_hostile.lua", append(args, "--seconds", seconds), code, c.gave)
		})
		t.Run(c.call+", launched", func(t *testing.T) {
			t.Parallel()
			runHostile(t, "launch_hostile.lua", args, 0, c.gave)
		})
	}
	t.Run("store, launched", func(t *testing.T) {
		t.Parallel()
		runHostile(t, "launch_hostile.lua", []string{"--distance", "2", "--first", "4096", "--seconds", "1"}, 0, "kernel hostile: on the host: "+
			"its worker died of signal 11 (Segmentation fault); hint: it touched memory that it was not given")
	})
	t.Run("store, stage", func(t *testing.T) {
		t.Parallel()
		runHostile(t, "launch_hostile.lua", []string{"--how", "stage", "--distance", "2", "--first", "4096"}, 4, "error: stage hostile: kernel hostile: on the host: "+
			"its worker died of signal 11 (Segmentation fault); hint: it touched memory that it was not given")
	})
	t.Run("system, stage", func(t *testing.T) {
		t.Parallel()
		runHostile(t, "launch_hostile.lua", []string{"--how", "stage", "--distance", strconv.FormatInt(at["system"], 10)}, 4, "")
	})
}

// runHostile runs a script of testdata to its end in a folder of its own, and checks what it has left.
func runHostile(t *testing.T, name string, args []string, code int, says string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/gpu/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"--summary", "full", script}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DAQIRI_TEST=1", "HOME="+dir)
	out, _ := cmd.CombinedOutput()
	checkHostile(t, dir, string(out), cmd.ProcessState.ExitCode(), code, says)
}

// withHome are the processes that have this home: those that a program was started with, and all that it started.
func withHome(t *testing.T, home string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		env, _ := os.ReadFile(name) // of one that has gone, none
		if slices.Contains(strings.Split(string(env), "\x00"), "HOME="+home) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			found = append(found, string(line))
		}
	}
	return found
}

// checkHostile: text is a line of the output; "": the line about a call that Linux does not allow.
func checkHostile(t *testing.T, dir, out string, code, want int, text string) {
	t.Helper()
	line := regexp.MustCompile(`its worker died of signal 31 \(Bad system call\); hint: it asked Linux for a file, a process or the network`)
	if text != "" {
		line = regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(text) + `$`)
	}
	if code != want || !line.MatchString(out) || !strings.Contains(out, harness.Balanced) {
		t.Errorf("exit code %d, want %d and %v:\n%s", code, want, line, out)
	}
	if left := withHome(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || slices.Contains(files, filepath.Join(dir, "done")) || !slices.Contains(files, filepath.Join(dir, "kept")) {
		t.Errorf("files %v: %v", files, err)
	}
	m := regexp.MustCompile(`(?m)^ +disk +([\d,]+) +([\d,]+) `).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no line of the writer:\n%s", out)
	}
	written, err := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".pcap") {
			found += harness.PacketsIn(t, file, false)
		}
	}
	if found == 0 || found != written {
		t.Errorf("the files have %d packets, the ledger says %d", found, written)
	}
}

// TestCompilerOrphan: a compiler, and what it has started, end with a program that was killed.
func TestCompilerOrphan(t *testing.T) {
	dir := t.TempDir()
	home, bin := filepath.Join(dir, "home"), filepath.Join(dir, "bin")
	for _, folder := range []string{home, bin} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	seconds := fmt.Sprintf("86398.%d", os.Getpid()) // no other run's
	if err := os.WriteFile(filepath.Join(bin, "c++"), []byte("#!/bin/sh\n/bin/sleep "+seconds+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "k.lua")
	if err := os.WriteFile(script, []byte(`require("daqiri").kernel{ memory = "host", grid = 1, block = 1, src = "__global__ void f(int *a) {}" }`), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), script)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sleeper := func() bool { return len(withCommand(t, "/bin/sleep\x00"+seconds+"\x00")) > 0 }
	harness.Await(t, "the compiler runs", sleeper)
	harness.Kill(t, cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	harness.Await(t, "the compiler is gone", func() bool { return !sleeper() })
}

// withCommand are the processes that have this command line.
func withCommand(t *testing.T, line string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, _ := os.ReadFile(name); string(text) == line {
			found = append(found, name)
		}
	}
	return found
}
