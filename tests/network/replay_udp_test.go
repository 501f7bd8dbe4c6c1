package network

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const replayUDPConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: socket
    master_core: 0
    %s
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: rx_port
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://%s"}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 16, timeout_us: 1000, memory_regions: [m]}]}
    - name: tx_port
      address: 127.0.0.1
      socket_config: {mode: client, remote_addr: "udp://%[2]s"}
      tx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 16, memory_regions: [m]}]}
`

const replayUDPScript = `
local daqiri = require "daqiri"
local s = daqiri.open("udp.yaml")
local i = s:interface("rx_port")
i:on_connection(function() error("a UDP socket has no connections") end)
assert(i:connection():setsockopt("SOL_SOCKET", "SO_RCVBUF", 1000000))
local c, status = i:connect{ address = "127.0.0.1:9" }
assert(c == nil and status == "NOT_SUPPORTED", status)
s:pipe(s:rx_queue("rx_port"), s:write_pcap{ name = "disk", dir = "out", policy = "wait" })
s:rx_queue("rx_port"):on_burst(function(b)
  for i = 1, b.n do print(b:peer(i), b:packet(i):bytes()) end
end)
local tx = s:tx_queue("tx_port")
tx:transmit{ template = tx:template{ payload_bytes = 5 }, count = 7 }
s:threshold("rx_port.rx.dropped + disk.dropped == 0")
s:threshold("tx_port.tx.packets == 7")
s:run{}
`

// TestReplayUDP has tcpdump record datagrams of plain sockets, and runs a script of a UDP socket from the capture: it gets
// what was sent and from whom, and records it in the same order.
func TestReplayUDP(t *testing.T) {
	harness.Need(t, "tcpdump", "tshark", "root")
	const n = 60
	program := harness.Built(t)
	for _, host := range []string{"127.0.0.1", "::1"} {
		server, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("%s: %v", host, err)
			continue
		}
		defer server.Close()
		dir, at := t.TempDir(), server.LocalAddr().String()
		want := sendRecorded(t, filepath.Join(dir, "in.pcap"), at, n)
		for clock, line := range map[string]string{"real": "", "virtual": "loopback: {mode: sw, clock: virtual}"} {
			got := runFrom(t, dir, program, fmt.Sprintf(replayUDPConfig, line, at), "in.pcap,speed=max")
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s clock: the script got %d datagrams, other ones than the %d that were sent", host, clock, len(got), len(want))
			}
			fields := []string{"udp.srcport", "udp.dstport", "data.data"}
			if sent, wrote := harness.TsharkLines(t, filepath.Join(dir, "in.pcap"), fields...), harness.TsharkLines(t, filepath.Join(dir, "out", "disk.pcap"), fields...); !slices.Equal(sent, wrote) {
				t.Errorf("%s, %s clock: the file of %d datagrams is not the capture of %d", host, clock, len(wrote), len(sent))
			}
		}
	}
}

// sendRecorded sends n datagrams to a socket from three others, under the eyes of tcpdump. What the script shall print.
func sendRecorded(t *testing.T, file, to string, n int) (want []string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(to)
	dump := exec.Command("tcpdump", "-i", "lo", "-n", "-U", "-Z", "root", "-w", file, "-c", fmt.Sprint(n), "udp dst port "+port)
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dump.Process.Kill() }()
	harness.Until(t, "capture file", func() bool { info, err := os.Stat(file); return err == nil && info.Size() >= 24 })
	var senders []net.Conn
	for range 3 {
		c, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		senders = append(senders, c)
	}
	for k := range n {
		c, text := senders[k%3], fmt.Sprintf("%d%s", k, strings.Repeat("x", k*20))
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.LocalAddr().String()+"\t"+text)
	}
	done := make(chan error, 1)
	go func() { done <- dump.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("tcpdump has not seen all datagrams")
	}
	return want
}

// runFrom runs the script from a capture and returns what it printed.
func runFrom(t *testing.T, dir, program, config, source string) []string {
	t.Helper()
	_ = os.RemoveAll(filepath.Join(dir, "out"))
	for name, text := range map[string]string{"udp.yaml": config, "script.lua": replayUDPScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "--source", source, "script.lua")
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(stdout.String()), "\n")
}

// TestReplayPipe reads a capture from a pipe that delivers it in two pieces, on either clock, and refuses what a pipe can't
// do. A stop doesn't wait for a pipe that is silent.
func TestReplayPipe(t *testing.T) {
	program, dir := harness.Built(t), t.TempDir()
	config := fmt.Sprintf(replayUDPConfig, "", "192.0.2.2:7148")
	virtual := fmt.Sprintf(replayUDPConfig, "loopback: {mode: sw, clock: virtual}", "192.0.2.2:7148")
	file := filepath.Join(dir, "in.pcap")
	harness.BigEndianCapture(t, file, 50)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"udp.yaml": config, "virtual.yaml": virtual, "script.lua": `
local daqiri = require "daqiri"
local s = daqiri.open(daqiri.args{ config = "udp.yaml" }.config)
s:pipe(s:rx_queue("rx_port"), s:count())
s:threshold("rx_port.rx.packets == 50")
print("ready")
s:run{}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		source, config, fault string
		in                    []byte
		stop                  bool // before the pipe's end
		code                  int
	}{
		{"-,speed=max", "udp.yaml", "", text, false, 0},
		{"-,speed=max", "virtual.yaml", "source exhausted", text, false, 0},
		{"-,loops=2", "udp.yaml", "is a pipe, which is read once", text, false, 4},
		{"-", "udp.yaml", "it ended before a capture began", nil, false, 6},
		{"-", "udp.yaml", "(Ctrl-C)", nil, true, 5},
		{"-", "virtual.yaml", "(Ctrl-C)", nil, true, 5},
	} {
		cmd := exec.Command(program, "--source", tt.source, "script.lua", "--config", tt.config)
		var stdout, stderr harness.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		half := len(tt.in) / 2
		_, _ = in.Write(tt.in[:half]) // a refused pipe is closed
		if tt.stop {
			harness.Until(t, "script", func() bool { return strings.Contains(stdout.String(), "ready") })
		}
		time.Sleep(20 * time.Millisecond)
		if tt.stop {
			_ = cmd.Process.Signal(os.Interrupt)
		} else {
			_, _ = in.Write(tt.in[half:])
			_ = in.Close()
		}
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		if got := cmd.ProcessState.ExitCode(); got != tt.code || !strings.Contains(stderr.String(), tt.fault) {
			t.Errorf("--source %s, %s: exit code %d, want %d with %q:\n%s", tt.source, tt.config, got, tt.code, tt.fault, stderr.String())
		}
	}
}
