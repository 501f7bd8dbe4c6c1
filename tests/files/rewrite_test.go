package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// rewriteScript replays a capture several times, rewrites each packet and writes what came out.
const rewriteScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "rewrite.yaml", dir = "out", checksums = "update" }
local s = daqiri.open(args.config)
local checksums = args.checksums == "update"
local edit = s:rewrite{ name = "edit", format = "simple", checksums = checksums or "compute",
  eth_dst = "02:00:00:00:00:63", ip_ttl = 9, ip_tos = { ["0"] = 0xb8 }, ipv4_src = { ["10.1.0.0/16"] = "172.20.0.0/16" }, ipv4_dst = "192.0.2.99",
  ipv6_src = { ["fd98::/112"] = "2001:db8:0:7::/112", ["fd98::16"] = "2001:db8::99" }, ipv6_dst = { "2001:db8:1::fff0", 1 },
  udp_dst = { 5000, 1 }, per_loop = { udp_src = 100, tcp_src = -1, seq = 1000003 } }
s:pipe(s:rx_queue("src"), edit, s:write_pcap{ name = "after", dir = args.dir, policy = "wait", manifest = false })
local l = s:run{}
print(("%d %d"):format(l.edit["in"], l.after.written))
`

const rewriteConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: src
      address: "pcap:before.pcap"
      replay: {speed: max, loops: 3}
      rx:
        queues:
        - {name: q0, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 100, memory_regions: [packets]}
`

// rewritePackets makes the capture. Some packets have no UDP checksum; some sums are such that the new checksum is 0.
const rewritePackets = `
import random, sys
from scapy.all import *
random.seed(16)
def one(k):
    eth = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    if k % 5 == 0: eth = eth/Dot1Q(vlan=k % 4095)
    if k % 15 == 0: eth = eth/Dot1Q(vlan=5)
    ip = IP(src="10.%d.%d.%d" % (1 + k % 2, random.randrange(256), random.randrange(256)), dst="10.0.0.2", ttl=random.randrange(2, 256), tos=random.choice([0, 8]), id=k)
    if k % 7 == 0: ip.options = [IPOption(b"\x94\x04\0\0")]
    if k % 11 == 0: ip = IPv6(src="fd98::%x" % k, dst="fd98::2", hlim=7, tc=random.choice([0, 8]))
    l4 = UDP(sport=random.randrange(65536), dport=7148)
    if k % 6 == 0: l4 = TCP(sport=random.randrange(65536), dport=7148, flags="PA", seq=k)
    if k % 13 == 0 and IP in ip: l4 = UDP(sport=4000, dport=7148, chksum=0)
    if k % 17 == 0 and IP in ip: l4 = ICMP(type=8, id=k)
    return eth/ip/l4/Raw(random.randbytes(random.choice([8, 9, 40, 300, 1200])))
wrpcap(sys.argv[1], [one(k) for k in range(700)])
`

// rewriteCheck has scapy change the packets itself, compute all checksums, and compare every byte.
const rewriteCheck = `
import struct, sys
from scapy.all import *
def expected(p, k, loop):
    p[Ether].dst = "02:00:00:00:00:63"
    if IP in p:
        if p[IP].tos == 0: p[IP].tos = 0xb8
        if p[IP].src.startswith("10.1."): p[IP].src = p[IP].src.replace("10.1.", "172.20.")
        p[IP].dst, p[IP].ttl = "192.0.2.99", 9
        del p[IP].chksum
    else:
        p[IPv6].hlim = 9
        p[IPv6].src = "2001:db8::99" if p[IPv6].src == "fd98::16" else p[IPv6].src.replace("fd98::", "2001:db8:0:7::")
        p[IPv6].dst = "2001:db8:1::%x" % (0xfff0 + k) if 0xfff0 + k < 65536 else "2001:db8:1::1:%x" % (0xfff0 + k - 65536)
        if p[IPv6].tc == 0: p[IPv6].tc = 0xb8
    kept = UDP in p and p[UDP].chksum == 0
    if UDP in p:
        p[UDP].dport = (5000 + k) % 65536
        p[UDP].sport = (p[UDP].sport + 100 * loop) % 65536
        del p[UDP].chksum
    if TCP in p:
        p[TCP].sport = (p[TCP].sport - loop) % 65536
        del p[TCP].chksum
    if ICMP in p: del p[ICMP].chksum
    load = p[Raw].load
    p[Raw].load = struct.pack(">Q", (struct.unpack(">Q", load[:8])[0] + 1000003 * loop) % 2**64) + load[8:]
    if kept and sys.argv[3] == "update": p[UDP].chksum = 0
    return bytes(p)
before, after = rdpcap(sys.argv[1]), rdpcap(sys.argv[2])
assert len(after) == 3 * len(before), len(after)
for k, q in enumerate(after):
    want = expected(before[k % len(before)].copy(), k, k // len(before))
    assert want == bytes(q), "packet %d:\n%s\n%s" % (k, want.hex(), bytes(q).hex())
print(len(after), "are right")
`

// TestRewrite rewrites packets that scapy made, in three loops: each is what scapy makes of it, and tshark finds every
// checksum right.
func TestRewrite(t *testing.T) {
	harness.Need(t, "scapy", "tshark")
	python, err := harness.ScapyPython()
	if err != nil {
		t.Fatal(err)
	}
	program, dir := harness.Built(t), t.TempDir()
	for name, text := range map[string]string{"rewrite.lua": rewriteScript, "rewrite.yaml": rewriteConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(python, "-W", "ignore", "-c", rewritePackets, filepath.Join(dir, "before.pcap")).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	for _, how := range []string{"update", "compute"} {
		run := exec.Command(program, "--summary", "none", "rewrite.lua", "--dir", how, "--checksums", how)
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "2100 2100\n") {
			t.Fatalf("%v\n%s", err, out)
		}
		after := filepath.Join(dir, how, "after.pcap")
		if out, err := exec.Command(python, "-W", "ignore", "-c", rewriteCheck, filepath.Join(dir, "before.pcap"), after, how).CombinedOutput(); err != nil || !strings.Contains(string(out), "2100 are right") {
			t.Errorf("%s: %v\n%s", how, err, out)
		}
		checkChecksums(t, after, 2100)
	}
}

// checkChecksums has tshark check every checksum of a capture.
func checkChecksums(t *testing.T, file string, frames int) {
	t.Helper()
	status := []string{"ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "icmp.checksum.status"}
	args := []string{"-n", "-r", file, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields"}
	for _, s := range status {
		args = append(args, "-e", s)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	counts := map[string]int{}
	for n, line := range lines {
		for i, v := range strings.Split(line, "\t") {
			counts[status[i]+" "+v]++
			if v != "" && v != "1" && (v != "3" || status[i] != "udp.checksum.status") { // 1: good, 3: none was sent
				t.Fatalf("%s, frame %d: %s = %s", filepath.Base(file), n+1, status[i], v)
			}
		}
	}
	if len(lines) != frames || counts["ip.checksum.status 1"] < frames/2 || counts["udp.checksum.status 1"] < frames/2 || counts["tcp.checksum.status 1"] == 0 {
		t.Fatalf("tshark looked at %s", fmt.Sprint(counts, " of ", strconv.Itoa(len(lines)), " frames"))
	}
}
