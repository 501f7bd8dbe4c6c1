package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// What scapy builds goes through a session on the loop engine, and what comes out of it is compared with what should
// according to scapy: flows that match, tunnels taken off. What a session builds is taken apart by scapy and tshark. They share
// no code with this project.

// frameConfig is a cable on the virtual clock; what follows belongs to the receiver's rx section.
const frameConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: {mode: sw, clock: virtual}
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: tx_port
      address: left
      tx:
        queues:
        - {name: tx0, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [packets]}
%TX%
    - name: rx_port
      address: right
      rx:
        flow_isolation: %ISOLATION%
        queues:
        - {name: q0, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 10, memory_regions: [packets]}
        - {name: q1, id: 1, cpu_core: -1, batch_size: 64, timeout_us: 10, memory_regions: [packets]}
        - {name: q2, id: 2, cpu_core: -1, batch_size: 64, timeout_us: 10, memory_regions: [packets]}
%RX%
`

// throughScript sends the frames of a file, one in hexadecimal digits a line, and prints for each what arrived: queue,
// flow and bytes, or "nothing".
const throughScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "frames.yaml", frames = "frames.hex" }
local s = daqiri.open(args.config)
local tx, got = s:tx_queue("tx_port"), nil
for _, q in ipairs(s:rx_queues("rx_port")) do
  q:on_burst(function(b)
    for i = 1, b.n do got = (got and got .. " and " or "") .. ("%s %d %s"):format(b.queue, b:flow_ids()[i], b:packet(i):hex()) end
  end)
end
s:start()
for line in io.lines(args.frames) do
  local bytes = line:gsub("%x%x", function(d) return string.char(tonumber(d, 16)) end)
  local b = assert(tx:alloc(1))
  b:set_lengths(#bytes)
  b:packet(1):set_bytes(0, bytes)
  got = nil
  assert(tx:send(b))
  daqiri.sleep(0.001)
  print(got or "nothing")
end
s:stop("done")
`

// through sends frames and gives a line for each.
func through(t *testing.T, program, tx, rx string, isolation bool, frames []string) []string {
	t.Helper()
	config := strings.NewReplacer("%TX%", tx, "%RX%", rx, "%ISOLATION%", map[bool]string{true: "true", false: "false"}[isolation]).Replace(frameConfig)
	dir := t.TempDir()
	for name, text := range map[string]string{"frames.yaml": config, "frames.hex": strings.Join(frames, "\n") + "\n", "through.lua": throughScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(program, "--summary", "none", filepath.Join(dir, "through.lua"), "--config", filepath.Join(dir, "frames.yaml"),
		"--frames", filepath.Join(dir, "frames.hex"))
	var errors strings.Builder
	run.Stderr = &errors
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errors.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(frames) {
		t.Fatalf("%d lines for %d frames\n%s", len(lines), len(frames), out)
	}
	return lines
}

// python runs a scapy program and gives the lines that it prints. input comes on its standard input.
func python(t *testing.T, program, input string) []string {
	t.Helper()
	name, err := harness.ScapyPython()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(name, "-W", "ignore", "-c", program)
	run.Stdin = strings.NewReader(input)
	var errors strings.Builder
	run.Stderr = &errors
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errors.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

const matchFlows = `
        flex_items:
        - {name: word, id: 1, offset: 8, udp_dst_port: 7148}
        flows:
        - {name: range, id: 1, match: {udp_dst: 1000-1010, udp_src: 53}, action: {type: queue, id: 1}}
        - {name: tcp, id: 2, match: {tcp_dst: 443, tcp_src: 1024-65535}, action: {type: queue, id: 1}}
        - {name: net, id: 3, match: {ipv4_src: 10.1.0.0/16, ipv4_dst: 10.2.3.4}, action: {type: queue, id: 2}}
        - {name: net6, id: 4, match: {ipv6_src: "2001:db8:7::/48", ipv6_dst: "2001:db8::1"}, action: {type: queue, id: 2}}
        - {name: length, id: 5, match: {ipv4_len: 77}, action: {type: queue, id: 0}}
        - {name: tag, id: 6, match: {vlan_id: 7}, action: {type: queue, id: 1}}
        - {name: type, id: 7, match: {ethertype: 0x88b5}, action: {type: queue, id: 1}}
        - {name: word, id: 8, match: {flex_item_id: 1, val: 0xdeadbeef, mask: 0xffff00ff}, action: {type: queue, id: 2}}
        - {name: iq, id: 9, match: {ecpri: {msg_type: 0, pc_id: 5}}, action: {type: queue, id: 0}}
        - {name: control, id: 10, match: {ecpri: {msg_type: 2, rtc_id: 6}}, action: {type: queue, id: 1}}
        - {name: ecpri, id: 11, match: {ecpri: {}}, action: {type: queue, id: 2}}
        - {name: mac, id: 12, match: {ethernet: {dst: "02:00:00:00:00:0c"}}, action: {type: queue, id: 2}}
        - {name: spread, id: 13, match: {udp_dst: 2000-2999}, action: {type: queue, ids: [0, 1, 2]}}
`

// matchFrames prints a frame and what should become of it, in turn. The hash is Toeplitz, bit by bit.
const matchFrames = `
from scapy.all import *
from scapy.layers.l2 import Dot1Q, Dot1AD
key = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
def spread(data, n):
    k, h = int.from_bytes(key, "big"), 0
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1: h ^= k >> (320 - 32 - i) & 0xffffffff
    return h % 128 % n
def say(p, queue=None, flow=None):
    raw = bytes(p)
    print(raw.hex())
    print("nothing" if queue is None else "q%d %d %s" % (queue, flow, raw.hex()))
e, ip, v6 = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02"), IP(src="10.9.0.1", dst="10.9.0.2"), IPv6(src="2001:db8::5", dst="2001:db8::1")
pay = Raw(bytes(range(60)))
for port in (1000, 1005, 1010): say(e/ip/UDP(sport=53, dport=port)/pay, 1, 1)
for port in (999, 1011): say(e/ip/UDP(sport=53, dport=port)/pay)
say(e/ip/UDP(sport=54, dport=1000)/pay)
say(e/v6/UDP(sport=53, dport=1001)/pay, 1, 1)
say(e/Dot1Q(vlan=9)/ip/UDP(sport=53, dport=1001)/pay, 1, 1)
say(e/IP(src="10.9.0.1", dst="10.9.0.2", options=[IPOption_NOP()]*8)/UDP(sport=53, dport=1001)/pay, 1, 1)
say(e/IP(src="10.9.0.1", dst="10.9.0.2", frag=3)/UDP(sport=53, dport=1001)/pay)
say(e/ip/TCP(sport=53, dport=1001)/pay)
say(e/ip/TCP(sport=40000, dport=443)/pay, 1, 2)
say(e/v6/TCP(sport=1024, dport=443, options=[("MSS", 1460)])/pay, 1, 2)
say(e/ip/TCP(sport=1023, dport=443)/pay)
say(e/ip/UDP(sport=40000, dport=443)/pay)
say(e/IP(src="10.1.255.255", dst="10.2.3.4")/ICMP()/pay, 2, 3)
say(e/IP(src="10.2.0.0", dst="10.2.3.4")/ICMP()/pay)
say(e/IP(src="10.1.0.0", dst="10.2.3.5")/ICMP()/pay)
say(e/IPv6(src="2001:db8:7:ffff::1", dst="2001:db8::1")/ICMPv6EchoRequest()/pay, 2, 4)
say(e/IPv6(src="2001:db8:8::1", dst="2001:db8::1")/ICMPv6EchoRequest()/pay)
say(e/ip/UDP(sport=1, dport=1)/Raw(bytes(49)), 0, 5)
say(e/ip/UDP(sport=1, dport=1)/Raw(bytes(48)))
say(e/Dot1Q(vlan=7, prio=5)/ARP()/Raw(bytes(20)), 1, 6)
say(e/Dot1AD(vlan=7)/Dot1Q(vlan=8)/ip/UDP(sport=1, dport=1), 1, 6)
say(e/Dot1AD(vlan=8)/Dot1Q(vlan=7)/ip/UDP(sport=1, dport=1))
say(Ether(dst=e.dst, src=e.src, type=0x88b5)/pay, 1, 7)
say(e/Dot1Q(vlan=3, type=0x88b5)/pay, 1, 7)
say(e/ip/UDP(sport=1, dport=7148)/Raw(bytes(8) + bytes.fromhex("deadbeef")), 2, 8)
say(e/ip/UDP(sport=1, dport=7148)/Raw(bytes(8) + bytes.fromhex("dead00ef")), 2, 8)
say(e/ip/UDP(sport=1, dport=7148)/Raw(bytes(8) + bytes.fromhex("deadbee0")))
say(e/ip/UDP(sport=1, dport=7148)/Raw(bytes(8) + bytes.fromhex("deadbe")))
say(e/ip/UDP(sport=1, dport=7149)/Raw(bytes(8) + bytes.fromhex("deadbeef")))
def ecpri(kind, id, n=40): return Ether(dst=e.dst, src=e.src, type=0xaefe)/Raw(bytes([0x10, kind]) + (n + 4).to_bytes(2, "big") + id.to_bytes(2, "big") + bytes(n + 2))
say(ecpri(0, 5), 0, 9)
say(ecpri(0, 6), 2, 11)
say(ecpri(2, 6), 1, 10)
say(ecpri(2, 5), 2, 11)
say(ecpri(5, 5), 2, 11)
say(e/Dot1Q(vlan=3, type=0xaefe)/Raw(bytes(ecpri(0, 5))[14:]), 0, 9)
say(Ether(dst="02:00:00:00:00:0c", src=e.src, type=0x9999)/pay, 2, 12)
for port in range(2000, 2064):
    src = "10.%d.3.%d" % (port % 251 % 200 + 20, port % 7)
    p = e/IP(src=src, dst="10.9.0.2")/UDP(sport=port ^ 77, dport=port)/pay
    say(p, spread(bytes(p)[26:38], 3), 13)
    six = e/IPv6(src="2001:db8::%x" % port, dst="2001:db8::9")/UDP(sport=port ^ 55, dport=port)/pay
    say(six, spread(bytes(six)[22:58], 3), 13)
`

// pairs parts lines that come in turn.
func pairs(lines []string) (even, odd []string) {
	for i, line := range lines {
		if i%2 == 0 {
			even = append(even, line)
		} else {
			odd = append(odd, line)
		}
	}
	return even, odd
}

func compare(t *testing.T, frames, got, want []string) {
	t.Helper()
	for i := range frames {
		if got[i] != want[i] {
			t.Errorf("frame %d %s\n got %s\nwant %s", i, frames[i], got[i], want[i])
		}
	}
}

// TestForeignFramesMeetTheirFlows sends what scapy builds and wants queue, flow id and bytes.
func TestForeignFramesMeetTheirFlows(t *testing.T) {
	harness.Need(t, "scapy")
	frames, want := pairs(python(t, matchFrames, ""))
	compare(t, frames, through(t, harness.Built(t), "", matchFlows, true, frames), want)
}

const decapFlows = `
        flows:
        - name: vxlan over IPv6
          id: 7
          actions:
          - {type: tunnel_decap, tunnel: {type: vxlan, vni: 100, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv6_src: 2001:db8::1, outer_ipv6_dst: 2001:db8::2}}
          - {type: queue, id: 2}
        - name: gre over IPv6
          id: 8
          actions:
          - {type: tunnel_decap, tunnel: {type: gre, gre_protocol: 0x6558, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv6_src: 2001:db8::3, outer_ipv6_dst: 2001:db8::2}}
          - {type: queue, id: 1}
        - name: vxlan
          id: 1
          actions:
          - {type: tunnel_decap, tunnel: {type: vxlan, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.1, vni: 100}}
          - {type: queue, id: 0}
        - name: gre
          id: 2
          actions:
          - {type: tunnel_decap, tunnel: {type: gre, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv4_src: 192.0.2.2, outer_ipv4_dst: 192.0.2.1}}
          - {type: queue, id: 1}
        - name: teb
          id: 3
          actions:
          - {type: tunnel_decap, tunnel: {type: gre, gre_protocol: 0x6558, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv4_src: 192.0.2.3, outer_ipv4_dst: 192.0.2.1}}
          - {type: queue, id: 1}
        - name: nvgre
          id: 4
          actions:
          - {type: tunnel_decap, tunnel: {type: nvgre, tni: 0xabcdef, flow_id: 3, outer_eth_src: "02:00:00:00:00:02", outer_eth_dst: "02:00:00:00:00:01", outer_ipv4_src: 192.0.2.4, outer_ipv4_dst: 192.0.2.1}}
          - {type: queue, id: 2}
        - {name: tagged, id: 5, match: {vlan_id: 9}, actions: [{type: vlan_pop}, {type: queue, id: 2}]}
        - {name: rest, id: 6, actions: [{type: vlan_pop}, {type: vlan_pop}, {type: queue, id: 0}]}
`

const decapFrames = `
from scapy.all import *
from scapy.layers.vxlan import VXLAN
def say(p, queue=None, flow=None, result=None):
    print(bytes(p).hex())
    print("nothing" if queue is None else "q%d %d %s" % (queue, flow, bytes(result).hex()))
e = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
inner = Ether(dst="02:aa:00:00:00:01", src="02:aa:00:00:00:02")/IP(src="10.0.0.1", dst="10.0.0.2")/UDP(sport=9, dport=4789)/Raw(bytes(range(33)))
arp, tcp6 = Ether(src="02:aa:00:00:00:02")/ARP(), Ether(dst="02:aa:00:00:00:01")/Dot1Q(vlan=4)/IPv6()/TCP()/Raw(b"x")
def outer(n, **more): return e/IP(src="192.0.2.%d" % n, dst="192.0.2.1", **more)
vx = UDP(sport=50000, dport=4789)
for p in (inner, arp, tcp6):
    say(outer(1)/vx/VXLAN(vni=100, flags=8)/p, 0, 1, p)
    say(outer(1)/UDP(sport=50000, dport=4789, chksum=0)/VXLAN(vni=100, flags=8)/p, 0, 1, p)
    say(outer(1, options=[IPOption_NOP()]*4)/vx/VXLAN(vni=100, flags=8)/p, 0, 1, p)
    say(Ether(dst=e.dst, src=e.src)/Dot1Q(vlan=3)/IP(src="192.0.2.1", dst="192.0.2.1")/vx/VXLAN(vni=100, flags=8)/p, 0, 1, p)
    say(bytes(outer(1)/vx/VXLAN(vni=100, flags=8)/p) + bytes(11), 0, 1, p)
    say(outer(3)/GRE(proto=0x6558)/p, 1, 3, p)
    say(outer(3)/GRE(proto=0x6558, key_present=1, key=77, seqnum_present=1, sequence_number=5)/p, 1, 3, p)
    say(outer(3)/GRE(proto=0x6558, chksum_present=1)/p, 1, 3, p)
    say(outer(4)/GRE(proto=0x6558, key_present=1, key=0xabcdef03)/p, 2, 4, p)
    say(outer(4)/GRE(proto=0x6558, key_present=1, key=0xabcdef07)/p)
    def outer6(n): return e/IPv6(src="2001:db8::%d" % n, dst="2001:db8::2")
    say(outer6(1)/vx/VXLAN(vni=100, flags=8)/p, 2, 7, p)
    say(outer6(1)/UDP(sport=50000, dport=4789, chksum=0)/VXLAN(vni=100, flags=8)/p, 2, 7, p)
    say(outer6(1)/IPv6ExtHdrDestOpt()/vx/VXLAN(vni=100, flags=8)/p, 2, 7, p)
    say(bytes(outer6(1)/vx/VXLAN(vni=100, flags=8)/p) + bytes(11), 2, 7, p)
    say(outer6(1)/UDP(sport=50000, dport=4789, chksum=0x1234)/VXLAN(vni=100, flags=8)/p)
    say(outer6(3)/GRE(proto=0x6558)/p, 1, 8, p)
    say(outer6(3)/GRE(proto=0x6558, chksum_present=1, key_present=1, key=1)/p, 1, 8, p)
    say(outer6(3)/GRE(proto=0x6558, chksum_present=1, chksum=0x1234)/p)
    say(outer(1)/UDP(sport=50000, dport=4789, chksum=0x1234)/VXLAN(vni=100, flags=8)/p)
    say(outer(3)/GRE(proto=0x6558, chksum_present=1, chksum=0x1234)/p)
say(outer(1)/vx/VXLAN(vni=101, flags=8)/inner)
say(outer(1)/vx/VXLAN(vni=100, flags=0)/inner)
say(outer(1)/vx/Raw(b"\x08\0\0\0\0\0"))
say(outer(1, flags="MF")/vx/VXLAN(vni=100, flags=8)/inner)
say(outer(1, chksum=0x1234)/vx/VXLAN(vni=100, flags=8)/inner)
say(bytes(outer(1)/vx/VXLAN(vni=100, flags=8)/inner)[:-1])
say(outer(4)/GRE(proto=0x6558, key_present=1, key=0xabcdee03)/inner)
say(outer(4)/GRE(proto=0x6558)/inner)
say(outer(4)/GRE(proto=0x800, key_present=1, key=0xabcdef03)/inner[IP])
say(outer(3)/GRE(proto=0x800)/inner[IP])
say(outer(3)/UDP(sport=1, dport=1)/inner)
say(outer(2)/GRE(proto=0x86dd)/tcp6[IPv6])
# A tunnel of packets: the outer Ethernet addresses stay, and so does the packet.
say(outer(2)/GRE()/inner[IP], 1, 2, e/inner[IP])
say(bytes(outer(2)/GRE()/IP()/ICMP()) + bytes(7), 1, 2, e/IP()/ICMP())
plain = IP(src="10.0.0.1", dst="10.0.0.2")/UDP(sport=9, dport=9)/Raw(bytes(33))
say(e/Dot1Q(vlan=9, prio=6)/plain, 2, 5, e/plain)
say(Ether(dst=e.dst, src=e.src, type=0x88a8)/Dot1Q(vlan=9)/Dot1Q(vlan=10)/plain, 2, 5, e/Dot1Q(vlan=10)/plain)
say(Ether(dst=e.dst, src=e.src, type=0x88a8)/Dot1Q(vlan=8)/Dot1Q(vlan=10)/plain, 0, 6, e/plain)
say(outer(2)/GRE(proto=0x800)/Raw(bytes(inner)), 1, 2, inner)
say(e/Dot1Q(vlan=8)/plain)
say(e/ARP())
`

// TestForeignTunnelsComeOff sends tunnels that scapy builds and wants what is in them.
func TestForeignTunnelsComeOff(t *testing.T) {
	harness.Need(t, "scapy")
	frames, want := pairs(python(t, decapFrames, ""))
	compare(t, frames, through(t, harness.Built(t), "", decapFlows, true, frames), want)
}

const encapFlows = `
        flows:
        - {name: tag, id: 1, match: {udp_dst: 1}, actions: [{type: vlan_push, vlan_id: 100, pcp: 5, dei: 1}]}
        - {name: qinq, id: 2, match: {udp_dst: 2}, actions: [{type: vlan_push, vlan_id: 100}, {type: vlan_push, vlan_id: 200, ethertype: 0x88a8}]}
        - name: vxlan
          id: 3
          match: {udp_dst: 3}
          actions: [{type: tunnel_encap, tunnel: {type: vxlan, vni: 0xabcdef, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2, outer_ipv4_ttl: 7, outer_ipv4_tos: 0xb8, outer_udp_src: 49999}}]
        - name: entropy
          id: 4
          match: {udp_dst: 4, ipv4_src: 10.0.0.0/8}
          actions: [{type: tunnel_encap, tunnel: {type: vxlan, vni: 1, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}, {type: vlan_push, vlan_id: 5}]
        - name: gre
          id: 5
          match: {udp_dst: 5}
          actions: [{type: tunnel_encap, tunnel: {type: gre, gre_protocol: 0x0800, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}]
        - name: teb
          id: 6
          match: {udp_dst: 6}
          actions: [{type: tunnel_encap, tunnel: {type: gre, gre_protocol: 0x6558, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}]
        - name: nvgre
          id: 7
          match: {udp_dst: 7}
          actions: [{type: tunnel_encap, tunnel: {type: nvgre, tni: 0x123456, flow_id: 9, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}]
        - name: vxlan over IPv6
          id: 9
          match: {udp_dst: 10}
          actions: [{type: tunnel_encap, tunnel: {type: vxlan, vni: 6, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv6_src: 2001:db8::1, outer_ipv6_dst: 2001:db8::2, outer_ipv6_hop_limit: 9, outer_ipv6_traffic_class: 0xb8, outer_udp_src: 49999}}]
        - name: gre over IPv6
          id: 10
          match: {udp_dst: 11}
          actions: [{type: tunnel_encap, tunnel: {type: gre, gre_protocol: 0x6558, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv6_src: 2001:db8::1, outer_ipv6_dst: 2001:db8::2}}]
        - name: gre6
          id: 8
          match: {ipv6_dst: 2001:db8::9}
          actions: [{type: tunnel_encap, tunnel: {type: gre, gre_protocol: 0x86dd, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}]
`

// encapFrames prints frames, and for each the whole of what scapy would send for it; P stands for the source port that
// hashes choose.
const encapFrames = `
from scapy.all import *
from scapy.layers.vxlan import VXLAN
e = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
out = Ether(dst="02:00:00:00:01:02", src="02:00:00:00:01:01")
def ip(proto=None, **more):
    return IP(id=0, flags="DF", src="192.0.2.1", dst="192.0.2.2", **more)
def say(p, result):
    print(bytes(p).hex())
    print("q0 0 " + bytes(result).hex())
for n in (0, 1, 40, 333, 1400):
    for src in ("10.0.0.1", "10.77.0.2"):
        def d(port): return IP(src=src, dst="10.9.9.9")/UDP(sport=1234, dport=port)/Raw(bytes(i & 255 for i in range(n)))
        say(e/d(1), e/Dot1Q(prio=5, id=1, vlan=100)/d(1))
        say(e/d(2), Ether(dst=e.dst, src=e.src, type=0x88a8)/Dot1Q(vlan=200)/Dot1Q(vlan=100)/d(2))
        say(e/d(3), out/ip(ttl=7, tos=0xb8)/UDP(sport=49999, dport=4789, chksum=0)/VXLAN(vni=0xabcdef, flags=8)/e/d(3))
        say(e/d(5), out/ip()/GRE(proto=0x800)/Raw(bytes(e/d(5))))
        say(bytes(e/d(5)) + bytes(6), out/ip()/GRE(proto=0x800)/Raw(bytes(e/d(5)) + bytes(6)))
        say(e/Dot1Q(vlan=3)/d(5), out/ip()/GRE(proto=0x800)/Raw(bytes(e/Dot1Q(vlan=3)/d(5))))
        say(e/d(6), out/ip()/GRE(proto=0x6558)/e/d(6))
        say(e/d(7), out/ip()/GRE(proto=0x6558, key_present=1, key=0x12345609)/e/d(7))
        say(e/d(8), e/d(8))
        def ip6(**more): return IPv6(src="2001:db8::1", dst="2001:db8::2", **more)
        say(e/d(10), out/ip6(hlim=9, tc=0xb8)/UDP(sport=49999, dport=4789)/VXLAN(vni=6, flags=8)/e/d(10))
        say(e/d(11), out/ip6()/GRE(proto=0x6558)/e/d(11))
    six = IPv6(src="2001:db8::1", dst="2001:db8::9")/TCP(sport=5, dport=6)/Raw(bytes(n))
    say(e/six, out/ip()/GRE(proto=0x86dd)/Raw(bytes(e/six)))
other = e/IPv6(src="2001:db8::1", dst="2001:db8::8")/UDP(sport=5, dport=5)
say(other, out/ip()/GRE(proto=0x800)/Raw(bytes(other)))
`

// TestForeignersReadOurTunnels wants what a session sends to be what scapy would send, byte for byte.
func TestForeignersReadOurTunnels(t *testing.T) {
	harness.Need(t, "scapy")
	frames, want := pairs(python(t, encapFrames, ""))
	compare(t, frames, through(t, harness.Built(t), encapFlows, "", false, frames), want)
}

// ourFrames has the session's own header helpers build frames, sends them through its transmit flows too, and records
// what arrives.
const ourFrames = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "frames.yaml", dir = "." }
local s = daqiri.open(args.config)
local tx = s:tx_queue("tx_port")
s:pipe(s:rx_queue("rx_port", 0), s:write_pcap{ name = "ours", dir = args.dir, policy = "wait" })
s:start()
for n = 0, 60 do
  for _, o in ipairs{ { udp_dst = n % 8 }, { udp_dst = 10 }, { udp_dst = 11 }, { udp_dst = 4, ipv4_src = "10.0.0." .. n, ipv4_dst = "239.1.2.3", tos = 8, ttl = 3 }, { tcp_dst = 80, tcp_seq = n },
    { ipv6_dst = "ff05::" .. n, udp_dst = 9 }, { ipv6_dst = "2001:db8::9", tcp_dst = n }, { vlan_id = n, vlan_pcp = 3, udp_dst = 77 },
    { ipv6_dst = "2001:db8::9", udp_src = n, udp_dst = 99, vlan_id = 6 } } do
    o.payload_bytes = n * n % 700
    if n > 0 then o.vary = { [o.tcp_dst and "tcp_src" or "udp_src"] = { random = true } } end
    tx:transmit{ template = tx:template(o), count = 3 }
    daqiri.sleep(0.001)
    local b = assert(tx:alloc(1))          -- the same by hand, with the burst's checksums
    b:fill(tx:template(o))
    b:set{ [o.tcp_dst and "tcp_src" or "udp_src"] = 40000 + n, checksums = false }
    b:checksums()
    assert(tx:send(b))
  end
  tx:transmit{ template = tx:template{ ethertype = 0xaefe, payload = string.char(0x10, n % 3, 0, 20, 0, n) .. ("\0"):rep(18) }, count = 1 }
  daqiri.sleep(0.001)
end
s:stop("done")
`

// dissect takes the frames of a file apart: every length and checksum in them, in tunnels too, is what scapy computes.
const dissect = `
import sys
from scapy.all import *
from scapy.layers.vxlan import VXLAN
n = {}
for i, p in enumerate(rdpcap(sys.stdin.readline().strip())):
    raw = bytes(p)
    again = Ether(raw)
    layer = again
    while layer and not isinstance(layer, NoPayload):
        n[layer.name] = n.get(layer.name, 0) + 1
        outer_vxlan = isinstance(layer, UDP) and isinstance(layer.payload, VXLAN) and isinstance(layer.underlayer, IP)
        for f in ("len", "plen", "chksum", "dataofs", "ihl"):
            if f in layer.fields and not outer_vxlan: del layer.fields[f]
        if outer_vxlan:
            assert layer.chksum == 0, i
            del layer.fields["len"]
        layer = layer.payload
    if bytes(again) != raw: print("frame %d differs\n is %s\nnot %s" % (i, raw.hex(), bytes(again).hex()))
for name in ("VXLAN", "GRE", "802.1Q", "IPv6", "IP", "UDP", "TCP"):
    if n.get(name, 0) < 20: print("only %d of %s" % (n.get(name, 0), name))
print("done", sum(1 for _ in n) > 5)
`

// TestForeignersReadOurHeaders builds frames with every header helper, in tunnels and without, and has scapy and tshark
// check them.
func TestForeignersReadOurHeaders(t *testing.T) {
	harness.Need(t, "scapy", "tshark")
	program, dir := harness.Built(t), t.TempDir()
	// Readers take GRE's protocol at its word: whole frames are 0x6558.
	flows := strings.NewReplacer("gre_protocol: 0x0800", "gre_protocol: 0x6558", "gre_protocol: 0x86dd", "gre_protocol: 0x6558").Replace(encapFlows)
	config := strings.NewReplacer("%TX%", flows, "%RX%", "", "%ISOLATION%", "false").Replace(frameConfig)
	for name, text := range map[string]string{"frames.yaml": config, "ours.lua": ourFrames} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(program, "--summary", "none", filepath.Join(dir, "ours.lua"), "--config", filepath.Join(dir, "frames.yaml"), "--dir", dir)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "ours.pcap")
	if lines := python(t, dissect, file+"\n"); len(lines) != 1 || lines[0] != "done True" {
		t.Error(strings.Join(lines, "\n"))
	}
	tsharkFinds(t, file, "ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0 || udp.length.bad", 0)
	tsharkFinds(t, file, "tcp.checksum.status == 1 && ipv6 && gre", 61*4)
	tsharkFinds(t, file, "vxlan.vni == 0xabcdef && vxlan.flag_i == 1 && udp.srcport == 49999 && ip.dsfield == 0xb8 && ip.ttl == 7", 32)
	tsharkFinds(t, file, "vlan.id == 5 && vxlan.vni == 1 && udp.srcport >= 49152", 61*4)
	tsharkFinds(t, file, "gre.proto == 0x6558 && gre.key == 0x12345609 && eth.src == 02:00:00:00:01:01", 28)
	tsharkFinds(t, file, "ipv6.nxt == 17 && ipv6.hlim == 9 && ipv6.tclass == 0xb8 && udp.checksum.status == 1 && vxlan.vni == 6", 61*4)
	tsharkFinds(t, file, "ipv6.dst == 2001:db8::2 && gre.proto == 0x6558 && udp.dstport == 11", 61*4)
	tsharkFinds(t, file, "ecpri.type == 2", 20)
}

// tsharkFinds wants so many packets that a display filter passes, with all checksums checked.
func tsharkFinds(t *testing.T, file, filter string, want int) {
	t.Helper()
	run := exec.Command("tshark", "-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
	out, err := run.Output()
	if err != nil {
		t.Fatalf("tshark %s: %v", filter, err)
	}
	if got := strings.Count(string(out), "\n"); got != want {
		t.Errorf("%d frames, want %d: %s\n%.200s", got, want, filter, out)
	}
}
