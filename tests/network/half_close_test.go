package network

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// endingScript serves TCP connections with a handler of a case.
const endingScript = `
local daqiri = require "daqiri"
local s = daqiri.open{
  version = 1, stream_type = "socket", master_core = 0,
  memory_regions = {
    { name = "rx", kind = "host", affinity = 0, num_bufs = 256, buf_size = 4096 },
    { name = "tx", kind = "host", affinity = 0, num_bufs = 64, buf_size = 4096 },
  },
  interfaces = { { name = "port", address = "127.0.0.1",
    socket_config = { mode = "server", local_addr = "tcp://%[3]s" },
    rx = { queues = { { name = "rx", id = 0, %[1]s, batch_size = 16, memory_regions = { "rx" } } } },
    tx = { queues = { { name = "tx", id = 0, %[1]s, batch_size = 4, memory_regions = { "tx" } } } } } },
}
local q = s:tx_queue("port")
local function answer(c, text)
  local b = assert(c:alloc(1))
  b:fill(q:template{ payload = text })
  assert(c:send(b))
end
s:interface("port"):on_connection(function(c)
  local bytes = 0
  %[2]s
end)
s:start()
print("ready")
s:run()
`

// TestEndOfOneDirection has peers that end their stream and then read to its end: whatever the script sends
// by the end of its handler, and before it closes, comes, and then the end.
func TestEndOfOneDirection(t *testing.T) {
	program := harness.Built(t)
	const sent = 300000
	cases := []struct{ name, handlers, want string }{
		{"answers to the end of the stream", `
		  c:on_burst(function(b) bytes = bytes + b.bytes end)
		  c:on_disconnect(function(why) answer(c, bytes .. " bytes, " .. why) end)`,
			"300000 bytes, closed by the peer"},
		{"sends and closes", `
		  c:on_burst(function(b)
		    bytes = bytes + b.bytes
		    if bytes < 300000 then return end
		    for i = 1, 20 do answer(c, string.rep("x", 4000)) end
		    c:close()
		  end)`,
			strings.Repeat("x", 80000)},
	}
	for _, mode := range []string{`poll_mode = "direct"`, `cpu_core = -1`} {
		for _, c := range cases {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				t.Parallel()
				address := harness.FreeAddress(t)
				serveScript(t, program, fmt.Sprintf(endingScript, mode, c.handlers, address))
				for range 3 {
					if got := exchange(t, address, make([]byte, sent)); got != c.want {
						t.Errorf("got %d bytes, %.40q, want %d, %.40q", len(got), got, len(c.want), c.want)
					}
				}
			})
		}
	}
}

// serveScript runs a script that reports when it is ready.
func serveScript(t *testing.T, program, text string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "server.lua")
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out harness.Buffer
	run := exec.Command(program, script)
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
	harness.Until(t, "server", func() bool { return strings.Contains(out.String(), "ready\n") })
}

// exchange sends data, ends the stream, and reads to the end.
func exchange(t *testing.T, address string, data []byte) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(c, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}
