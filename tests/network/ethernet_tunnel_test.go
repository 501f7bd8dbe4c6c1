package network

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// tunnelSender sends tagged frames and frames in a tunnel, some of which the interface can't carry.
const tunnelSender = `
local daqiri = require "daqiri"
local args = daqiri.args{ peer = "" }
local s = daqiri.open("raw.yaml")
local tx = s:tx_queue("rx_port")
s:start()
for _, o in ipairs{ { count = 10, udp_dst = 7, payload_bytes = 1472 }, { count = 7, udp_dst = 8, payload_bytes = 1422 }, { count = 5, udp_dst = 8, payload_bytes = 1423 },
  { count = 3, udp_dst = 9, payload_bytes = 100 } } do
  local count = o.count
  o.count = nil
  o.eth_dst, o.ipv4_dst = args.peer, "10.77.0.1"
  tx:transmit{ template = tx:template(o), count = count }
  daqiri.sleep(0.1)
end
local l = s:stats()
print(("transformed %d, too long %d"):format(l.rx_port.tx.transformed, l.rx_port.tx.dropped_by.too_long))
s:stop("done")
`

const tunnelSection = `      tx:
        queues:
        - {name: t0, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [m]}
        flows:
        - {name: tag, id: 1, match: {udp_dst: 7}, actions: [{type: vlan_push, vlan_id: 7}]}
        - name: tunnel
          id: 2
          match: {udp_dst: 8}
          actions: [{type: tunnel_encap, tunnel: {type: vxlan, vni: 5, outer_eth_src: "02:00:00:00:01:01", outer_eth_dst: "02:00:00:00:01:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2}}]
`

// TestRawTunnels has tcpdump and tshark check our tags and tunnels on the wire. What the MTU has no room for is
// counted, and a tag is not part of it.
func TestRawTunnels(t *testing.T) {
	harness.Need(t, "tshark", "tcpdump")
	program := harness.Built(t)
	c := newCable(t)
	file := filepath.Join(t.TempDir(), "wire.pcap")
	dump := c.Command(c.Send, "tcpdump", "-U", "-Z", "root", "-i", "veth0", "-w", file, "udp port 4789 or (vlan and udp)")
	var says harness.Buffer
	dump.Stderr = &says
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Process.Kill() })
	harness.Until(t, "tcpdump", func() bool { return strings.Contains(says.String(), "listening on") })
	r := c.raw(program, tunnelSender, tunnelSection, "--peer", c.mac(c.Send))
	r.end(0)
	if want := "transformed 17, too long 5"; !strings.Contains(r.out.String(), want) {
		t.Errorf("the program says %s, want %s", r.out.String(), want)
	}
	count := func(filter string) int {
		out, err := exec.Command("tshark", "-r", file, "-Y", filter, "-T", "fields", "-e", "frame.len").Output()
		if err != nil && len(out) == 0 {
			return -1 // not all written yet
		}
		return bytes.Count(out, []byte{'\n'})
	}
	for filter, want := range map[string]int{"vlan.id == 7 && frame.len == 1518": 10, "vxlan.vni == 5 && frame.len == 1514 && udp.dstport == 8": 7, "frame.len > 1518": 0} {
		harness.Until(t, fmt.Sprintf("%d frames with %s", want, filter), func() bool { return count(filter) == want })
	}
}
