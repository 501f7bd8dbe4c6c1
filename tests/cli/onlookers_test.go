package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// onlookersScript records datagrams into many files, and reports over its control channel how many came.
const onlookersScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ udp = "", tcp = "", packets = 0 }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 } },
  interfaces = { { name = "in", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://" .. args.udp },
    rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "m" } } } } } } } } }
s:pipe(s:rx_queue("in"), s:write_pcap{ name = "disk", dirs = { "captures" }, rotate = { packets = 100 }, policy = "wait" })
local ctl = daqiri.control{ tcp = args.tcp, token = "open sesame" }
ctl:on("came", function() return s:stats()["in"].rx.packets end)
ctl:on("stop", function() s:after(0, function() s:stop("that was all") end) return "bye" end)
s:after(0, function() print("ready") end)
s:run{ seconds = 300 }
`

// onlookers are 250 idle and 25 greedy peers of each of four listeners.
type onlookers struct {
	t     *testing.T
	mu    sync.Mutex
	conns []net.Conn
	over  atomic.Bool
	greed sync.WaitGroup
}

// come connects the idle ones, and starts the greedy ones, who say something, receive something, and come again.
func (o *onlookers) come(network, address, says string) {
	for range 250 {
		if c, err := net.DialTimeout(network, address, time.Minute); err == nil { // one that is full may refuse
			o.mu.Lock()
			o.conns = append(o.conns, c)
			o.mu.Unlock()
		}
	}
	for range 25 {
		o.greed.Add(1)
		go func() {
			defer o.greed.Done()
			for !o.over.Load() {
				if c, err := net.DialTimeout(network, address, time.Second); err == nil {
					_ = c.SetDeadline(time.Now().Add(time.Second))
					_, _ = io.WriteString(c, says)
					_, _ = c.Read(make([]byte, 4096))
					_ = c.Close()
				}
				time.Sleep(5 * time.Millisecond) // greedy, but not the only work of this machine
			}
		}()
	}
}

// leave ends all of them.
func (o *onlookers) leave() {
	o.over.Store(true)
	o.greed.Wait()
	for _, c := range o.conns {
		_ = c.Close()
	}
}

// control is the answer to a line of one who has the token.
func control(t *testing.T, address, line string) string {
	t.Helper()
	var last error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Minute)
		if last = err; err != nil {
			continue
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(c, "token open sesame\n%s\n", line)
		in := bufio.NewScanner(c)
		var lines []string
		for len(lines) < 2 && in.Scan() {
			lines = append(lines, in.Text())
		}
		_ = c.Close()
		if last = in.Err(); len(lines) == 2 {
			return lines[1]
		}
	}
	t.Fatalf("control at %s does not answer: %v", address, last)
	return ""
}

// TestOnlookers: a thousand idle peers and a hundred greedy ones of a program that may have 128 descriptors cost no packet of a capture into many
// files; who has the control channel's token gets in; and afterwards every listener answers.
func TestOnlookers(t *testing.T) {
	dir, program, udp, ctl, web, metrics := t.TempDir(), harness.Built(t), harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(onlookersScript), 0o644); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "a.sock")
	cmd, _, stderr := harness.StartReady(t, dir, "/bin/bash", "-c", `ulimit -n 128 && exec "$@"`, "bash", program, "--attach="+socket, "--web", web, "--metrics", metrics,
		"x.lua", "--udp", udp, "--tcp", ctl)
	o := &onlookers{t: t}
	o.come("tcp", ctl, "came\n")
	o.come("tcp", web, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	o.come("tcp", metrics, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	o.come("unix", socket, "{\"protocol\":1,\"mode\":\"view\"}\n")
	to, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	const packets = 3000
	for k := range packets {
		if _, err := to.Write(make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		if k%50 == 49 {
			harness.Until(t, "empty socket", func() bool { return harness.UDPWaits(t, to.RemoteAddr().(*net.UDPAddr).Port) == 0 })
		}
	}
	harness.Until(t, "packet of all", func() bool { return control(t, ctl, "came") == fmt.Sprintf(`{"ok":true,"reply":%d}`, packets) })
	o.leave()
	for _, url := range []string{"http://" + web + "/", "http://" + metrics + "/metrics"} {
		r, err := http.Get(url)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%s afterwards: %v, %v", url, r, err)
		}
	}
	look := exec.Command(program, "attach", "--view", socket)
	text, err := look.StdoutPipe()
	if err != nil || look.Start() != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(text).ReadString('\n'); err != nil {
		t.Errorf("a viewer afterwards: %q, %v", line, err)
	}
	_ = look.Process.Kill()
	_ = look.Wait()
	if output := control(t, ctl, "stop"); output != `{"ok":true,"reply":"bye"}` {
		t.Error(output)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for _, file := range files {
		recorded += len(harness.PcapLengths(file))
	}
	if recorded != packets || len(files) != packets/100 || !strings.Contains(stderr.String(), "every packet is accounted for") {
		t.Errorf("%d packets in %d files, want %d in %d\n%s", recorded, len(files), packets, packets/100, stderr.String())
	}
}
