package harness

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

// StartReady starts a program in dir and returns once it has printed "ready". One that does not is killed and fails the test;
// whatever becomes of it, it does not outlive a minute.
func StartReady(t *testing.T, dir, program string, args ...string) (*exec.Cmd, io.Reader, *Buffer) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DAQIRI_TEST=1", "HOME="+dir)
	stderr := new(Buffer)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { deadline.Stop() })
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "ready\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the script is not ready: %q, %v\n%s", ready, err, stderr.String())
	}
	return cmd, out, stderr
}

// Kill sends a signal to a process.
func Kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// Await waits for a fact.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come to pass that %s", what)
		}
	}
}

// Exists reports whether a process is there.
func Exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// WorkerOf is the process of this name that a program has started; 0: there is none.
func WorkerOf(t *testing.T, program int, name string) (pid int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		dir := filepath.Dir(file)
		line, _ := os.ReadFile(file)
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if string(line) == name+"\x00" && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", program)) {
			pid, _ = strconv.Atoi(filepath.Base(dir))
		}
	}
	return pid
}

// FreeAddress returns an address of this host that is free for UDP and TCP.
func FreeAddress(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + require.Port(t)
}

// Until waits for a condition of the running programs; the bound is for a machine that is very busy.
func Until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after a minute", what)
		}
	}
}

// UDPWaits is how many bytes wait in the UDP socket of a port of 127.0.0.1 (proc_net_udp(5)); 0: there is no such socket.
func UDPWaits(t *testing.T, port int) (bytes uint64) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if words := strings.Fields(line); len(words) > 4 && words[1] == fmt.Sprintf("0100007F:%04X", port) {
			_, queued, _ := strings.Cut(words[4], ":")
			if bytes, err = strconv.ParseUint(queued, 16, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bytes
}

// WaitFor waits until a test's condition holds.
func WaitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
