package reorder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// endsScript puts the packets of four antennas together, three ways, and prints what each reports of them. Of a live run it ends
// once all packets came, and has been silent for some time.
const endsScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "udp.yaml", live = false, packets = 1, silence = 0 }
local s = daqiri.open(args.config)
local rx = s:rx_queue("rx_port")
local ant = daqiri.format{ name = "ant", udp_port = 7200, { "antenna", "u32" }, { "n", "u32" }, { "count", "u32" } }
local function blocks(name, o)
  o.name, o.memory_region, o.format, o.timeout_us, o.window = name, "blocks", ant, 5000000, 4
  local b = s:reorder(o)
  s:pipe(rx, b)
  b:on_burst(function() end)
end
local place = { batch = "n // 4", slot = "antenna * 4 + n % 4", slots = 16 }
blocks("sources", { batch = place.batch, slot = place.slot, slots = 16, source = "antenna" })
blocks("slots", place)
blocks("numbers", { sequence_number = "count", packets_per_batch = 8 })
local came = 0
rx:on_burst(function(b)
  came = came + b.n
  if args.live and came == args.packets then s:after(args.silence, function() s:stop() end) end
end)
if args.live then
  s:after(0, function() print("ready") end)
end
local l = s:run{ seconds = 150 }
for _, name in ipairs{ "numbers", "slots", "sources" } do
  local b, by = l[name], l[name].dropped_by
  print(("batches %d partial %d skipped %d missing %d cut %d late %d duplicate %d outliers %d resyncs %d"):format(b.batches, b.partial, b.skipped, b.missing,
    b.cut, by.late, by.duplicate, by.outlier, b.resyncs))
end
for antenna = 0, 3 do
  local a = l.sources.source[antenna]
  print(antenna, a.packets, a.missing)
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
    - {name: blocks, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    interfaces:
    - name: rx_port
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://%s"}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 16, timeout_us: 1000, memory_regions: [m]}]}
`

// An endsPacket is spectrum n of an antenna.
type endsPacket struct{ antenna, n uint32 }

func (p endsPacket) count() uint32 { return 4*p.n + p.antenna }

func (p endsPacket) payload() []byte {
	var out []byte
	for _, word := range []uint32{p.antenna, p.n, p.count()} {
		out = binary.BigEndian.AppendUint32(out, word)
	}
	return append(out, "data"...)
}

// A lossyStream describes what happens to the spectra of four antennas: parts of them that are lost and that come twice, how many places later one may
// come, and for how many spectra antenna 1 is not there yet and antenna 2 no more.
type lossyStream struct {
	seed, first, spectra uint64
	lost, twice, spread  float64
	late, early          uint64
}

// lossyStreams are one that displaces nothing out of the window, and n random ones.
func lossyStreams(n uint64) []lossyStream {
	out := []lossyStream{{seed: 3, first: 3, spectra: 46, lost: 0.1, twice: 0.05, spread: 4, late: 4, early: 7}}
	for seed := uint64(2); seed < 2+n; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		out = append(out, lossyStream{seed: seed, first: r.Uint64N(1 << 20), spectra: 20 + r.Uint64N(120), lost: []float64{0, 0.02, 0.3}[r.IntN(3)],
			twice: []float64{0, 0.05}[r.IntN(2)], spread: []float64{0, 12, 100, 300}[r.IntN(4)], late: r.Uint64N(15), early: r.Uint64N(15)})
	}
	return out
}

func (e lossyStream) packets() (out []endsPacket) {
	type placed struct {
		endsPacket
		at float64
	}
	r := rand.New(rand.NewPCG(e.seed, 1))
	var all []placed
	for n := e.first; n < e.first+e.spectra; n++ {
		for antenna := range uint64(4) {
			if r.Float64() < e.lost || antenna == 1 && n < e.first+e.late || antenna == 2 && n >= e.first+e.spectra-e.early {
				continue
			}
			p := endsPacket{uint32(antenna), uint32(n)}
			for again := true; again; again = r.Float64() < e.twice {
				all = append(all, placed{p, float64(p.count()) + e.spread*r.Float64()})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	for _, p := range all {
		out = append(out, p.endsPacket)
	}
	return out
}

// endsAnswers is what the model of tests/cases reports of the packets in the three stages of endsScript.
func endsAnswers(t *testing.T, dir string, packets []endsPacket) string {
	t.Helper()
	cases, answers := filepath.Join(dir, "cases"), filepath.Join(dir, "answers")
	text := "0 32 8 4 0 5000000"
	for _, p := range packets {
		text += fmt.Sprintf(" 0:%d", p.count())
	}
	placed := ""
	for _, p := range packets {
		placed += fmt.Sprintf(" 0:%d", p.n/4<<16|p.antenna*4+p.n%4)
	}
	for _, rule := range []string{"1", "2"} {
		text += "\n" + rule + " 0 16 4 1073741824 5000000" + placed
	}
	if err := os.WriteFile(cases, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := exec.Command("/usr/bin/python3", filepath.Join(tree.Root, "tests/cases/reorder_cases.py"), cases, answers)
	if out, err := model.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	output, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	return endsBatches.ReplaceAllString(string(output), "")
}

// endsBatches are the model's batches and their slots.
var endsBatches = regexp.MustCompile(`( \d+:[01]+)+`)

// sources is what comes of each antenna and what lacks between its first and its last packet, where no packet comes late.
func sources(packets []endsPacket) (lines string) {
	came := map[uint32][]uint32{}
	for _, p := range packets {
		came[p.antenna] = append(came[p.antenna], p.n)
	}
	for antenna := range uint32(4) {
		n := slices.Compact(slices.Sorted(slices.Values(came[antenna])))
		lines += fmt.Sprintf("%d\t%d\t%d\n", antenna, len(n), int(n[len(n)-1]-n[0])+1-len(n))
	}
	return lines
}

// TestReorderEnds gives a script the packets of random streams from a socket, with and without silence behind them in which time-outs
// close its last batches, and from a capture in real and in virtual time. It reports the same of them each time, which is
// what a model reports. DAQIRI_TEST_STREAMS is how many there are.
func TestReorderEnds(t *testing.T) {
	n := uint64(3)
	if text := os.Getenv("DAQIRI_TEST_STREAMS"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	program := harness.Built(t)
	for k, stream := range lossyStreams(n) {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			e := endsRun{t: t, dir: t.TempDir(), program: program, udp: harness.FreeAddress(t), packets: stream.packets()}
			e.write()
			want := endsAnswers(t, e.dir, e.packets)
			first := e.live("0")
			if got, _, _ := strings.Cut(first, "0\t"); got != want {
				t.Fatalf("%+v:\n%s, want\n%s", stream, got, want)
			}
			if k == 0 && first != want+sources(e.packets) {
				t.Errorf("%s, want\n%s", first, want+sources(e.packets))
			}
			for how, got := range map[string]string{"after silence": e.live("6"), "from a capture": e.replay("real.yaml"), "in virtual time": e.replay("virtual.yaml")} {
				if got != first {
					t.Errorf("%+v, %s:\n%s, want\n%s", stream, how, got, first)
				}
			}
		})
	}
}

// An endsRun runs endsScript over packets.
type endsRun struct {
	t                 *testing.T
	dir, program, udp string
	packets           []endsPacket
}

// write puts what the runs read into the folder.
func (e *endsRun) write() {
	var frames []harness.Captured
	for i, p := range e.packets {
		f := harness.Datagram(uint16(i), len(p.payload()), true)
		copy(f[42:], p.payload())
		binary.BigEndian.PutUint16(f[36:], 7200)
		frames = append(frames, harness.Captured{Ns: int64(i+1) * 1000, Data: f})
	}
	for name, text := range map[string]string{
		"udp.yaml":     fmt.Sprintf(endsConfig, "", e.udp),
		"virtual.yaml": fmt.Sprintf(endsConfig, "loopback: {mode: sw, clock: virtual}", "10.0.0.2:7200"),
		"real.yaml":    fmt.Sprintf(endsConfig, "", "10.0.0.2:7200"),
		"in.pcap":      string(harness.PcapOf(1, frames...)),
		"ends.lua":     endsScript,
	} {
		if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o644); err != nil {
			e.t.Fatal(err)
		}
	}
}

// live sends the packets to a socket of the script, which ends after this many seconds of silence.
func (e *endsRun) live(silence string) string {
	cmd, out, stderr := harness.StartReady(e.t, e.dir, e.program, "ends.lua", "--live", "--packets", fmt.Sprint(len(e.packets)), "--silence", silence)
	to, err := net.Dial("udp", e.udp)
	if err != nil {
		e.t.Fatal(err)
	}
	defer to.Close()
	for k, p := range e.packets {
		if _, err := to.Write(p.payload()); err != nil {
			e.t.Fatal(err)
		}
		if k%100 == 99 {
			harness.Until(e.t, "empty socket", func() bool { return harness.UDPWaits(e.t, to.RemoteAddr().(*net.UDPAddr).Port) == 0 })
		}
	}
	text, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		e.t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(text)
}

func (e *endsRun) replay(config string) string {
	cmd := exec.Command(e.program, "--source", "in.pcap", "ends.lua", "--config", config)
	cmd.Dir = e.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", config, err, stderr.String())
	}
	return string(text)
}
