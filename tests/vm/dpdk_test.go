package main

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

//go:embed testpmd.sh
var testpmdScript string

// TestPCI sends from each of two PCI cards to the other with testpmd: 4 bursts of 32 packets.
func TestPCI(t *testing.T) {
	t.Parallel()
	k := need(t, "dpdk-testpmd")
	output := must(t, k, machine{nics: 2}, testpmdScript+`
		testpmd -l 0,1 -a 0000:00:05.0 -a 0000:00:06.0 -- -i --total-num-mbufs=4096
		say "set fwd rxonly" "Set rxonly"
		say "start tx_first 4" "packets/burst"
		sleep 2
		say "stop" "Done\."
		say "quit" "Bye"
		wait
		cat log`)
	if n := count(output, `Probe PCI driver: net_e1000_em .* device: 0000:00:0[56]\.0`); n != 2 {
		t.Errorf("%d cards were found by address", n)
	}
	got := numbers(output, `(?m)^  RX-packets: (\d+) .*RX-total: \d+\s*$`)
	if !slices.Equal(got, []int{128, 128, 256}) {
		t.Errorf("ports 0 and 1 and both received %d packets, want 128 and 128", got)
	}
	if t.Failed() {
		t.Log(output)
	}
}

// TestFlowRules gives net_tap rte_flow rules and sends packets that scapy built: 5 to drop, 64 for queue 1, 32 for
// queues 2 and 3 by RSS, where it takes that rule, and 16 that no rule wants. A mark it refuses.
func TestFlowRules(t *testing.T) {
	t.Parallel()
	k := need(t, "dpdk-testpmd", "tcpreplay", "tc")
	dir := t.TempDir()
	frames := filepath.Join(dir, "frames.pcap")
	scapy(t, `
from scapy.all import Ether, IP, UDP, wrpcap
wrpcap("`+frames+`", [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.%d" % (k + 1), dst="10.0.1.1")
    / UDP(sport=1000 + k, dport=port) / bytes(20 + k) for port, n in ((9, 5), (10, 64), (11, 32), (12, 16)) for k in range(n)])`)
	output := must(t, k, machine{}, testpmdScript+`
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 # the kernel's own packets would be counted
		testpmd -l 0,1 --no-pci --no-huge -m 256 --vdev=net_tap0,iface=dtap0 -- -i --rxq=4 --txq=4 --total-num-mbufs=4096
		say "set fwd rxonly" "Set rxonly"
		say "flow create 0 ingress pattern eth / ipv4 / udp dst is 9 / end actions drop / end" "rule #0 created"
		say "flow create 0 ingress pattern eth / ipv4 / udp dst is 10 / end actions queue index 1 / end" "rule #1 created"
		say "flow create 0 ingress pattern eth / ipv4 / udp dst is 11 / end actions rss queues 2 3 end / end" "rule #2 created\|BPF program loading"
		say "flow create 0 ingress pattern eth / ipv4 / udp dst is 12 / end actions mark id 7 / queue index 2 / end" "action not supported"
		say "start" "packets/burst"
		tcpreplay -q -i dtap0 -p 2000 `+frames+` || exit
		sleep 1
		tc -s filter show dev dtap0 parent 1:
		say "show port xstats 0" "rx_q3_bytes"
		say "flow flush 0" "flow flush"
		say "stop" "Done\."
		tc filter show dev dtap0 parent 1: | sed 's/^/left: /'
		say "quit" "Bye"
		wait
		cat log`)
	got := numbers(output, `rx_q[0-3]_packets: (\d+)`)
	if len(got) != 4 || got[0]+got[1]+got[2]+got[3] != 64+32+16 || got[1] < 64 {
		t.Errorf("the queues got %d packets, want at least 64 in queue 1 and 112, all but the dropped, in all", got)
	}
	if strings.Contains(output, "rule #2 created") {
		if len(got) == 4 && got[2]+got[3] < 32 {
			t.Errorf("queues 2 and 3 got %d packets, want the 32 that the RSS rule spreads", got)
		}
	} else {
		t.Log("no RSS rule: the driver's BPF program is refused by the kernel")
	}
	if count(output, `dst_port 9\n[^#]*?action order 1: gact action drop\n[^#]*?Sent \d+ bytes 5 pkt \(dropped 5,`) != 1 {
		t.Error("the kernel did not count 5 packets that the drop rule dropped")
	}
	if count(output, `dst_port 10\n[^#]*?queue_mapping 1 pipe\n[^#]*?Sent \d+ bytes 64 pkt \(dropped 0,`) != 1 {
		t.Error("the kernel did not count 64 packets that the queue rule took")
	}
	if count(output, `left: .*flower`) != 0 {
		t.Error("a rule is left after the flush")
	}
	if t.Failed() {
		t.Log(output)
	}
}

// scapy runs a Python script that needs scapy, on this machine: there it would be slow.
func scapy(t *testing.T, script string) {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('scapy') is None)").Run() != nil {
			continue
		}
		if out, err := exec.Command(python, "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("scapy: %v\n%s", err, out)
		}
		return
	}
	require.Lack(t, "scapy", "no python3 with scapy (`make deps` installs it on Debian and Ubuntu)")
}

func count(text, pattern string) int {
	return len(regexp.MustCompile(pattern).FindAllString(text, -1))
}

// numbers are those that a pattern's group finds.
func numbers(text, pattern string) []int {
	var list []int
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			panic(fmt.Sprintf("%s matches %q", pattern, m[1]))
		}
		list = append(list, n)
	}
	return list
}
