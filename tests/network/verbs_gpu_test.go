package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// verbsGPUScript sends the frames of a capture over the wire; they are received into the host's memory and a GPU's, joined by s:copy
// and written.
const verbsGPUScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ file = "", dir = ".", buf = 9000, seconds = 5 }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, engine = "ibverbs",
  memory_regions = { { name = "head", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 64 },
                     { name = "body", kind = "device", affinity = 0, num_bufs = 1024, buf_size = args.buf },
                     { name = "whole", kind = "host_pinned", affinity = 0, num_bufs = 1024, buf_size = 9100 },
                     { name = "read", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 9100 },
                     { name = "out", kind = "host", affinity = 0, num_bufs = 256, buf_size = 9100 } },
  interfaces = {
    { name = "file", address = "pcap:" .. args.file, rx = { queues = { { name = "read", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "read" } } } } },
    { name = "a", address = "fake0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "out" } } } } },
    { name = "b", address = "fake1", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 200, memory_regions = { "head", "body" } } } } } } } } }
local joined = s:copy{ name = "joined", memory_region = "whole", policy = "wait" }
s:pipe(s:rx_queue "b", joined, s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait" })
s:pipe(s:rx_queue "file", s:tx_queue "a")
local got = 0
joined:on_burst(function(b) got = got + b.n end)
s:run{ seconds = args.seconds }
print("got", got)
`

// TestVerbsGPU has a device put payloads into the memory of a GPU, which it has by DMA-BUF: nothing of it passes the CPU, and what the
// GPU hands back is what scapy sent. What is longer than the buffers is dropped. Where the GPU, or the device, has no DMA-BUF the
// payloads lie in pinned memory, and the report gives the reason.
func TestVerbsGPU(t *testing.T) {
	t.Parallel()
	harness.Need(t, "scapy", "tshark", "rdma")
	dir := t.TempDir()
	script, sent := filepath.Join(dir, "verbs.lua"), filepath.Join(dir, "sent.pcap")
	if err := os.WriteFile(script, []byte(verbsGPUScript), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	fields := []string{"frame.len", "udp.srcport", "udp.payload", "udp.checksum.status"}
	all := harness.TsharkLines(t, sent, fields...)
	fit := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return strings.HasPrefix(line, "8942") })
	const pinned, taken = "its buffers lie in pinned host memory", "memory region body: device fake1 of interface b puts packets into the GPU's memory itself (DMA-BUF)"
	for _, tt := range []struct {
		name, gpu, verbs, buf string
		want, wants           []string
	}{
		{"split", "dmabuf=1", "", "9000", all, []string{taken, "queue rx: hds: device", "packets stay where the device put them"}},
		{"too long", "dmabuf=1", "", "2000", fit, []string{taken, "dropped b.wire.0.too_long: 40"}},
		{"no DMA-BUF of the GPU", "", "", "9000", all, []string{"memory region body: device: queue rx: cuMemGetHandleForAddressRange", pinned, "queue rx: hds: device"}},
		{"no DMA-BUF of the device", "dmabuf=1", "nodmabuf", "9000", all,
			[]string{"memory region body: device: queue rx: device fake1 cannot register DMA-BUF memory: Operation not supported", pinned}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := verbsOnGPU(t, tt.gpu, tt.verbs, "--summary", "full", script, "--file", sent, "--dir", dir, "--buf", tt.buf).CombinedOutput()
			output := string(out)
			if err != nil || !strings.Contains(output, "every packet is accounted for") {
				t.Fatalf("%v\n%s", err, output)
			}
			wants(t, output, tt.wants...)
			if got := harness.TsharkLines(t, filepath.Join(dir, "disk.pcap"), fields...); !slices.Equal(got, tt.want) {
				t.Errorf("%d frames came, %d were to; or they differ\n%s", len(got), len(tt.want), output)
			}
		})
	}
}
