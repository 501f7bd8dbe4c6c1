package network

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// Receive flows that take headers off ask for these, and their match for what is inside. Frames and the hash are
// scapy's and Python's.

// outerKeys are the outer headers of decapHead's frames.
const outerKeys = `outer_eth_src: "02:00:00:00:00:01", outer_eth_dst: "02:00:00:00:00:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2`

// decapHead makes frames in tunnels.
const decapHead = `
from scapy.all import *
from scapy.layers.vxlan import VXLAN
def inner(port, sport=4000): return Ether(src="02:aa:00:00:00:01", dst="02:aa:00:00:00:02")/IP(src="10.0.0.1", dst="10.0.0.2")/UDP(sport=sport, dport=port)/Raw(b"x" * 40)
def outer(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", ip="192.0.2.1", to="192.0.2.2"): return Ether(src=src, dst=dst)/IP(src=ip, dst=to)
def vxlan(p, vni=100, port=4789, sport=50000, **more): return outer(**more)/UDP(sport=sport, dport=port)/VXLAN(vni=vni, flags=8)/p
`

const insideFlows = `
        flows:
        - {name: port of tunnels, id: 1, match: {udp_dst: 4789}, action: {type: queue, id: 2}}
        - {name: example, id: 2, match: {udp_dst: 5000}, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 100, outer_udp_dst: 4789, ` + outerKeys + `}}, {type: queue, id: 0}]}
        - {name: range, id: 3, match: {udp_dst: 6000-6009, ipv4_src: 10.0.0.0/24}, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 100, ` + outerKeys + `}}, {type: queue, id: 1}]}
        - {name: other vni, id: 4, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 200, ` + outerKeys + `}}, {type: queue, id: 1}]}
        - {name: from a port, id: 5, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 300, outer_udp_src: 50001, ` + outerKeys + `}}, {type: queue, id: 1}]}
        - {name: from any port, id: 6, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 300, ` + outerKeys + `}}, {type: queue, id: 2}]}
        - {name: spread, id: 7, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 400, ` + outerKeys + `}}, {type: queue, ids: [0, 1, 2]}]}
        - {name: plain, id: 8, match: {udp_dst: 7000}, action: {type: queue, id: 1}}
        - {name: untagged, id: 9, match: {udp_dst: 8000}, actions: [{type: vlan_pop}, {type: queue, id: 0}]}
        - {name: two tags, id: 10, match: {udp_dst: 8001}, actions: [{type: vlan_pop}, {type: vlan_pop}, {type: queue, id: 0}]}
        - {name: as it is, id: 11, match: {udp_dst: 8000-8001}, action: {type: queue, id: 1}}
        - {name: tags inside and out, id: 12, match: {udp_dst: 5000}, actions: [{type: vlan_pop}, {type: tunnel_decap, tunnel: {type: vxlan, vni: 500, ` + outerKeys + `}}, {type: vlan_pop}, {type: queue, id: 0}]}
        - {name: tunnel in a tunnel, id: 13, match: {udp_dst: 5000}, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 600, ` + outerKeys + `}}, {type: tunnel_decap, tunnel: {type: gre, ` + outerKeys + `}}, {type: queue, id: 0}]}
        - {name: nvgre, id: 14, match: {udp_dst: 5000}, actions: [{type: tunnel_decap, tunnel: {type: nvgre, tni: 7, flow_id: 3, ` + outerKeys + `}}, {type: queue, id: 0}]}
        - {name: spread behind a tag, id: 15, match: {udp_dst: 9000}, actions: [{type: vlan_pop}, {type: queue, ids: [0, 1, 2]}]}
        - {name: gre, id: 16, match: {udp_dst: 5000}, actions: [{type: tunnel_decap, tunnel: {type: gre, ` + outerKeys + `}}, {type: queue, id: 2}]}
`

const insideFrames = decapHead + `
key = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
def spread(data, n):
    k, h = int.from_bytes(key, "big"), 0
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1: h ^= k >> (320 - 32 - i) & 0xffffffff
    return h % 128 % n
def say(p, queue=None, flow=None, result=None):
    print(bytes(p).hex())
    print("nothing" if queue is None else "q%d %d %s" % (queue, flow, bytes(p if result is None else result).hex()))
def tag(p, *ids):
    f = Ether(src=p.src, dst=p.dst)
    for i in ids: f = f/Dot1Q(vlan=i)
    return f/p.payload
say(vxlan(inner(5000)), 0, 2, inner(5000))
say(vxlan(inner(6003)), 1, 3, inner(6003))
# A flow on the port of tunnels has what no tunnel's flow wants.
for p in (vxlan(inner(5001)), vxlan(inner(5000), vni=101), vxlan(inner(5000), src="02:00:00:00:00:03"), vxlan(inner(5000), dst="02:00:00:00:00:03"),
    vxlan(inner(5000), ip="192.0.2.9"), vxlan(inner(5000), to="192.0.2.9")): say(p, 2, 1)
say(vxlan(inner(5000), port=4790))
say(inner(5000))
say(vxlan(inner(1), vni=200), 1, 4, inner(1))
say(vxlan(Ether()/ARP(), vni=200), 1, 4, Ether()/ARP())
say(vxlan(inner(1), vni=300, sport=50001), 1, 5, inner(1))
say(vxlan(inner(1), vni=300, sport=50002), 2, 6, inner(1))
for sport in range(3000, 3032):
    p = inner(77, sport)
    say(vxlan(p, vni=400), spread(bytes(p)[26:38], 3), 7, p)
say(inner(7000), 1, 8)
say(tag(inner(8000), 5), 0, 9, inner(8000))
say(inner(8000), 1, 11)
say(tag(inner(8001), 5, 6), 0, 10, inner(8001))
say(tag(inner(8001), 5), 1, 11)
say(tag(vxlan(tag(inner(5000), 6), vni=500), 5), 0, 12, inner(5000))
say(tag(vxlan(inner(5000), vni=500), 5), 2, 1)
say(vxlan(tag(inner(5000), 6), vni=500), 2, 1)
say(vxlan(outer()/GRE(proto=0x800)/Raw(bytes(inner(5000))), vni=600), 0, 13, inner(5000))
say(vxlan(outer()/GRE(proto=0x800)/Raw(bytes(inner(5001))), vni=600), 2, 1)
say(vxlan(inner(5000), vni=600), 2, 1)
def nvgre(tni, flow, port): return outer()/GRE(proto=0x6558, key_present=1, key=tni << 8 | flow)/inner(port)
say(nvgre(7, 3, 5000), 0, 14, inner(5000))
for p in (nvgre(7, 4, 5000), nvgre(8, 3, 5000), nvgre(7, 3, 5001)): say(p)
for sport in range(3000, 3016):
    p = inner(9000, sport)
    say(tag(p, 5), spread(bytes(p)[26:38], 3), 15, p)
# GRE: whole frames, whatever the protocol, and packets of those who send packets.
say(outer()/GRE(proto=0x800)/Raw(bytes(inner(5000))), 2, 16, inner(5000))
say(outer()/GRE(proto=0x800, key_present=1, key=9)/Raw(bytes(inner(5000))), 2, 16, inner(5000))
say(outer()/GRE(proto=0x800)/inner(5000)[IP], 2, 16, Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/inner(5000)[IP])
say(outer()/GRE(proto=0x800)/inner(5001)[IP])
say(outer()/GRE(proto=0x800)/Raw(bytes(inner(5001))))
say(outer()/GRE(proto=0x6558)/inner(5000))
`

// TestDecapFlowsMatchInside sends frames to flows that take headers off: each asks for these and for the packet inside.
func TestDecapFlowsMatchInside(t *testing.T) {
	harness.Need(t, "scapy")
	frames, want := pairs(python(t, insideFrames, ""))
	compare(t, frames, through(t, harness.Built(t), "", insideFlows, true, frames), want)
}

// exampleFlow is the reference's example: VXLAN to port 4789, and to port 5000 inside.
const exampleFlow = `        flow_isolation: true
        flows:
        - {name: vxlan_decap_5000, id: 5, match: {udp_dst: 5000}, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 100, outer_udp_dst: 4789, ` + outerKeys + `}}, {type: queue, id: 0}]}
`

// exampleFrames writes a capture: frames of the example's flow, and as many that differ in one thing each.
const exampleFrames = decapHead + `
import sys
frames = []
for k in range(10):
    frames += [vxlan(inner(5000, 4000 + k)), vxlan(inner(5001)), vxlan(inner(5000), vni=101), vxlan(inner(5000), ip="192.0.2.9"),
      vxlan(inner(5000), src="02:00:00:00:00:03"), vxlan(inner(5000), port=4790), inner(5000)]
wrpcap(sys.argv[1], frames)
`

// exampleScript prints what it gets, and "all in" when the interface has seen so many frames.
const exampleScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ frames = 0 }
local s = daqiri.open("raw.yaml")
for _, q in ipairs(s:rx_queues("rx_port")) do
  q:on_burst(function(b)
    local ids = b:flow_ids()
    for k = 1, b.n do print(("GOT %d %s"):format(ids[k], b:packet(k):hex())) end
  end, { policy = "wait" })
end
s:start()
print "ready"
while s:stats().rx_port.wire["in"] < args.frames do daqiri.sleep(0.01) end
print "all in"
s:run{ seconds = 300 }
`

func capture(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sent.pcap")
	name, err := harness.ScapyPython()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(name, "-W", "ignore", "-c", program, file).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	return file
}

// wantExample checks that a program got the ten inner frames of the example, and nothing else.
func wantExample(t *testing.T, output string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(line, "GOT "); ok {
			got = append(got, strings.TrimSpace(rest))
		}
	}
	want := python(t, decapHead+`
for k in range(10): print("5 " + bytes(inner(5000, 4000 + k)).hex())
`, "")
	compare(t, want, append(got, make([]string, max(0, len(want)-len(got)))...), want)
	if len(got) > len(want) {
		t.Errorf("%d packets came, %d are the flow's", len(got), len(want))
	}
}

// TestDecapExample sends the reference's example over a cable: AF_XDP leaves other tunnels to the kernel, AF_PACKET counts
// them.
func TestDecapExample(t *testing.T) {
	harness.Need(t, "netns", "scapy", "tcpreplay")
	file, program := capture(t, exampleFrames), harness.Built(t)
	onDrivers(t, func(t *testing.T, c *cable) {
		c.silence()
		frames, noFlow := 70, 60
		if c.Driver == "AF_XDP" {
			frames, noFlow = 20, 10 // the tunnel's, of which a half is for the port
		}
		r := c.raw(program, exampleScript, exampleFlow, "--frames", fmt.Sprint(frames))
		r.wait("ready")
		c.In(c.Send, "tcpreplay", "--quiet", "--pps=1000", "--intf1=veth0", file)
		r.wait("all in")
		r.until("ten packets", func() bool { return strings.Count(r.out.String(), "GOT ") >= 10 })
		summary := r.stop()
		wantExample(t, r.out.String())
		if n := figure(t, []byte(summary), "no_flow"); n != noFlow {
			t.Errorf("%d frames are of no flow, want %d\n%s", n, noFlow, r.out.String())
		}
	})
}

// onDevice is an interface at an address, alone.
func onDevice(t *testing.T, address, rx string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "raw.yaml")
	config := strings.Replace(fmt.Sprintf(rawConfig, rx), "veth0", `"`+address+`"`, 1)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// deviceScript is exampleScript for a device that plays a capture: it ends when all of that has come.
const deviceScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "", frames = 0 }
local s = daqiri.open(args.config)
local got = {}
s:rx_queue("rx_port"):on_burst(function(b)
  local ids = b:flow_ids()
  for k = 1, b.n do got[#got + 1] = ("GOT %d %s"):format(ids[k], b:packet(k):hex()) end
end, { policy = "wait" })
s:start()
while s:stats().rx_port.wire["in"] < args.frames do daqiri.sleep(0.01) end
s:stop("all in")
print(daqiri.json{ decoded = table.concat(got, "\n") })
`

// TestDecapExampleOnCard has DPDK's devices play the reference's example: cards that take the tunnel off, that only mark
// packets, and that do nothing say the same.
func TestDecapExampleOnCard(t *testing.T) {
	harness.Need(t, "dpdk", "scapy")
	file := capture(t, exampleFrames)
	for features, says := range map[string]string{
		"":                           "transforms of receive flows: software",
		"flows":                      "transforms of receive flows: software: flows 5\n",
		"flows,transforms":           "transforms of receive flows: the device: flows 5\n",
		"flows,templates,transforms": "transforms of receive flows: the device: flows 5\n",
	} {
		var got struct{ Decoded string }
		record := filepath.Join(t.TempDir(), "record")
		t.Setenv("DAQIRI_NIC_RECORD", record)
		output := onCard(t, features, deviceScript, &got, "--config", onDevice(t, "vdev:net_pcap0,rx_pcap="+file, exampleFlow), "--frames", "70")
		wantExample(t, got.Decoded)
		wants(t, output, says, "no_flow: 60 ")
		if strings.Contains(features, "flows") {
			if n := len(numbersIn(t, record, "marked")); n != 10 {
				t.Errorf("with %q: the device marked %d frames, want 10", features, n)
			}
		}
	}
}

// TestIsolationWithoutFlows sends frames to an isolated interface that has no flows: none of them is delivered, by any
// engine.
func TestIsolationWithoutFlows(t *testing.T) {
	harness.Need(t, "scapy")
	program, file := harness.Built(t), capture(t, exampleFrames)
	const isolated = "        flow_isolation: true\n"
	t.Run("loop", func(t *testing.T) {
		frames := python(t, decapHead+"for k in range(3): print(bytes(inner(k)).hex())\n", "")
		compare(t, frames, through(t, program, "", "", true, frames), []string{"nothing", "nothing", "nothing"})
	})
	play := func(t *testing.T, run func(config string) (json []byte, output string, err error), address string) {
		out, output, err := run(onDevice(t, address, isolated))
		var got struct{ Decoded string }
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil || got.Decoded != "" || !strings.Contains(output, "no_flow: 70 ") {
			t.Errorf("%v, packets %q\n%s", err, got.Decoded, output)
		}
	}
	t.Run("replay", func(t *testing.T) {
		script := filepath.Join(t.TempDir(), "device.lua")
		if err := os.WriteFile(script, []byte(deviceScript), 0o644); err != nil {
			t.Fatal(err)
		}
		play(t, func(config string) ([]byte, string, error) {
			cmd := exec.Command(program, "--summary", "full", script, "--config", config, "--frames", "70")
			var output strings.Builder
			cmd.Stderr = &output
			out, err := cmd.Output()
			return out, output.String(), err
		}, "pcap:"+file)
	})
	t.Run("dpdk", func(t *testing.T) {
		harness.Need(t, "dpdk")
		play(t, func(config string) ([]byte, string, error) {
			return tryOnCard(t, "", deviceScript, "--config", config, "--frames", "70")
		}, "vdev:net_pcap0,rx_pcap="+file)
	})
	t.Run("xdp", func(t *testing.T) {
		harness.Need(t, "netns", "tcpreplay")
		onDrivers(t, func(t *testing.T, c *cable) {
			c.silence()
			frames := 70
			if c.Driver == "AF_XDP" {
				frames = 0 // all are the kernel's
			}
			r := c.raw(program, exampleScript, isolated, "--frames", fmt.Sprint(frames))
			r.wait("ready")
			before := c.kernelPackets()
			c.In(c.Send, "tcpreplay", "--quiet", "--pps=1000", "--intf1=veth0", file)
			r.until("70 frames at the interface", func() bool { return c.kernelPackets()-before >= 70 })
			r.wait("all in")
			summary := r.stop()
			if n := figure(t, []byte(summary), "no_flow"); n != frames || strings.Contains(r.out.String(), "GOT ") {
				t.Errorf("%d frames of no flow, want %d\n%s", n, frames, r.out.String())
			}
		})
	})
}

// kernelPackets is how many frames the receiving end's device has received.
func (c *cable) kernelPackets() (n int) {
	c.T.Helper()
	out, err := c.Command(c.Recv, "cat", "/sys/class/net/veth0/statistics/rx_packets").Output()
	if err != nil {
		c.T.Fatal(err)
	}
	_, _ = fmt.Sscan(string(out), &n)
	return n
}
