package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// metricsScript receives 1000 packets of two flows on two queues, hands one queue to a handler and one to a file, reports
// so, and waits to be stopped.
const metricsScript = `
local daqiri = require "daqiri"
local s = daqiri.open("m.yaml")
local first, second = s:rx_queue("port", 0), s:rx_queue("port", 1)
local seen = 0
first:on_burst(function(b) seen = seen + b.n end)
s:pipe(second, s:filter{ name = "none \"odd\\", where = "udp_dst == 1" }, s:write_pcap{ name = "disk", dirs = { "." } })
s:pipe(second, s:write_pcap{ name = "all", dirs = { "." } })
s:metric("answer", 42)
local tx = s:tx_queue("port", 0)
s:after(0, function() tx:transmit{ template = tx:template{ udp_dst = 7148, payload = ("x"):rep(100) }, count = 600 } end)
local printed, more = false, tx:template{ udp_dst = 7149, payload = ("y"):rep(50) }
s:every(0.05, function()
  local l = s:stats()
  if more and seen == 600 then -- a second transmission replaces one that goes on
    tx:transmit{ template = more, count = 400 }
    more = nil
  end
  if not printed and seen == 600 and l.port.rx.packets == 1000 and l.all.written == 400 and l.all.held == 0 then
    printed = true
    print("ready")
  end
end)
s:run{}
`

const metricsConfig = harness.LoopHead + `        - { name: "b", id: 1, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: ["buffers"] }
        flows:
        - { name: "north", id: 11, match: { udp_dst: 7148 }, action: { type: queue, id: 0 } }
        - { name: "south", id: 12, match: { udp_dst: 7149 }, action: { type: queue, id: 1 } }
` + harness.LoopTail

// metricsRun starts the script with an endpoint and returns what the endpoint shows once nothing moves, and the summary.
func metricsRun(t *testing.T) (map[string]*dto.MetricFamily, harness.LedgerJSON, string) {
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"m.lua": metricsScript, "m.yaml": metricsConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd, _, stderr := harness.StartReady(t, dir, program, "--metrics", ":0", "--summary-json", "s.json", "m.lua")
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(stderr.String())
	families := scrapeMetrics(t, url)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the endpoint outlived the program")
	}
	data, err := os.ReadFile(filepath.Join(dir, "s.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Sessions []struct{ Ledger harness.LedgerJSON }
	}
	if err := json.Unmarshal(data, &report); err != nil || len(report.Sessions) != 1 {
		t.Fatalf("%v in %s", err, data)
	}
	return families, report.Sessions[0].Ledger, stderr.String()
}

func scrapeMetrics(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value finds the one series of a metric with these labels: "queue_id=all direction=rx".
func value(families map[string]*dto.MetricFamily, name, labels string) (v float64, h *dto.Histogram, n int) {
	for _, m := range families[name].GetMetric() {
		has := map[string]bool{}
		for _, l := range m.Label {
			has[strings.TrimPrefix(l.GetName(), "daqiri_")+"="+l.GetValue()] = true
		}
		all := true
		for _, want := range strings.Split(labels, "; ") {
			all = all && has[want]
		}
		if all {
			v, h, n = m.GetCounter().GetValue()+m.GetGauge().GetValue(), m.Histogram, n+1
		}
	}
	return v, h, n
}

// What Prometheus reads when nothing moves is what the summary reports at the end, line by line; and an interface's series
// are the sums of its queues'.
func TestMetricsAreTheLedger(t *testing.T) {
	families, ledger, stderr := metricsRun(t)
	check := func(name, labels string, want uint64) {
		t.Helper()
		if v, _, n := value(families, name, labels); n != 1 || v != float64(want) {
			t.Errorf("%s{%s}: %v in %d series, want %d", name, labels, v, n, want)
		}
	}
	sums := map[string]uint64{}
	for _, l := range ledger.Lines {
		of := "session_name=m.yaml; stage_kind=" + l.Kind + "; stage_name=" + l.Name
		switch l.Kind {
		case "rx", "tx", "wire":
			of = fmt.Sprintf("interface_name=port; port_id=0; engine=loop; direction=%s; queue_id=%d", l.Kind, l.QueueID)
			packets, size := l.In, l.InBytes
			if l.Kind == "tx" {
				packets, size = l.Out, l.OutBytes
			}
			check("daqiri_"+l.Kind+"_packets_total", of, packets)
			check("daqiri_"+l.Kind+"_bytes_total", of, size)
			sums[l.Kind] += packets
		default:
			check("daqiri_stage_in_packets_total", of, l.In)
			check("daqiri_stage_out_bytes_total", of, l.OutBytes)
		}
		check("daqiri_bursts_total", of, l.Bursts)
		for reason, n := range l.Dropped {
			check("daqiri_dropped_packets_total", of+"; drop_reason="+reason, n)
		}
		for _, f := range l.Flows {
			check("daqiri_flow_packets_total", fmt.Sprintf("queue_id=all; flow_id=%d; flow_name=%s", f.ID, f.Name), f.Packets)
			check("daqiri_flow_bytes_total", fmt.Sprintf("queue_id=all; flow_id=%d; flow_name=%s", f.ID, f.Name), f.Bytes)
			sums["flow "+f.Name] = f.Packets
		}
		if b := l.Histograms.BurstSize; b != nil {
			_, h, _ := value(families, "daqiri_rx_burst_size", of)
			if h.GetSampleCount() != b.N || h.GetSampleSum() != float64(b.Sum) || b.Sum != l.Out || b.N != l.Bursts || b.Max > 64 {
				t.Errorf("burst sizes of %s: %v, %+v, out %d, bursts %d", of, h, b, l.Out, l.Bursts)
			}
			sums["histograms"]++
		}
		if b := l.Histograms.HandlerTime; b != nil {
			_, h, _ := value(families, "daqiri_handler_time_seconds", of)
			if h.GetSampleCount() != b.N || b.N != l.Bursts || b.Sum == 0 {
				t.Errorf("handler times of %s: %v, %+v, bursts %d", of, h, b, l.Bursts)
			}
			sums["histograms"]++
		}
	}
	for _, direction := range []string{"rx", "tx", "wire"} {
		if sums[direction] != 1000 {
			t.Errorf("%s: %d packets, want 1000", direction, sums[direction])
		}
		check("daqiri_"+direction+"_packets_total", "queue_id=all; direction="+direction, 1000)
	}
	check("daqiri_dropped_packets_total", `drop_reason=filtered; stage_name=none "odd\`, 400)
	check("daqiri_metric", "metric_name=answer", 42)
	if sums["flow north"] != 600 || sums["flow south"] != 400 || sums["histograms"] != 3 {
		t.Errorf("%v", sums)
	}
	if t.Failed() {
		t.Log(stderr)
	}
}

// peerScript receives datagrams of peers on a port of this machine's choice.
const peerScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ port = 0 }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
  interfaces = { { name = "in", address = "127.0.0.1", socket_config = { mode = "server", local_addr = "udp://127.0.0.1:" .. args.port },
    rx = { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "m" } } } } } } } } }
s:rx_queue("in"):on_burst(function() end)
s:after(0, function() print("ready") end)
s:run{}
`

// TestPeerMetrics: Prometheus gets of each peer how many packets it sent, and how many bytes of payload.
func TestPeerMetrics(t *testing.T) {
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.lua"), []byte(peerScript), 0o644); err != nil {
		t.Fatal(err)
	}
	udp := harness.FreeAddress(t)
	_, port, _ := net.SplitHostPort(udp)
	cmd, _, stderr := harness.StartReady(t, dir, program, "--metrics", "127.0.0.1:0", "m.lua", "--port", port)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(stderr.String())
	sent := map[string][2]uint64{}
	for k, size := range []int{100, 777} {
		peer, err := net.Dial("udp", udp)
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		n := 20 + k
		for range n {
			if _, err := peer.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		sent[peer.LocalAddr().String()] = [2]uint64{uint64(n), uint64(n * size)}
	}
	var families map[string]*dto.MetricFamily
	harness.WaitFor(t, "the packets", func() bool {
		families = scrapeMetrics(t, url)
		v, _, _ := value(families, "daqiri_rx_packets_total", "queue_id=all")
		return v == 41
	})
	for name, want := range sent {
		packets, _, _ := value(families, "daqiri_peer_packets_total", "peer_name="+name)
		bytes, _, _ := value(families, "daqiri_peer_bytes_total", "peer_name="+name)
		if uint64(packets) != want[0] || uint64(bytes) != want[1] {
			t.Errorf("%s: %v packets and %v bytes, sent %v", name, packets, bytes, want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}
