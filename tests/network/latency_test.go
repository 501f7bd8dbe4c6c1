package network

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// latencyScript runs raw_latency.lua with a clock of a network card whose offset grows by 1000 ns at each reading, and prints what the kernel
// has of the thread's scheduling and of locked memory.
const latencyScript = `
local daqiri = require "daqiri"
local readings, realtime = 0, daqiri.realtime
daqiri.ptp_clock = function(n)
  readings = readings + 1
  return { name = "card", offset = 1000 * readings, uncertainty = 10 * n + readings }
end
daqiri.realtime = function(priority)
  realtime(priority)
  local stat = {}
  for word in io.open("/proc/thread-self/stat"):read("*a"):match("%) (.*)"):gmatch("%S+") do stat[#stat + 1] = word end
  print("scheduled", stat[38], stat[39], io.open("/proc/self/status"):read("*a"):match("VmLck:%s+(%d+)") ~= "0")
end
dofile(SCRIPT)
`

// TestRawLatency measures 20 packets of each size over veth by AF_PACKET: every sample is there, its parts add up, and the offset of the
// card's clock lies between the readings before and after the size.
func TestRawLatency(t *testing.T) {
	t.Parallel()
	harness.Need(t, "root")
	c := newCable(t)
	c.Host("ip", "-n", c.Send, "link", "add", "near", "mtu", "9000", "type", "veth", "peer", "name", "far", "mtu", "9000")
	c.Host("ip", "-n", c.Send, "link", "set", "near", "up")
	c.Host("ip", "-n", c.Send, "link", "set", "far", "up")
	path, err := filepath.Abs("../../scripts/network/raw_latency.lua")
	if err != nil {
		t.Fatal(err)
	}
	script := harness.WriteScript(t, strings.Replace(latencyScript, "SCRIPT", strconv.Quote(path), 1))
	samples := filepath.Join(filepath.Dir(script), "latency.csv")
	out := c.In(c.Send, harness.Built(t), "--set", "loopback=", "--set", "engine=packet", "--set", "interfaces[0].address=near",
		"--set", "interfaces[1].address=far", script, "--config", filepath.Join(filepath.Dir(path), "raw_latency.yaml"), "--samples", "20",
		"--warmup", "3", "--csv", samples, "--ptp-device", "2", "--realtime-priority", "1", "--patience", "60")
	for _, want := range []string{"receive times: kernel: ", "scheduled\t1\t1\ttrue\n", harness.Balanced, // SCHED_FIFO is policy 1
		"clock card: 1000 ns ahead of the system's, then 2000, within 22 ns\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^\d+,20,0,\d+,\d+,\d+,\d+$`).FindAllString(out, -1)); n != 8 {
		t.Errorf("%d sizes are complete, want 8:\n%s", n, out)
	}
	file, err := os.Open(samples)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 1+8*20 {
		t.Fatalf("%d rows, want 161: %v", len(rows), err)
	}
	want := []string{"packet_bytes", "sample", "tx_call_to_return_ns", "tx_call_to_rx_hw_ns", "rx_hw_to_app_ns", "tx_call_to_app_ns",
		"phc_offset_ns", "phc_uncertainty_ns"}
	if !slices.Equal(rows[0], want) {
		t.Errorf("columns %q, want %q", rows[0], want)
	}
	for i, row := range rows[1:] {
		var n [8]int
		for k, text := range row {
			if n[k], err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		size := i / 20 // the clock was read twice for each size before
		if n[0] != 64<<size || n[1] != i%20+1 || n[3]+n[4] != n[5] || n[2] <= 0 || n[6] < 1000*(2*size+1) || n[6] > 1000*(2*size+2) || n[7] != 20+2*size+2 {
			t.Errorf("row %d: %v", i, row)
		}
	}
}
