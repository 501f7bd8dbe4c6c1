package tests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// endsScript puts the packets of four antennas together, three ways, and prints what each says of them. Of a live run it ends
// once all packets came, and has been silent for some time.
const endsScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "udp.yaml", live = false, packets = 1, silence = 0 }
local s = daqiri.open(args.config)
local rx = s:rx_queue("rx_port")
local ant = daqiri.format{ name = "ant", udp_port = 7200, { "antenna", "u32" }, { "n", "u32" } }
local function blocks(name, o)
  o.name, o.memory_region, o.format, o.timeout_us, o.window = name, "blocks", ant, 2000000, 4
  local b = s:reorder(o)
  s:pipe(rx, b)
  b:on_burst(function() end)
end
local place = { batch = "n // 8", slot = "antenna * 8 + n % 8", slots = 32 }
blocks("sources", { batch = place.batch, slot = place.slot, slots = 32, source = "antenna" })
blocks("slots", place)
blocks("numbers", { sequence_number = "n", packets_per_batch = 8 })
local came = 0
rx:on_burst(function(b)
  came = came + b.n
  if args.live and came == args.packets then s:after(args.silence, function() s:stop() end) end
end)
if args.live then
  assert(s:interface("rx_port"):connection():setsockopt("SOL_SOCKET", "SO_RCVBUF", 1000000))
  s:after(0, function() print("ready") end)
end
local l = s:run{ seconds = 50 }
for _, name in ipairs{ "sources", "slots", "numbers" } do
  local b = l[name]
  print(name, b.expected, b.missing, b.cut, b.dropped_by.duplicate)
  for antenna = 0, name == "sources" and 3 or -1 do
    print(antenna, b.source[antenna].packets, b.source[antenna].missing)
  end
end
`

const endsConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: socket
    master_core: 0
    %s
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    - {name: blocks, kind: host, affinity: 0, num_bufs: 64, buf_size: 2048}
    interfaces:
    - name: rx_port
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://%s"}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 16, timeout_us: 1000, memory_regions: [m]}]}
`

// An endsPacket is spectrum n of an antenna.
type endsPacket struct{ antenna, n uint32 }

func (p endsPacket) payload() []byte {
	out := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, p.antenna), p.n)
	return append(out, "data"...)
}

// endsPackets are 46 spectra of each of four antennas, from within a batch to within another, displaced by up to four
// places, a tenth of them lost and some repeated. Antenna 1 comes late, and antenna 2 leaves early.
func endsPackets() []endsPacket {
	r := rand.New(rand.NewPCG(3, 1))
	type placed struct {
		endsPacket
		at float64
	}
	var all []placed
	for n := uint32(3); n < 49; n++ {
		for antenna := range uint32(4) {
			if r.IntN(10) == 0 || antenna == 1 && n < 7 || antenna == 2 && n > 41 {
				continue
			}
			for range 1 + r.IntN(20)/19 {
				all = append(all, placed{endsPacket{antenna, n}, float64(4*n+antenna) + 4*r.Float64()})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return int(1e6 * (a.at - b.at)) })
	var out []endsPacket
	for _, p := range all {
		out = append(out, p.endsPacket)
	}
	return out
}

// endsModel says what endsScript should print of stage "sources": of each antenna what lies between its first and its last
// spectrum and did not come is missing. All else that the batches lack is cut.
func endsModel(packets []endsPacket) string {
	came := map[endsPacket]bool{}
	var n, missing, duplicates int
	var first, last [4]uint32
	var per [4]int
	for _, p := range packets {
		if came[p] {
			duplicates++
			continue
		}
		came[p] = true
		if per[p.antenna] == 0 {
			first[p.antenna] = p.n
		}
		per[p.antenna]++
		first[p.antenna], last[p.antenna] = min(first[p.antenna], p.n), max(last[p.antenna], p.n)
	}
	lines := ""
	for antenna := range 4 {
		lacks := int(last[antenna]-first[antenna]) + 1 - per[antenna]
		lines += fmt.Sprintf("%d\t%d\t%d\n", antenna, per[antenna], lacks)
		n, missing = n+per[antenna], missing+lacks
	}
	batches := int(slices.Max(last[:])/8 - slices.Min(first[:])/8 + 1)
	return fmt.Sprintf("sources\t%d\t%d\t%d\t%d\n", n+missing, missing, 32*batches-n-missing, duplicates) + lines
}

// TestReorderEnds gives a script the same packets from a socket, with and without silence behind them in which time-outs
// close its last batches, and from a capture in real and in virtual time. It counts the same packets as missing each time, and
// those that a model counts.
func TestReorderEnds(t *testing.T) {
	program, dir := built(t), t.TempDir()
	packets := endsPackets()
	udp := freeAddress(t)
	var frames []captured
	for i, p := range packets {
		f := datagram(uint16(i), len(p.payload()), true)
		copy(f[42:], p.payload())
		binary.BigEndian.PutUint16(f[36:], 7200)
		frames = append(frames, captured{ns: int64(i+1) * 1000, data: f})
	}
	for name, text := range map[string]string{
		"udp.yaml":     fmt.Sprintf(endsConfig, "", udp),
		"virtual.yaml": fmt.Sprintf(endsConfig, "loopback: {mode: sw, clock: virtual}", "10.0.0.2:7200"),
		"real.yaml":    fmt.Sprintf(endsConfig, "", "10.0.0.2:7200"),
		"in.pcap":      string(pcapOf(1, frames...)),
		"ends.lua":     endsScript,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	live := func(silence string) string {
		cmd, out, stderr := startReady(t, dir, program, "ends.lua", "--live", "--packets", fmt.Sprint(len(packets)), "--silence", silence)
		to, err := net.Dial("udp", udp)
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		for _, p := range packets {
			if _, err := to.Write(p.payload()); err != nil {
				t.Fatal(err)
			}
		}
		text, _ := io.ReadAll(out)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		return string(text)
	}
	replay := func(config string) string {
		cmd := exec.Command(program, "--source", "in.pcap", "ends.lua", "--config", config)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", config, err, stderr.String())
		}
		return string(text)
	}
	want := endsModel(packets)
	first := live("0")
	if len(first) <= len(want) || first[:len(want)] != want {
		t.Errorf("the stage with sources: %s, want\n%s", first, want)
	}
	for how, got := range map[string]string{"after silence": live("3"), "from a capture": replay("real.yaml"), "in virtual time": replay("virtual.yaml")} {
		if got != first {
			t.Errorf("%s: %s, want\n%s", how, got, first)
		}
	}
}
