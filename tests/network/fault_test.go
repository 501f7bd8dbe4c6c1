package network

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// sent is how many datagrams flood sends: more than the largest kernel buffer holds.
const sent = 60000

// slowScript receives with few buffers and a handler that is far too slow for its sender.
const slowScript = `
local daqiri = require "daqiri"
local s = daqiri.open({ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 2048 } },
  interfaces = { { name = "rx_port", address = "veth0", socket_config = { mode = "server", local_addr = "udp://0.0.0.0:7148" },
    rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 16, timeout_us = 1000, memory_regions = { "packets" } } } } } } } } })
s:rx_queue("rx_port"):on_burst(function()
  local until_ns = s:clock() + 50e6
  while s:clock() < until_ns do end
end)
s:run{}
`

// flood sends them as fast as it can.
var flood = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(` + strconv.Itoa(sent) + `):
    s.sendto(bytes(1400), ("` + harness.RecvAddr + `", 7148))
`

// TestSlowReceiverLosesNothingUncounted interrupts a receiver that is far behind. What the kernel delivered is what
// came in, what the kernel dropped is reported, and together they are what was sent.
func TestSlowReceiverLosesNothingUncounted(t *testing.T) {
	harness.Need(t, "scapy") // for its Python
	program := harness.Built(t)
	c := newCable(t)
	dir := t.TempDir()
	script, summary := filepath.Join(dir, "slow.lua"), filepath.Join(dir, "summary.json")
	if err := os.WriteFile(script, []byte(slowScript), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	run := c.Command(c.Recv, program, "--summary-json", summary, script)
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill() })
	harness.Until(t, "listening socket", func() bool { return strings.Contains(c.In(c.Recv, "cat", "/proc/net/udp"), ":1BEC ") })
	python, err := harness.ScapyPython()
	if err != nil {
		t.Fatal(err)
	}
	c.In(c.Send, python, "-c", flood)
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _ = run.Wait(); run.ProcessState.ExitCode() != 130 {
		t.Fatalf("exit code %d, want 130\n%s", run.ProcessState.ExitCode(), out.String())
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	delivered, lost := c.udp()
	if delivered+lost != sent {
		t.Errorf("the kernel delivered %d datagrams and lost %d of %d", delivered, lost, sent)
	}
	if got := figure(t, text, "in"); got != delivered {
		t.Errorf("%d came in, the kernel delivered %d\n%s", got, delivered, out.String())
	}
	if got := figure(t, text, "kernel_dropped"); got != lost {
		t.Errorf("%d are reported as dropped by the kernel, which lost %d\n%s", got, lost, out.String())
	}
}

// figure is the first number of this name in a summary, 0 where there is none.
func figure(t *testing.T, summary []byte, name string) int {
	t.Helper()
	m := regexp.MustCompile(`"` + name + `":\s*(\d+)`).FindSubmatch(summary)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
