package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// nicLibrary is the path of nic/, compiled once: preloaded, it gives devices what network cards have.
var nicLibrary = sync.OnceValues(func() (string, error) {
	lib := filepath.Join(programDir, "nic.so")
	build := exec.Command("sh", "-ec", `cc -std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API -fPIC -shared \
$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g') nic/*.c -o "$1" -lrte_ethdev -lrte_mbuf -lrte_mempool -lrte_eal -ldl`, "sh", lib)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nic: %w\n%s", err, out)
	}
	return lib, nil
})

// onCard runs a script with devices that have these features of cards: what it says, and its JSON in `got`.
func onCard(t *testing.T, features, script string, got any, args ...string) string {
	t.Helper()
	out, said, err := tryOnCard(t, features, script, args...)
	if err != nil || !strings.Contains(said, "every packet is accounted for") {
		t.Fatalf("%v\n%s", err, said)
	}
	if err := json.Unmarshal(out, got); err != nil {
		t.Fatalf("%v in %q\n%s", err, out, said)
	}
	return said
}

func tryOnCard(t *testing.T, features, script string, args ...string) ([]byte, string, error) {
	t.Helper()
	cmd := cardCommand(t, exec.Command, features, script, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return out, stderr.String(), err
}

// cardCommand is the program with that script, made by this function.
func cardCommand(t *testing.T, command func(string, ...string) *exec.Cmd, features, script string, args ...string) *exec.Cmd {
	t.Helper()
	nic, err := nicLibrary()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := filepath.Abs(filepath.Join(rootDir, "libdaqiri_dpdk.so"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "card.lua")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := command(built(t), append([]string{"--summary", "full", file}, args...)...)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib, "DAQIRI_NIC="+features, "LD_PRELOAD="+nic)
	return cmd
}

// wants checks that a program said each of these.
func wants(t *testing.T, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in\n%s", text, said)
		}
	}
}

// cardFrames writes a capture: 40 times UDP frames around the length at which they are split, and long ones.
const cardFrames = `
import sys
from scapy.all import *
ip = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/IP(src="10.0.0.1", dst="10.0.0.2")
wrpcap(sys.argv[1], [ip/UDP(sport=4000, dport=7148)/Raw(bytes((k + i) % 251 for i in range(n)))
  for k in range(40) for n in (0, 18, 22, 23, 100, 1400, 8900)])
`

// splitScript receives into two regions, writes a capture and sends everything on.
const splitScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ rx = "", tx = "", dir = "." }
local regions = { { name = "head", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 64 },
                  { name = "body", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 9000 } }
local function queues(name, timeout)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout, memory_regions = { "head", "body" } } } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, memory_regions = regions,
  interfaces = { { name = "port", address = args.rx, rx = queues("rx", 200) }, { name = "out", address = args.tx, tx = queues("tx") } } } } }
local rx, got, wrong = s:rx_queue("port"), 0, 0
rx:on_burst(function(b)
  local head, body = b:lengths(1), b:lengths(2)
  for i = 1, b.n do
    if head[i] ~= 64 and head[i] + body[i] > 64 then wrong = wrong + 1 end
  end
  got = got + b.n
  if got == 280 then s:stop("all there") end
end, { policy = "wait" })
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait" })
s:pipe(rx, s:tx_queue("out"))
s:run{ seconds = 30 }
print(daqiri.json{ got = got, wrong = wrong })
`

// TestCardSplit has the device cut frames into the two regions: the file and what is sent on are what scapy made, and
// only frames that end in the first part were copied.
func TestCardSplit(t *testing.T) {
	need(t, "dpdk", "scapy", "tshark")
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	fields := []string{"frame.len", "udp.srcport", "udp.payload", "udp.checksum.status"}
	want := tsharkLines(t, sent, fields...)
	for features, says := range map[string][]string{
		"split": {"packets stay where the device put them", "queue rx: hds: device", "port.rx.0.copied: 120"},
		"":      {"copy: packets are split", "queue rx: hds: software", "port.rx.0.copied: 280"},
	} {
		var got struct{ Got, Wrong int }
		to := filepath.Join(t.TempDir(), "out.pcap")
		said := onCard(t, features, splitScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap=/dev/null",
			"--tx", "vdev:net_pcap1,tx_pcap="+to, "--dir", filepath.Dir(to))
		wants(t, said, says...)
		if got.Got != 280 || got.Wrong != 0 {
			t.Errorf("with %q: %+v, want 280 frames, each cut at 64 bytes", features, got)
		}
		for _, file := range []string{to, filepath.Join(filepath.Dir(to), "disk.pcap")} {
			if !slices.Equal(tsharkLines(t, file, fields...), want) {
				t.Errorf("with %q: %s is not what was sent", features, file)
			}
		}
	}
}
