package network

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// senderScript sends to a server that isn't there yet, and handles no connection.
const senderScript = `
local daqiri = require "daqiri"
local s = daqiri.open{
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 64, buf_size = 1024 } },
  interfaces = { { name = "sensor", address = "127.0.0.1",
    socket_config = { mode = "client", remote_addr = "tcp://%s", retry_connect_s = 1 },
    tx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 4, memory_regions = { "m" } } } } } },
}
local tx = s:tx_queue("sensor")
tx:transmit{ template = tx:template{ payload = "here I am" }, count = 1 }
s:run()
`

// TestRefusedClientIsTold has a client whose server comes later: the log reports once why it waits, and what
// was sent meanwhile arrives.
func TestRefusedClientIsTold(t *testing.T) {
	address := harness.FreeAddress(t)
	script := filepath.Join(t.TempDir(), "sender.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, senderScript, address), 0o644); err != nil {
		t.Fatal(err)
	}
	var out harness.Buffer
	run := exec.Command(harness.Built(t), script)
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	found := "interface sensor: tcp://" + address + ": connection refused; it is tried again"
	harness.Until(t, "a word about the refusal", func() bool { return strings.Contains(out.String(), found) })
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("somebody else has taken the port meanwhile: %v", err)
	}
	defer func() { _ = l.Close() }()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	got := make([]byte, len("here I am"))
	if _, err := c.Read(got); err != nil || string(got) != "here I am" {
		t.Errorf("the server read %q, %v", got, err)
	}
	if n := strings.Count(out.String(), found); n != 1 {
		t.Errorf("the refusal was reported %d times\n%s", n, out.String())
	}
}
