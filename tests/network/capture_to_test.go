package network

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// anyAddress captures what comes to sockets that are bound to all addresses, and ends after 13 datagrams.
const anyAddress = `
local daqiri = require "daqiri"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "four", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 },
    { name = "six", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
  interfaces = {
    { name = "four", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://0.0.0.0:7148" },
      rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "four" } } } } },
    { name = "six", address = "::", socket_config = { mode = "server", local_addr = "udp://[::]:7149" },
      rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "six" } } } } } } } } }
local disk = s:write_pcap{ name = "disk", policy = "wait" }
s:pipe(s:rx_queue("four"), disk)
s:pipe(s:rx_queue("six"), disk)
assert(s:interface("four"):join_multicast{ groups = "239.9.1.1" })
s:after(0, function() print("ready") end)
s:run{ packets = 13 }
`

// sendTo sends datagrams of 100 bytes and more to what the arguments name, and three at once to the last, which the kernel joins.
const sendTo = `
import socket, sys
for k, to in enumerate(sys.argv[1:]):
    host, port = to.rsplit(":", 1)
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x" * (100 + k), (host, int(port)))
s.setsockopt(17, 103, 1000)
for _ in range(2):
    s.sendto(b"y" * 3000, (host, int(port)))
`

var dumpLine = regexp.MustCompile(`(?m)^.*IP6? (\S+) > (\S+): UDP, length (\d+)`)

// conversations are the UDP payload bytes of a capture by its ends, as tcpdump reads them.
func conversations(file string) map[string]int {
	out, _ := exec.Command("tcpdump", "-nn", "-r", file, "udp").Output() // it fails where the last packet is still being written
	found := map[string]int{}
	for _, m := range dumpLine.FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.Atoi(m[3])
		found[m[1]+" > "+m[2]] += n
	}
	return found
}

func sum(conversations map[string]int) (n int) {
	for _, bytes := range conversations {
		n += bytes
	}
	return n
}

// A capture of a socket at any address has the address that each datagram was sent to: those that tcpdump beside it sees.
func TestCaptureAtAnyAddress(t *testing.T) {
	harness.Need(t, "netns", "ip", "tcpdump", "scapy") // which brings python3
	id := make([]byte, 4)
	_, _ = rand.Read(id)
	ns, dir := "dqa"+hex.EncodeToString(id), t.TempDir()
	c := &cable{&harness.Cable{T: t, Send: ns, Recv: ns}}
	c.Host("ip", "netns", "add", ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	c.Host("ip", "-n", ns, "addr", "add", "10.98.0.7/32", "dev", "lo")
	c.Host("ip", "-n", ns, "addr", "add", "fd98::7/128", "dev", "lo", "nodad")
	c.Host("ip", "-n", ns, "link", "set", "lo", "up", "multicast", "on")
	c.Host("ip", "-n", ns, "route", "add", "239.0.0.0/8", "dev", "lo")
	if err := os.WriteFile(filepath.Join(dir, "s.lua"), []byte(anyAddress), 0o644); err != nil {
		t.Fatal(err)
	}

	beside, output := filepath.Join(dir, "beside.pcap"), new(harness.Buffer)
	dump := c.Command(ns, "tcpdump", "-i", "lo", "-n", "-U", "--immediate-mode", "-w", beside, "udp")
	dump.Stderr = output
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Process.Kill(); _ = dump.Wait() })
	harness.Until(t, "tcpdump", func() bool { return strings.Contains(output.String(), "listening on") })

	cmd, out, stderr := harness.StartReady(t, dir, "ip", "netns", "exec", ns, harness.Built(t), "s.lua")
	to := []string{"127.0.0.1:7148", "127.0.0.2:7148", "10.98.0.7:7148", "239.9.1.1:7148", "127.0.0.3:7149", "::1:7149", "fd98::7:7149"}
	c.In(ns, append([]string{"python3", "-c", sendTo}, to...)...)
	rest := make([]byte, 1)
	_, _ = out.Read(rest) // until its end
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}

	file := filepath.Join(dir, "disk.pcap")
	got := conversations(file)
	harness.Until(t, "tcpdump to have all", func() bool { return len(conversations(beside)) >= len(to) && sum(conversations(beside)) >= sum(got) })
	want := conversations(beside)
	if !maps.Equal(got, want) {
		t.Errorf("the capture has\n%v\ntcpdump beside it saw\n%v", got, want)
	}
	for _, address := range to {
		address = address[:strings.LastIndexByte(address, ':')] + "." + address[strings.LastIndexByte(address, ':')+1:]
		found := false
		for ends := range got {
			found = found || strings.HasSuffix(ends, " > "+address)
		}
		if !found {
			t.Errorf("nothing of the capture was sent to %s: %v", address, got)
		}
	}
}
