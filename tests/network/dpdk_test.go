package network

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// dpdkScript records what the interface receives, and sends `count` frames of 200 bytes.
const dpdkScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "vdev:net_null0", count = 0, dir = ".", seconds = 5, want = 0 }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 9000 } },
  interfaces = { { name = "port", address = args.device,
    rx = { queues = { { name = "rx", id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { "packets" } } },
      flows = { { name = "mine", id = 5, match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } } } },
    tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { "packets" } } } },
  } } } } }
local rx, tx = s:rx_queue("port"), s:tx_queue("port")
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir } })
local got, marked = 0, 0
rx:on_burst(function(b)
  got = got + b.n
  for _, id in ipairs(b:flow_ids()) do if id == 5 then marked = marked + 1 end end
  if args.want > 0 and marked >= args.want then s:stop("all there") end
end, { policy = "wait" })
s:start()
if args.count > 0 then
  tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
    udp_src = 4000, udp_dst = 7148, payload_bytes = 158 }, count = args.count }
end
s:run{ seconds = args.seconds }
print(daqiri.json{ got = got, marked = marked })
`

// dpdkFrames writes a capture: UDP to our port and to another, a VLAN tag, IPv6, ARP, and a jumbo frame.
const dpdkFrames = `
import sys
from scapy.all import *
e = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
ip = IP(src="10.0.0.1", dst="10.0.0.2")
frames = [e/ip/UDP(sport=4000, dport=7148)/Raw(bytes(range(100))),
          e/ip/UDP(sport=4000, dport=7149)/Raw(b"x" * 200),
          e/Dot1Q(vlan=7)/ip/UDP(sport=4000, dport=7148)/Raw(b"y" * 64),
          e/IPv6(src="fd00::1", dst="fd00::2")/UDP(sport=4000, dport=7148)/Raw(b"z" * 64),
          e/ARP(psrc="10.0.0.1", pdst="10.0.0.2")/Padding(b"\0" * 18),
          e/ip/UDP(sport=4000, dport=7148)/Raw(bytes(k % 251 for k in range(8900)))] * 20
for k, f in enumerate(frames):
    f.time = 1700000000 + k / 1000.0
wrpcap(sys.argv[1], frames)
`

// dpdkRun runs the script with these arguments and reads what it prints.
func dpdkRun(t *testing.T, program string, args ...string) (got struct{ Got, Marked int }) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "dpdk.lua")
	if err := os.WriteFile(script, []byte(dpdkScript), 0o644); err != nil {
		t.Fatal(err)
	}
	out := runDPDK(t, program, append([]string{script}, args...)...)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return got
}

func runDPDK(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, _ := runDPDKLogged(t, program, args...)
	return out
}

func runDPDKLogged(t *testing.T, program string, args ...string) (stdout, log string) {
	t.Helper()
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "every packet is accounted for") {
		t.Errorf("the ledger does not add up:\n%s", stderr.String())
	}
	return string(out), stderr.String()
}

// TestDPDKToEverybody transmits frames with several destinations: those that go to all hosts by default make a warning.
func TestDPDKToEverybody(t *testing.T) {
	harness.Need(t, "dpdk")
	t.Parallel()
	program := harness.Built(t)
	for what, warns := range map[string]bool{
		``:                               true,
		`ipv4_dst = "10.0.0.2"`:          true,
		`eth_dst = "ff:ff:ff:ff:ff:ff"`:  false,
		`eth_dst = "02:00:00:00:00:02"`:  false,
		`ipv4_dst = "239.1.2.3"`:         false,
		`ipv4_dst = "255.255.255.255"`:   false,
		`vary = { eth_dst = 1 }`:         false,
		`bytes = ("\255"):rep(60)`:       false,
		`ethertype = 2048, payload = ""`: true,
	} {
		fields := what
		if !strings.Contains(what, "payload") && !strings.Contains(what, "bytes") {
			fields = strings.Trim(what+", udp_dst = 7148, payload_bytes = 20", ", ")
		}
		script := filepath.Join(t.TempDir(), "everybody.lua")
		text := strings.Replace(dpdkScript, `eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
    udp_src = 4000, udp_dst = 7148, payload_bytes = 158`, fields, 1)
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, log := runDPDKLogged(t, program, script, "--count", "8", "--seconds", "0.01", "--dir", t.TempDir())
		if got := strings.Count(log, "go to all hosts"); got > 1 || (got == 1) != warns {
			t.Errorf("%s: %d warnings, want one: %v\n%s", what, got, warns, log)
		}
	}
}

// TestDPDKReplay has DPDK play a capture that scapy made; the file that we write holds the same frames at the same times.
func TestDPDKReplay(t *testing.T) {
	harness.Need(t, "dpdk", "scapy", "tshark")
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", dpdkFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	got := dpdkRun(t, harness.Built(t), "--device", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap="+filepath.Join(dir, "none.pcap"),
		"--dir", dir, "--want", "80", "--seconds", "30")
	if got.Got != 120 || got.Marked != 80 {
		t.Errorf("%d frames, %d of flow 5; want 120 and 80", got.Got, got.Marked)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.pcap"))
	files = slices.DeleteFunc(files, func(f string) bool { return f == sent || strings.HasSuffix(f, "none.pcap") })
	if len(files) != 1 {
		t.Fatalf("captures: %v", files)
	}
	fields := []string{"frame.len", "frame.time_epoch", "eth.src", "vlan.id", "ip.dst", "ipv6.dst", "udp.dstport", "udp.checksum.status", "data.data"}
	want, have := harness.TsharkLines(t, sent, fields...), harness.TsharkLines(t, files[0], fields...)
	for k := range want {
		if k >= len(have) || strings.ReplaceAll(want[k], "000000\t", "\t") != strings.ReplaceAll(have[k], "000000\t", "\t") {
			t.Fatalf("frame %d of %d:\nsent %s\ngot  %s", k, len(have), want[k], at(have, k))
		}
	}
}

func at(lines []string, k int) string {
	if k < len(lines) {
		return lines[k]
	}
	return "nothing"
}

// TestDPDKTransmit sends into a capture of DPDK's: tshark finds the frames, their lengths and checksums right.
func TestDPDKTransmit(t *testing.T) {
	harness.Need(t, "dpdk", "tshark")
	dir := t.TempDir()
	file := filepath.Join(dir, "out.pcap")
	dpdkRun(t, harness.Built(t), "--device", "vdev:net_pcap0,tx_pcap="+file, "--dir", dir, "--count", "500", "--seconds", "1")
	lines := harness.TsharkLines(t, file, "frame.len", "eth.dst", "ip.len", "ip.checksum.status", "udp.dstport", "udp.length", "udp.checksum.status")
	if len(lines) != 500 {
		t.Errorf("%d frames in the file, 500 were sent", len(lines))
	}
	for k, line := range lines {
		if want := "200\t02:00:00:00:00:02\t186\t1\t7148\t166\t1"; line != want {
			t.Fatalf("frame %d: %s, want %s", k, line, want)
		}
	}
}

// TestDPDKVeth receives over veth what tcpreplay sends, with the interface down and up again in the middle of the run.
func TestDPDKVeth(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "ip", "ethtool", "scapy", "tcpreplay")
	c := newCable(t)
	c.silence()
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	// The interface goes down on purpose, which the driver may notice.
	text := strings.Replace(dpdkScript, "s:start()", `s:threshold("errors >= 0")`+"\ns:start()", 1)
	short := strings.ReplaceAll(dpdkFrames, "range(8900)", "range(1400)")
	if out, err := exec.Command("/usr/bin/python3", "-c", short, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	script := filepath.Join(dir, "dpdk.lua")
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lib, _ := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	cmd := c.Command(c.Recv, harness.Built(t), script, "--device", "vdev:net_af_packet0,iface=veth0", "--dir", dir, "--seconds", "60", "--want", "1600")
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib)
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	replay := func() { c.In(c.Send, "tcpreplay", "-q", "-i", "veth0", "--loop", "10", "--pps", "20000", sent) }
	harness.Until(t, "file", func() bool { files, _ := filepath.Glob(filepath.Join(dir, "*.pcap")); return len(files) > 1 })
	replay()
	c.In(c.Recv, "ip", "link", "set", "veth0", "down")
	c.In(c.Recv, "ip", "link", "set", "veth0", "up")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; { // until enough has come: a busy machine drops some, and counts them
		replay()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			running = false
		default:
		}
	}
	var got struct{ Got, Marked int }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Marked < 1600 || got.Got <= got.Marked {
		t.Errorf("%d frames, %d of flow 5, want at least 1600 of flow 5, and others\n%s", got.Got, got.Marked, stderr.String())
	}
}

// TestDPDKMissing runs without the library: the error reports what to install.
func TestDPDKMissing(t *testing.T) {
	script := filepath.Join(t.TempDir(), "dpdk.lua")
	if err := os.WriteFile(script, []byte(dpdkScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), script)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK=/nowhere/libdaqiri_dpdk.so")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Errorf("%v, want exit code 4", err)
	}
	for _, want := range []string{"interface port", "/nowhere/libdaqiri_dpdk.so, which is not there", "apt-get install libdpdk-dev"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
