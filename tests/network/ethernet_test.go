package network

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// rawConfig is an interface on the receiving end's veth0, with a queue. %s: more of its rx section.
const rawConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 8192, buf_size: 2048}
    interfaces:
    - name: rx_port
      address: veth0
      rx:
        queues:
        - {name: q0, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 500, memory_regions: [m]}
%s`

// rawSecond is a second queue, the first of what goes into rawConfig.
const rawSecond = "        - {name: q1, id: 1, cpu_core: -1, batch_size: 64, timeout_us: 500, memory_regions: [m]}"

// A rawRun is a script at work on an end of a cable.
type rawRun struct {
	t    *testing.T
	cmd  *exec.Cmd
	dir  string
	out  harness.Buffer
	done chan error

	driver string // that the interface has to get, where it matters
}

// raw runs a script, given by its text or path, in the receiving end; rx is for rawConfig.
func (c *cable) raw(program, script, rx string, args ...string) *rawRun {
	c.T.Helper()
	r := &rawRun{t: c.T, dir: c.T.TempDir(), driver: c.Driver, done: make(chan error, 1)}
	if strings.Contains(script, "\n") {
		text := script
		script = filepath.Join(r.dir, "script.lua")
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			c.T.Fatal(err)
		}
	}
	config := fmt.Sprintf(rawConfig, rx)
	if c.Device != "" {
		config = strings.Replace(config, "veth0", c.Device, 1)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "raw.yaml"), []byte(config), 0o644); err != nil {
		c.T.Fatal(err)
	}
	r.cmd = c.Command(c.Recv, append([]string{program, "--summary-json", "summary.json", script}, args...)...)
	r.cmd.Dir = r.dir
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	c.T.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// until waits for what the running program brings about.
func (r *rawRun) until(what string, done func() bool) {
	r.t.Helper()
	harness.Until(r.t, what, func() bool {
		select {
		case err := <-r.done:
			r.t.Fatalf("the program ended early: %v\n%s", err, r.out.String())
		default:
		}
		return done()
	})
}

// wait waits for text in the program's output.
func (r *rawRun) wait(text string) {
	r.t.Helper()
	r.until(strconv.Quote(text)+" from the program", func() bool { return strings.Contains(r.out.String(), text) })
}

// end waits for the program's end and returns its summary.
func (r *rawRun) end(code int) string {
	r.t.Helper()
	err := <-r.done
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("the program ended with %v, want code %d\n%s", err, code, r.out.String())
	}
	text, _ := os.ReadFile(filepath.Join(r.dir, "summary.json"))
	if r.driver != "" && !strings.Contains(string(text), "rx_port: "+r.driver) {
		r.t.Errorf("the interface is not served by %s:\n%s", r.driver, r.out.String())
	}
	return string(text)
}

// pcapFrames reads the frames of a classic pcap file that hold marker.
func pcapFrames(t *testing.T, path string, marker []byte) [][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 24 {
		t.Fatalf("%s: %d bytes, %v", path, len(data), err)
	}
	var frames [][]byte
	for data = data[24:]; len(data) >= 16; {
		n := int(binary.LittleEndian.Uint32(data[8:]))
		if bytes.Contains(data[16:16+n], marker) {
			frames = append(frames, data[16:16+n])
		}
		data = data[16+n:]
	}
	return frames
}

// rawFrames writes a pcap of n frames of many kinds, each with the mark DAQIRI in it.
const rawFrames = `
import random, sys
from scapy.all import Ether, Dot1Q, Dot1AD, IP, IPv6, UDP, TCP, ICMP, ARP, Raw, wrpcap
out, n = sys.argv[1], int(sys.argv[2])
random.seed(7148)
e = lambda: Ether(src="02:00:00:00:00:01", dst=random.choice(["02:00:00:00:00:77", "ff:ff:ff:ff:ff:ff"]))
v4 = lambda: IP(src="192.0.2.1", dst="192.0.2.2")
kinds = [lambda: e()/v4()/UDP(sport=random.randint(1, 60000), dport=7148),
         lambda: e()/Dot1Q(vlan=random.randint(1, 4094), prio=5)/v4()/UDP(dport=7148),
         lambda: e()/Dot1AD(vlan=7)/Dot1Q(vlan=8)/v4()/UDP(dport=7148),
         lambda: e()/IPv6(src="2001:db8::1", dst="2001:db8::2")/UDP(dport=7148),
         lambda: e()/v4()/TCP(dport=80), lambda: Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:77", type=0x88b5)]
wrpcap(out, [random.choice(kinds)()/Raw(b"DAQIRI" + random.randbytes(random.randint(40, 1400))) for i in range(n)])
`

// TestRawCapture records frames of many kinds on a raw interface: the file has each of them, byte for byte.
func TestRawCapture(t *testing.T) {
	harness.Need(t, "tshark", "scapy", "tcpreplay")
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) { rawCapture(t, c, program) })
}

func rawCapture(t *testing.T, c *cable, program string) {
	python, _ := harness.ScapyPython()
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	c.Host(python, "-c", rawFrames, sent, "2000")
	script, err := filepath.Abs(filepath.Join(tree.Root, "scripts/network/capture.lua"))
	if err != nil {
		t.Fatal(err)
	}
	r := c.raw(program, script, "", "--config", "raw.yaml", "--generate=false", "--dir", "cap", "--seconds", "300")
	var file string
	r.until("packet in the file", func() bool {
		_ = c.Command(c.Send, "bash", "-c", "echo x >/dev/udp/"+harness.RecvAddr+"/9").Run()
		files, _ := filepath.Glob(filepath.Join(r.dir, "cap/*.pcap"))
		if len(files) != 1 {
			return false
		}
		file = files[0]
		info, err := os.Stat(file)
		return err == nil && info.Size() > 24
	})
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=5000", "--intf1=veth0", sent)
	want := pcapFrames(t, sent, []byte("DAQIRI"))
	r.until("2000 frames in the file", func() bool { return len(pcapFrames(t, file, []byte("DAQIRI"))) >= len(want) })
	_ = r.cmd.Process.Signal(os.Interrupt)
	r.end(0)
	got := pcapFrames(t, file, []byte("DAQIRI"))
	if len(want) != 2000 || len(got) != len(want) {
		t.Fatalf("%d frames of %d in the file", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("frame %d is\n% x\nwant\n% x", i+1, got[i], want[i])
		}
	}
	samePackets(t, marked(payloads(t, file)), marked(payloads(t, sent)))
}

// marked leaves the datagrams that hold DAQIRI.
func marked(datagrams []string) []string {
	return slices.DeleteFunc(datagrams, func(d string) bool { return !strings.Contains(d, hex.EncodeToString([]byte("DAQIRI"))) })
}

// rawQueues prints what came to which queue, until it has seen enough.
const rawQueues = `
local daqiri = require "daqiri"
local args = daqiri.args{ packets = { 1, help = "to wait for" } }
local s = daqiri.open("raw.yaml")
local seen, total = {}, 0
for _, q in ipairs(s:rx_queues("rx_port")) do
  q:on_burst(function(b)
    for _, id in ipairs(b:flow_ids()) do
      local key = b.queue .. ":" .. id
      seen[key] = (seen[key] or 0) + 1
    end
    total = total + b.n
  end)
end
s:every(0.02, function()
  if total >= args.packets then s:stop("enough") end
end)
s:after(0, function() print("ready") end)
s:run{ seconds = 60 }
local where = {}
for key, n in pairs(seen) do where[#where + 1] = key .. "=" .. n end
table.sort(where)
print("seen " .. table.concat(where, " "))
`

// sendFrames sends a pcap's frames, 1000 a second.
func (c *cable) sendFrames(file string) {
	c.T.Helper()
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=1000", "--intf1=veth0", file)
}

// TestRawFlows sends to two ports, with and without tags, that flows bring to two queues; the rest is not wanted.
func TestRawFlows(t *testing.T) {
	harness.Need(t, "scapy", "tcpreplay")
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) { rawFlows(t, c, program) })
}

func rawFlows(t *testing.T, c *cable, program string) {
	python, _ := harness.ScapyPython()
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	c.Host(python, "-c", `
import sys
from scapy.all import Ether, Dot1Q, IP, UDP, Raw, wrpcap
e, v = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:77"), IP(src="192.0.2.1", dst="192.0.2.2")
wrpcap(sys.argv[1], [p for i in range(100) for p in (e/v/UDP(dport=7000)/Raw(bytes(50)), e/Dot1Q(vlan=9)/v/UDP(dport=7001)/Raw(bytes(50)),
                     e/v/UDP(dport=9)/Raw(bytes(50)))])
`, sent)
	flows := rawSecond + `
        flow_isolation: true
        flows:
        - {name: one, id: 11, match: {udp_dst: 7000}, action: {type: queue, id: 0}}
        - {name: two, id: 22, match: {udp_dst: 7001}, action: {type: queue, id: 1}}
`
	c.In(c.Recv, "ip", "link", "set", "veth0", "promisc", "on") // an isolated interface leaves that to the user
	r := c.raw(program, rawQueues, flows, "--packets", "200")
	r.wait("ready")
	c.sendFrames(sent)
	summary := r.end(0)
	if !strings.Contains(r.out.String(), "seen q0:11=100 q1:22=100\n") {
		t.Errorf("other queues or flow ids:\n%s", r.out.String())
	}
	// AF_XDP leaves what no flow wants to the kernel: nothing of it is read.
	if strings.Contains(summary, "AF_XDP on veth0") {
		if m := regexp.MustCompile(`(?s)"kind": "wire".*?"in":\s*(\d+)`).FindStringSubmatch(summary); m == nil || m[1] != "200" {
			t.Errorf("other frames were read than those of the flows:\n%s", summary)
		}
	} else if m := regexp.MustCompile(`"no_flow":\s*(\d+)`).FindStringSubmatch(summary); m == nil || m[1] == "0" {
		t.Errorf("no frame without a flow is counted:\n%s", summary)
	}
}

// rawFaults prints what has come, once in a while, and the queue's errors; frames may be dropped at the port for a time.
const rawFaults = `
local daqiri = require "daqiri"
local args = daqiri.args{ drop = { false, help = "drop all until 5 frames were dropped" }, seconds = { 60 } }
local s = daqiri.open("raw.yaml")
local i, total, last = s:interface("rx_port"), 0, -1
s:rx_queue("rx_port"):on_burst(function(b) total = total + b:count("udp_dst == 7148") end)
s:every(0.02, function()
  if total ~= last then print(("got %d"):format(total)) end
  last = total
  if args.drop and s:stats().rx_port.wire[0].dropped_by.drop_all >= 5 then
    args.drop = false
    i:allow_all_traffic()
    print("allowed")
  end
end)
for _, line in ipairs(s:report()) do print(line) end
if args.drop then i:drop_all_traffic() end
s:after(0, function() print("ready") end)
s:run{ seconds = args.seconds }
`

// datagrams sends n of 100 bytes to a port from the kernel of the sending end, each in a frame of its own.
func (c *cable) datagrams(port, n int) {
	c.T.Helper()
	c.In(c.Send, "bash", "-c", fmt.Sprintf(
		"for ((i = 0; i < %d; i++)); do printf %%0100d $i >/dev/udp/%s/%d; done", n, harness.RecvAddr, port))
}

// permanent makes both ends know each other, so that no datagram waits for an answer.
func (c *cable) permanent() {
	c.T.Helper()
	mac := c.mac(c.Recv)
	c.In(c.Send, "ip", "neigh", "replace", harness.RecvAddr, "lladdr", mac, "dev", "veth0", "nud", "permanent")
}

// TestRawLinkDown takes the interface down in mid-run, and up again, and away for good.
func TestRawLinkDown(t *testing.T) {
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) {
		r := c.raw(program, rawFaults, "", "--seconds", "300")
		r.wait("ready")
		c.permanent()
		c.datagrams(7148, 3)
		r.wait("got 3\n")
		c.In(c.Recv, "ip", "link", "set", "veth0", "down")
		c.In(c.Recv, "ip", "link", "set", "veth0", "up")
		c.permanent()
		r.until("frames after the link came up", func() bool {
			c.datagrams(7148, 1)
			return regexp.MustCompile(`got ([5-9]|\d\d)`).MatchString(r.out.String())
		})
		c.In(c.Recv, "ip", "link", "del", "veth0")
		spent := func() int {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
			f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			return user + system
		}
		before := spent()
		r.until("half a second", func() bool { return strings.Count(c.In(c.Recv, "sleep", "0.5"), "") == 1 })
		if ticks := spent() - before; ticks > 25 {
			t.Errorf("%d ticks of CPU in half a second without an interface", ticks)
		}
		_ = r.cmd.Process.Signal(os.Interrupt)
		r.end(5) // errors == 0
		for _, want := range []string{"network is down", "no such device: the interface was removed; one made again"} {
			if !strings.Contains(r.out.String(), want) {
				t.Errorf("the summary does not say %q:\n%s", want, r.out.String())
			}
		}
	})
}

// TestRawDropAll drops everything for a time.
func TestRawDropAll(t *testing.T) {
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) {
		r := c.raw(program, rawFaults, "", "--drop")
		r.wait("ready")
		c.permanent()
		r.until("dropped frames", func() bool {
			c.datagrams(7148, 1)
			return strings.Contains(r.out.String(), "allowed")
		})
		came := regexp.MustCompile(`got [1-9]`)
		if before, _, _ := strings.Cut(r.out.String(), "allowed"); came.MatchString(before) {
			t.Errorf("something came in spite of drop_all_traffic:\n%s", r.out.String())
		}
		r.until("frames after that", func() bool {
			c.datagrams(7148, 1)
			return came.MatchString(r.out.String())
		})
		_ = r.cmd.Process.Signal(os.Interrupt)
		const shortest = 42 // bytes: an ARP request
		m := regexp.MustCompile(`(?s)"kind": "wire".*?"in":\s*(\d+).*?"in_bytes":\s*(\d+)`).FindStringSubmatch(r.end(130))
		if m == nil {
			t.Fatal("the summary has no line of the wire")
		}
		frames, _ := strconv.Atoi(m[1])
		if n, _ := strconv.Atoi(m[2]); n < shortest*frames {
			t.Errorf("%d frames have %d bytes: those that were dropped are not counted", frames, n)
		}
	})
}

// recordTwenty continues from session s: it records datagrams to port 7148 and ends after 20.
const recordTwenty = `
local rx, n = s:rx_queue("rx_port"), 0
s:pipe(rx, s:filter{ name = "udp", where = "udp_dst == 7148" }, s:write_pcap{ name = "disk", dir = ".", prefix = "cap", policy = "wait" })
rx:on_burst(function(b)
  n = n + b:count("udp_dst == 7148")
  if n >= 20 then s:stop("enough") end
end)
s:after(0, function() print("ready") end)
s:run{ seconds = 60 }
`

// TestRawChecksums receives from a kernel that leaves checksums to its network card, which is none.
func TestRawChecksums(t *testing.T) {
	harness.Need(t, "tshark")
	program := harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) {
		c.In(c.Send, "ethtool", "-K", "veth0", "tx", "on")
		r := c.raw(program, `
local daqiri = require "daqiri"
local s = daqiri.open("raw.yaml")
	`+recordTwenty, "")
		r.wait("ready")
		c.permanent()
		c.datagrams(7148, 20)
		r.end(0)
		got := payloads(t, filepath.Join(r.dir, "cap.pcap"))
		for i, d := range got {
			if f := strings.Split(d, "\t"); len(f) != 5 || f[3] != "1" {
				t.Errorf("datagram %d: tshark says of its checksum: %s", i+1, d)
			}
		}
		if len(got) < 20 {
			t.Errorf("%d datagrams of 20 in the file", len(got))
		}
	})
}

// TestRawRefused opens raw interfaces that can't be had.
func TestRawRefused(t *testing.T) {
	program := harness.Built(t)
	c := newCable(t)
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir), filepath.Dir(program)} { // another user is to read them
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(rawConfig, "")
	write("raw.yaml", config)
	write("none.yaml", strings.Replace(config, "veth0", "veth00", 1))
	write("tunnel.yaml", strings.Replace(config, "veth0", "tun0", 1))
	c.In(c.Recv, "ip", "tuntap", "add", "tun0", "mode", "tun")
	user := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	for _, x := range []struct {
		file, want string
		as         []string
	}{
		{"none.yaml", "there is no Linux interface veth00; there are lo, ", nil},
		{"tunnel.yaml", "tun0 carries no Ethernet frames", nil},
		{"raw.yaml", "hint: run as root, or with the capability CAP_NET_RAW", user},
	} {
		script := filepath.Join(dir, x.file+".lua")
		write(x.file+".lua", fmt.Sprintf("require('daqiri').open(%q):run{ seconds = 1 }\n", filepath.Join(dir, x.file)))
		run := c.Command(c.Recv, append(slices.Clone(x.as), program, script)...)
		run.Dir = "/"
		out, err := run.CombinedOutput()
		if run.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), x.want) || !strings.Contains(string(out), "rx_port") {
			t.Errorf("%s: %v, want code 4 and %q:\n%s", x.file, err, x.want, out)
		}
	}
}
