package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// documents run as they stand: each with the least number of blocks that it has, so that none is passed by.
var documents = []struct {
	name    string
	lua, sh int
}{{"docs/tour.md", 0, 5}, {"docs/cookbook.md", 5, 2}, {"docs/formats.md", 1, 0}}

// TestDocumentBlocks runs every block of these documents as a reader would: commands in one folder in their order, each
// script in a file of its own. Files are in memory where that can be: what a document shows must not depend on a disk that others use.
func TestDocumentBlocks(t *testing.T) {
	program := harness.Built(t)
	for _, d := range documents {
		text := tree.Read(t, d.name)
		lua, sh := harness.BlocksOf(text, "lua"), harness.BlocksOf(text, "sh")
		if len(lua) < d.lua || len(sh) < d.sh {
			t.Errorf("%s has %d scripts and %d blocks of commands", d.name, len(lua), len(sh))
		}
		t.Run(d.name, func(t *testing.T) {
			if os.Getuid() != 0 {
				needDocumentPorts(t)
			}
			dir := memoryDir(t)
			run := func(what string, args ...string) {
				t.Helper()
				if os.Getuid() == 0 { // where nothing else has the ports that the documents name
					args = append([]string{"unshare", "-n", "sh", "-c", `ip link set lo up && exec "$@"`, "-"}, args...)
				}
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", what, err, out)
				}
			}
			for _, name := range []string{"forward.yaml"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(tree.Read(t, "scripts/network/"+name)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, block := range sh {
				run(block, "bash", "-euc", block)
			}
			for _, block := range lua {
				file := filepath.Join(dir, "block.lua")
				if err := os.WriteFile(file, []byte(block), 0o644); err != nil {
					t.Fatal(err)
				}
				run(block, program, "--summary", "none", file)
				run(block, program, "check", file)
			}
		})
	}
}

// needDocumentPorts skips t if a port that the documents name is in use: without root they have no network namespace.
func needDocumentPorts(t *testing.T) {
	t.Helper()
	for _, port := range []string{"7148", "7188"} {
		c, err := net.ListenPacket("udp", "127.0.0.1:"+port)
		if err != nil {
			t.Skipf("a port of the documents is taken, and a network namespace needs root: %v", err)
		}
		c.Close()
	}
}

// kernelHead is what the blocks of docs/kernels.md stand in: a session with a reorder stage's region on a GPU, and a board that sends.
const kernelHead = `local daqiri = require "daqiri"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 1024 },
    { name = "Agg_GPU", kind = "device", affinity = 0, num_bufs = 4, buf_size = 1024000 } },
  interfaces = { { name = "rx_port", address = "loop0",
    tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 256, memory_regions = { "packets" } } } },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 256, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
local tx = s:tx_queue("rx_port")
tx:pace{ pps = 1e7 }
tx:transmit{ count = 2048, template = tx:template{ format = daqiri.format{ { "seq", 32 } }, vary = { seq = 1 }, payload = ("\0\5"):rep(250) } }
`

// kernelSource is the power.cu of docs/kernels.md: the sum of the squares of a batch's numbers, a part of it for each element of out.
const kernelSource = `__global__ void power(const float *data, const unsigned long long *present, unsigned long long batch, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= 1024)
		return;
	float sum = 0;
	if (present[i / 64] >> (i % 64) & 1)
		for (int k = 0; k < 250; k++)
			sum += data[i * 250 + k] * data[i * 250 + k];
	out[i] = sum;
}
`

// TestKernelBlocks runs the blocks of docs/kernels.md on the stand-in for a GPU, each behind what it begins from.
func TestKernelBlocks(t *testing.T) {
	blocks := harness.BlocksOf(tree.Read(t, "docs/kernels.md"), "lua")
	if len(blocks) != 2 {
		t.Fatalf("%d scripts", len(blocks))
	}
	stage, _, _ := strings.Cut(blocks[0], "local out")
	for _, c := range []struct{ name, text, want string }{
		{"a kernel", blocks[0] + "s:run{ seconds = 1.5 }\nprint(out:snapshot():max())\n", "6250\n"}, // 250 times 5 * 5
		{"a library", stage + blocks[1] + "s:run{ seconds = 0.1 }\nlocal got = spectra:get()\nprint(got[1], got[2], math.abs(got[3]) < 1e-3)\n", "5120\t5120\ttrue\n"},
	} {
		script := harness.WriteScript(t, kernelHead+c.text)
		if err := os.WriteFile(filepath.Join(filepath.Dir(script), "power.cu"), []byte(kernelSource), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := harness.OnGPU(t, "", script); code != 0 || !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: exit code %d, want %q:\n%s", c.name, code, c.want, out)
		}
	}
}

// memoryDir is a folder that lies in memory, where a gigabyte is free there, or else on a disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < 1<<30 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "daqiri-run-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
