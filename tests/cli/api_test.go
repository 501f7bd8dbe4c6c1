package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// headerScript sends four packets whose headers daqiri.api wrote, of odd and even lengths, one of them sent before with
// others that were written by hand, and records what comes out of the wire.
const headerScript = `
local api = require "daqiri.api"
local function ok(status, ...) if status ~= api.Status.SUCCESS then error(status .. ": " .. tostring(select(-1, nil, ...)), 2) end return ... end
ok(api.daqiri_init(require("daqiri").parse(arg[1])))
local s = api.session()
s:pipe(s:rx_queue("rx_port"), s:write_pcap{ name = "wire", dir = arg[2], policy = "wait" })
local function send(n, by_hand)
  local burst = api.create_tx_burst_params()
  api.set_header(burst, api.get_port_id("tx_port"), 0, n, 1)
  ok(api.get_tx_packet_burst(burst))
  for i = 0, n - 1 do
    local payload = ("payload"):rep(n):sub(1, n + i)
    if i == by_hand then
      ok(api.copy_buffer_to_packet(burst, i, ("\255"):rep(60)))
      ok(api.set_packet_lengths(burst, i, { 60 }))
    else
      ok(api.set_eth_header(burst, i, api.format_eth_addr("02:00:00:00:00:07")))
      ok(api.set_ipv4_header(burst, i, 8 + #payload, api.IPPROTO_UDP, "10.1.2.3", 0x0a010204))
      ok(api.set_udp_header(burst, i, #payload, 4096, 7000 + i))
      ok(api.set_udp_payload(burst, i, payload, #payload))
      ok(api.set_packet_lengths(burst, i, { 42 + #payload }))
    end
  end
  ok(api.send_tx_burst(burst))
end
send(3)
send(2, 0)
require("daqiri").sleep(0.05)
api.shutdown()
`

// TestReferenceHeaders has tshark read what set_eth_header, set_ipv4_header, set_udp_header and set_udp_payload made.
func TestReferenceHeaders(t *testing.T) {
	harness.Need(t, "tshark")
	dir := t.TempDir()
	script, config := filepath.Join(dir, "headers.lua"), filepath.Join(tree.Root, "scripts/loop/virtual.yaml")
	if err := os.WriteFile(script, []byte(headerScript), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(harness.Built(t), script, config, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("tshark", "-n", "-r", filepath.Join(dir, "wire.pcap"), "-o", "ip.check_checksum:TRUE",
		"-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "eth.dst", "-e", "eth.src", "-e", "ip.len", "-e", "ip.checksum.status",
		"-e", "ip.src", "-e", "ip.dst", "-e", "udp.dstport", "-e", "udp.length", "-e", "udp.checksum.status", "-e", "udp.payload").Output()
	if err != nil {
		t.Fatal(err)
	}
	const good = "1" // of a checksum
	row := func(port int, payload string) string {
		return strings.Join([]string{"02:00:00:00:00:07", "02:00:00:00:00:01", fmt.Sprint(28 + len(payload)), good, "10.1.2.3", "10.1.2.4",
			fmt.Sprint(port), fmt.Sprint(8 + len(payload)), good, fmt.Sprintf("%x", payload)}, "\t")
	}
	want := []string{row(7000, "pay"), row(7001, "payl"), row(7002, "paylo"),
		"ff:ff:ff:ff:ff:ff\tff:ff:ff:ff:ff:ff\t\t\t\t\t\t\t\t", row(7001, "pay")}
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("tshark reads\n%q\nwant\n%q", got, want)
	}
}
