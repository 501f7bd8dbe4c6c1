package reorder

import (
	"encoding/binary"
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

// streamScript reorders a stream of a format as the refusal of packets_per_batch suggests, or by that, with a stage for each
// sender where the rule names no source. It prints what is counted, and what was out of order.
const streamScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ format = "" }
local s = daqiri.open("streams.yaml")
local function with(more)
  local o = { memory_region = "blocks", format = args.format, slot_bytes = 64, window = 2, timeout_us = 1000000 }
  for k, v in pairs(more) do o[k] = v end
  return o
end
local rule = { packets_per_batch = 10 }
if daqiri.format(args.format).sequence ~= "seq" or args.format ~= "simple" then
  local ok, why = pcall(s.reorder, s, with(rule))
  local call = not ok and why:match("begins again for each .* give, with your numbers, (.*)")
  if not call then print("no rule: " .. tostring(why)) return end
  rule = {}
  for k, v in call:gmatch('([%w_]+) = "([^"]*)"') do rule[k] = v end
  for k, v in call:gmatch('([%w_]+) = (%d+)') do rule[k] = tonumber(v) end
end
local stages, last, wrong, kept = {}, {}, 0, 0
for sender = 0, rule.source and 0 or 1 do
  local b = s:reorder(with(rule))
  stages[#stages + 1] = b
  if rule.source then
    s:pipe(s:rx_queue("rx_port"), b)
  else
    s:pipe(s:rx_queue("rx_port"), s:filter{ where = "ipv4_src % 2 == " .. sender }, b)
  end
  b:on_burst(function(a)
    kept = kept + a.source_packets
    for slot = 0, #a.present.text - 1 do
      if a.present[slot + 1] then
        local src, n = a.data:bytes(slot * 64, 64):match("<(%d):(%d+)>")
        if not n or tonumber(n) <= (last[src] or -1) then wrong = wrong + 1 else last[src] = tonumber(n) end
      end
    end
  end)
end
local l = s:run{ seconds = 100 }
local sum = { 0, 0, 0 }
for _, b in ipairs(stages) do
  local x = l[b.name]
  for i, n in ipairs{ x.missing, x.dropped_by.duplicate or 0, x.dropped_by.bad_place or 0 } do sum[i] = sum[i] + n end
end
print(("kept %d missing %d duplicate %d bad_place %d wrong %d"):format(kept, sum[1], sum[2], sum[3], wrong))
`

const streamConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: {mode: sw, clock: virtual, seed: 1}
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 4096, buf_size: 2048}
    - {name: blocks, kind: host, affinity: 0, num_bufs: 32, buf_size: 32768}
    interfaces:
    - name: rx_port
      address: loop1
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}]}
`

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// pack joins numbers, big endian by their Go type, and bytes.
func pack(order binary.AppendByteOrder, parts ...any) (out []byte) {
	for _, p := range parts {
		switch v := p.(type) {
		case uint8:
			out = append(out, v)
		case uint16:
			out = order.AppendUint16(out, v)
		case uint32:
			out = order.AppendUint32(out, v)
		case uint64:
			out = order.AppendUint64(out, v)
		}
	}
	return out
}

// gvspHeader is a header of either form.
func gvspHeader(long bool, status uint16, block uint64, kind uint8, packet uint32) []byte {
	if long {
		return pack(be, status, uint16(0), uint32(0x80|uint32(kind))<<24, block, packet)
	}
	return pack(be, status, uint16(block), uint32(kind)<<24|packet)
}

func gvspSiblings(long bool) [][]byte {
	var all [][]byte
	for _, kind := range []uint8{1, 2, 4} { // leader, trailer, all in one
		all = append(all, gvspHeader(long, 0, 2, kind, 7))
	}
	return append(all, gvspHeader(long, 0x800c, 2, 3, 7)) // the packet is not available any more
}

// vrtHeader has a stream id, and 6 words of 16 bytes of payload.
func vrtHeader(kind, count, stream int, more ...any) []byte {
	return append(pack(be, uint32(kind)<<28|uint32(count%16)<<16|uint32(6+len(more)), uint32(stream)), pack(be, more...)...)
}

// rtpHeader is a header whose sequence number wraps after 40 packets.
func rtpHeader(first, n, src int, more ...any) []byte {
	return append(pack(be, uint8(first), uint8(97), uint16(65536-40+n), uint32(48*n), uint32(src)), pack(be, more...)...)
}

// A stream is what two senders of a format send, and what else comes to the same port. The headers are written here by hand
// from the formats' documents.
type stream struct {
	format   string
	n        int                     // packets of each sender
	header   func(n, src int) []byte // of packet n, from 0
	siblings [][]byte                // headers of packets that are not data
}

var streams = []stream{
	{"ata-snap", 40, func(n, src int) []byte {
		return pack(be, uint8(0x81), uint8(2), uint16(96), uint16(192), uint16(src), uint64(16*n))
	}, [][]byte{pack(be, uint8(1), uint8(2), uint16(96), uint16(192), uint16(0), uint64(16))}},
	{"chips", 40, func(n, src int) []byte {
		return pack(be, uint8(src+1), uint8(0), uint8(109), uint8(1), uint8(0), uint8(2), uint16(600), uint64(n+1))
	}, nil},
	{"ecpri", 120, func(n, src int) []byte { return pack(be, uint32(0x10000014), uint16(src), uint16(65536-40+n)) },
		[][]byte{pack(be, uint32(0x10020014), uint16(0), uint16(7)), pack(be, uint32(0x10030014), uint32(0), uint32(7)), pack(be, uint32(0x10050014), uint32(0))}},
	{"gvsp", 300, func(n, _ int) []byte { return gvspHeader(false, 0, uint64(65534+n/100-1)%65535+1, 3, uint32(n%100+1)) }, gvspSiblings(false)},
	{"gvsp-64", 300, func(n, _ int) []byte { return gvspHeader(true, 0x0, uint64(n/100+1), 3, uint32(n%100+1)) }, gvspSiblings(true)},
	{"icmp", 120, func(n, src int) []byte {
		return pack(be, uint16(0x0800), uint16(0), uint16(src), uint16(65536-40+n))
	}, [][]byte{pack(be, uint16(0), uint16(0), uint16(0), uint16(7)), pack(be, uint16(0x0301), uint16(0), uint16(0), uint16(7))}},
	{"psi", 384, func(n, src int) []byte {
		return pack(le, uint64(n/128+1), uint32(1000), uint32(n%128), uint64(0), uint64(0), uint16(src), uint16(src), uint16(0), uint16(0), uint32(0), uint16(0), uint8(3), uint8(2))
	}, nil},
	{"rtp", 120, func(n, src int) []byte { return rtpHeader(0x80, n, src) }, [][]byte{rtpHeader(0xa0, 7, 0)}},
	{"simple", 40, func(n, _ int) []byte { return pack(be, uint64(n)) }, nil},
	{"snap2", 40, func(n, src int) []byte {
		return pack(be, uint64(n), uint32(1700000000), uint16(64), uint16(128), uint16(96), uint16(96), uint32(0), uint32(0), uint32(64*src))
	}, nil},
	{"st2110-20", 120, func(n, src int) []byte {
		return append(rtpHeader(0x80, n, src), pack(be, uint16(6+(65536-40+n)/65536), uint16(16), uint16(5), uint16(0))...)
	}, [][]byte{append(rtpHeader(0xa0, 7, 0), pack(be, uint16(6), uint16(16), uint16(5), uint16(0))...)}},
	{"st2110-30", 120, func(n, src int) []byte { return rtpHeader(0x81, n, src, uint32(9)) }, [][]byte{rtpHeader(0xa0, 7, 0)}},
	{"vdif", 300, func(n, src int) []byte {
		return pack(le, uint32(1000+n/100), uint32(54<<24|n%100), uint32(6), uint32(src<<16|0x4142), uint64(0), uint64(0))
	}, [][]byte{pack(le, uint32(1<<31|1001), uint32(54<<24|7), uint32(6), uint32(0x4142), uint64(0), uint64(0))}},
	{"vrt", 64, func(n, src int) []byte { return vrtHeader(1, n, src) },
		[][]byte{vrtHeader(3, 7, 0), vrtHeader(4, 7, 0, uint32(0)), vrtHeader(5, 7, 0, uint32(0)), vrtHeader(6, 7, 0, uint32(0), uint32(0)), vrtHeader(7, 7, 0)}},
	{"vrt-context", 64, func(n, src int) []byte { return vrtHeader(4, n, src, uint32(0)) },
		[][]byte{vrtHeader(1, 7, 0), vrtHeader(5, 7, 0, uint32(0)), vrtHeader(6, 7, 0, uint32(0))}},
}

// numberless are the library's formats that number no stream: of SPEAD, heaps are put together; TCP counts bytes.
var numberless = []string{"arp", "ethernet", "ipv4", "ipv6", "spead-64-40", "spead-64-48", "tcp", "udp", "vlan"}

// frame puts a packet of 16 bytes of payload into IPv4 from a sender, and UDP where it is not ICMP.
func (s stream) frame(i, src int, header []byte, text string) harness.Captured {
	body := append(slices.Clone(header), fmt.Sprintf("%-16s", text)...)
	proto := uint8(1)
	if s.format != "icmp" {
		body, proto = append(pack(be, uint16(8000), uint16(8001), uint16(8+len(body)), uint16(0)), body...), 17
	}
	out := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}, pack(be, uint32(0x45000000|uint32(20+len(body))), uint32(0), uint8(64), proto, uint16(0))...)
	out = append(append(out, 10, 0, 0, byte(2+src), 10, 0, 0, 9), body...)
	return harness.Captured{Ns: int64(i+1) * 1000, Data: out}
}

// frames are those of both senders by turns, but for one of the first that is lost, with one of the second that comes twice,
// and the siblings in their midst.
func (s stream) frames() (all []harness.Captured) {
	add := func(src int, header []byte, text string) { all = append(all, s.frame(len(all), src, header, text)) }
	for n := range s.n {
		for src := range 2 {
			for range 1 + map[bool]int{src == 0 && n == s.n/2+1: -1, src == 1 && n == s.n/2+2: 1}[true] {
				add(src, s.header(n, src), fmt.Sprintf("<%d:%d>", src, n))
			}
		}
		for _, sibling := range s.siblings {
			if n == s.n/2 {
				add(0, sibling, "sibling")
			}
		}
	}
	return all
}

// TestFormatStreams reorders a stream of each format of the library, of at least three periods of its sequence and two
// senders, with the call that s:reorder itself recommends. All packets are kept, in order, what is lost or comes twice is
// counted, and what is not data is refused.
func TestFormatStreams(t *testing.T) {
	program, dir := harness.Built(t), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("streams.yaml", streamConfig)
	write("streams.lua", streamScript)
	run := func(t *testing.T, format, file string) string {
		cmd := exec.Command(program, "--summary", "none", "--source", file+",speed=max", "streams.lua", "--format", format)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v", err)
		}
		return strings.TrimSpace(string(out))
	}
	tested := slices.Clone(numberless)
	for _, s := range streams {
		tested = append(tested, s.format)
		write(s.format+".pcap", string(harness.PcapOf(1, s.frames()...)))
		t.Run(s.format, func(t *testing.T) {
			want := fmt.Sprintf("kept %d missing 1 duplicate 1 bad_place %d wrong 0", 2*s.n-1, len(s.siblings))
			if got := run(t, s.format, s.format+".pcap"); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
	for _, format := range numberless {
		if got := run(t, format, "simple.pcap"); !strings.HasPrefix(got, "no rule: ") || !strings.Contains(got, "batch") && !strings.Contains(got, "layer") {
			t.Errorf("%s: %s", format, got)
		}
	}
	files, err := filepath.Glob(filepath.Join(tree.Root, "stdlib/formats/*.lua"))
	if err != nil || len(files) != len(tested) {
		t.Errorf("%d formats, of which %d are tested (%v)", len(files), len(tested), err)
	}
}
