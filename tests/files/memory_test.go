package files

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestPythonOwnsMemory runs the program of docs/memory.md: packets are received into its shared memory, and numpy compares their samples with what
// it has sent.
func TestPythonOwnsMemory(t *testing.T) {
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	shown := harness.BlocksOf(tree.Read(t, "docs/memory.md"), "python")
	if len(shown) != 1 {
		t.Fatalf("docs/memory.md shows %d programs", len(shown))
	}
	owner := exec.Command(python, "-c", shown[0]+"print('right')\n", harness.Built(t), require.Port(t))
	owner.Dir = t.TempDir()
	var problems harness.Buffer
	owner.Stderr = &problems
	if out, err := owner.Output(); err != nil || !strings.HasSuffix(string(out), "right\n") || !strings.Contains(problems.String(), harness.Balanced) {
		t.Errorf("%v: %s\n%s", err, out, problems.String())
	}
}

// memoryScript receives packets into a region that is bound to the file of its argument and reads them; it ends after 50 s or so many packets.
const memoryScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ file = "", packets = 0 }
local function region(name, owned) return { name = name, kind = "host", affinity = 0, num_bufs = 256, buf_size = 4096, owned = owned } end
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 16, memory_regions = { region } } end
local config = { version = 1, stream_type = "raw", master_core = 0, loopback = "sw", memory_regions = { region("out"), region("in", false) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local s = daqiri.open(config, { bindings = { ["in"] = { file = args.file } } })
local tx, rx, packets, sum, ready = s:tx_queue("a"), s:rx_queue("b"), 0, 0, false
rx:on_burst(function(b)
  for i = 1, b.n do sum = sum + b:packet(i):u16(4000) end -- in the missing pages, too
  packets = packets + b.n
  if packets >= 1000 and not ready then
    ready = true
    print("ready")
    io.stdout:flush()
  end
end)
tx:pace{ pps = 20000 }
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 4000 }, count = args.packets > 0 and args.packets or nil }
s:run{ seconds = 50, packets = args.packets > 0 and args.packets or nil }
`

// bound starts the script with memory of this process.
func bound(t *testing.T, memory *os.File, args ...string) (*exec.Cmd, io.Reader, *harness.Buffer) {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), memory.Fd())
	return harness.StartReady(t, t.TempDir(), harness.Built(t), append([]string{harness.WriteScript(t, memoryScript), "--file", path}, args...)...)
}

const memoryBytes = 2 << 20 // 256 buffers and more

// TestMemfdOfOtherProcess: packets are in the memfd of another process, which the session has sealed: it can't become shorter.
func TestMemfdOfOtherProcess(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	memory := os.NewFile(uintptr(fd), "memfd")
	defer memory.Close()
	if err := memory.Truncate(memoryBytes); err != nil {
		t.Fatal(err)
	}
	cmd, out, stderr := bound(t, memory, "--packets", "2000")
	if err := memory.Truncate(0); err == nil {
		t.Error("the memory of a running session has become shorter")
	}
	_, _ = io.ReadAll(out)
	if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), harness.Balanced) {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	text := make([]byte, memoryBytes)
	if _, err := memory.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	const port = "\x1b\xec" // 7148
	if n := strings.Count(string(text), port); n < 16 {
		t.Errorf("%d packets in the memory", n)
	}
}

// TestOwnerShrinksMemory: a file without seals becomes shorter while it receives packets. The session ends with the reason, and counts every packet.
func TestOwnerShrinksMemory(t *testing.T) {
	path := filepath.Join("/dev/shm", fmt.Sprintf("daqiri-test-%d", os.Getpid()))
	memory, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := memory.Truncate(memoryBytes); err != nil {
		t.Fatal(err)
	}
	cmd, out, stderr := bound(t, memory)
	if err := memory.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.ReadAll(out)
	err = cmd.Wait()
	const device = 4
	said := stderr.String()
	if cmd.ProcessState.ExitCode() != device || !strings.Contains(said, "memory region in: another process made its file shorter: 4096 of ") ||
		!strings.Contains(said, harness.Balanced) || strings.Contains(said, "SIGBUS") {
		t.Errorf("%v: %s", err, said)
	}
}
