package network

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
)

// gpuSplitScript receives headers into the host's memory and payloads into a GPU's, joins both by s:copy and writes them.
const gpuSplitScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ rx = "", dir = ".", whole = false }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "head", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 64 },
                     { name = "body", kind = "device", affinity = 0, num_bufs = 2048, buf_size = 9000 },
                     { name = "whole", kind = "host_pinned", affinity = 0, num_bufs = 2048, buf_size = 9100 } },
  interfaces = { { name = "port", address = args.rx, rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 200,
    memory_regions = args.whole and { "body" } or { "head", "body" } } } } } } } } }
local rx, got, columns = s:rx_queue("port"), 0, {}
local function look()
  if got == 280 and (not args.whole or #columns == 280) then s:stop("all there") end
end
if args.whole then
  rx:on_burst(function(b)
    local ports, lens, far = b:column "udp_dst", b:column "len", b:column "payload_len"
    for i = 1, b.n do columns[#columns + 1] = ("%d %d %d"):format(ports[i], lens[i], far[i]) end
    look()
  end, { policy = "wait" })
end
local joined = s:copy{ name = "joined", memory_region = "whole", policy = "wait" }
s:pipe(rx, joined, s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait" })
joined:on_burst(function(b)
  got = got + b.n
  look()
end)
s:run{ seconds = 30 }
print(daqiri.json{ got = got, columns = columns })
`

// TestCardGPU has the device put payloads into the memory of a GPU: it is mapped for the device, nothing of it passes the CPU, and
// what the GPU hands back is what scapy sent. Where the device can't, the payloads lie in pinned memory, and the report gives the reason.
func TestCardGPU(t *testing.T) {
	harness.Need(t, "dpdk", "scapy", "tshark")
	driver, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	fields := []string{"frame.len", "udp.srcport", "udp.payload", "udp.checksum.status"}
	want := harness.TsharkLines(t, sent, fields...)
	t.Setenv("DAQIRI_CUDA", driver)
	const pinned = "its buffers lie in pinned host memory"
	for _, c := range []struct {
		features, gpu string
		written       int // parts that the card wrote into the GPU's memory
		says          []string
	}{
		{"split,gpu", "", 160, []string{"memory region body: device net_pcap0 of queue rx puts packets into the GPU's memory itself (GPUDirect)",
			"packets stay where the device put them", "queue rx: hds: device"}},
		{"split", "", 0, []string{"memory region body: device: device net_pcap0 of queue rx can't reach the GPU's memory: ", "modprobe nvidia-peermem", pinned}},
		{"gpu", "", 0, []string{"memory region body: device: queue rx: packets are split over several memory regions, which the device can't do", pinned}},
		{"split,gpu", "peer=0", 0, []string{"memory region body: device: queue rx: GPU 0 (Fake GPU) lends its memory to no device (GPUDirect RDMA)", pinned}},
	} {
		dir := t.TempDir()
		record := filepath.Join(dir, "record")
		t.Setenv("DAQIRI_NIC_RECORD", record)
		t.Setenv("DAQIRI_FAKE_CUDA", c.gpu)
		var got struct{ Got int }
		output := onCard(t, c.features, gpuSplitScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap=/dev/null", "--dir", dir)
		wants(t, output, c.says...)
		if !slices.Equal(harness.TsharkLines(t, filepath.Join(dir, "disk.pcap"), fields...), want) {
			t.Errorf("with %q, %q: what came from the GPU's memory is not what was sent", c.features, c.gpu)
		}
		if c.written == 0 {
			continue
		}
		mapped, unmapped := numbersIn(t, record, "mapped"), numbersIn(t, record, "unmapped")
		if n := len(numbersIn(t, record, "gpu")); n != c.written || len(mapped) != 2 || !slices.Equal(mapped, unmapped) {
			t.Errorf("%d parts of %d went into the GPU's memory; mapped %d, unmapped %d", n, c.written, mapped, unmapped)
		}
	}
}

// TestCardGPUWhole has the device put whole packets there: their heads say what they are, and the GPU hands back what scapy sent.
func TestCardGPUWhole(t *testing.T) {
	harness.Need(t, "dpdk", "scapy", "tshark")
	driver, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sent, record := filepath.Join(dir, "sent.pcap"), filepath.Join(dir, "record")
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	t.Setenv("DAQIRI_CUDA", driver)
	t.Setenv("DAQIRI_NIC_RECORD", record)
	var got struct {
		Got     int
		Columns []string
	}
	output := onCard(t, "gpu", gpuSplitScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap=/dev/null", "--dir", dir, "--whole")
	wants(t, output, "memory region body: device net_pcap0 of queue rx puts packets into the GPU's memory itself (GPUDirect)", "packets stay where the device put them",
		"memory region body: whole packets are in the memory of GPU 0; a kernel copies their first 128 bytes to the host")
	fields := []string{"frame.len", "udp.srcport", "udp.payload", "udp.checksum.status"}
	if !slices.Equal(harness.TsharkLines(t, filepath.Join(dir, "disk.pcap"), fields...), harness.TsharkLines(t, sent, fields...)) {
		t.Error("what came from the GPU's memory is not what was sent")
	}
	var want []string
	for range 40 {
		for _, n := range []int{0, 18, 22, 23, 100, 1400, 8900} {
			want = append(want, fmt.Sprintf("7148 %d %d", 42+n, n))
		}
	}
	if !slices.Equal(got.Columns, want) {
		t.Errorf("%d packets have these fields, %d were to; or they differ", len(got.Columns), len(want))
	}
	if n := len(numbersIn(t, record, "gpu")); n != 280 {
		t.Errorf("%d packets went into the GPU's memory", n)
	}
}
