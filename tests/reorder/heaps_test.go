package reorder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// heapsScript prints each heap: id, bytes, missing, how many items its descriptor has, and where its item 0x1000 begins. Its
// data go into a file.
const heapsScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ format = "", dir = "" }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 },
    { name = "heaps", kind = "host", affinity = 0, num_bufs = 64, buf_size = 262144 } },
  interfaces = { { name = "rx_port", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://0.0.0.0:4015" },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 100, memory_regions = { "packets" } } } } } } } } }
local f = daqiri.format(args.format)
local heaps = s:heaps{ name = "heaps", format = f, memory_region = "heaps", window = 8, policy = "wait" }
s:pipe(s:rx_queue("rx_port"), heaps)
heaps:on_burst(function(h)
  local file = assert(io.open(args.dir .. "/" .. h.batch_id, "wb"))
  file:write(h.data:bytes())
  file:close()
  local name, at = "", ""
  for _, item in ipairs(h.items) do
    if item.id == 5 and item.mode == 0 then name = " " .. f:decode(h.data:bytes(item.value)).n_items end
    if item.id == 0x1000 and item.mode == 0 then at = " @" .. item.value end
  end
  print(("%d %d %d%s%s"):format(h.batch_id, #h.data, h.missing, name, at))
end)
s:run{ seconds = 5 }
`

// speadHeap is the packets of one heap as the protocol defines it, by hand: items of idBytes and 8 - idBytes, payload of unequal
// lengths. The first packet has more items; of the first heap it has a descriptor in the payload.
func speadHeap(id, addressBytes, size int, data []byte, r *rand.Rand) (packets [][]byte, pieces [][2]int) {
	item := func(mode, id, value uint64) []byte {
		return binary.BigEndian.AppendUint64(nil, mode<<63|id<<(8*addressBytes)|value)
	}
	for at := 0; at < size; {
		n := min(size-at, 100+r.IntN(1300))
		items := [][]byte{item(1, 1, uint64(id)), item(1, 2, uint64(size)), item(1, 3, uint64(at)), item(1, 4, uint64(n))}
		if at == 0 {
			items = append(items, item(0, 5, 0), item(0, 0x1000, 24), item(1, 0x1600, 77))
		}
		p := []byte{0x53, 4, byte(8 - addressBytes), byte(addressBytes), 0, 0, 0, byte(len(items))}
		for _, k := range r.Perm(len(items)) {
			p = append(p, items[k]...)
		}
		packets = append(packets, append(p, data[at:at+n]...))
		pieces = append(pieces, [2]int{at, n})
		at += n
	}
	return packets, pieces
}

// TestHeaps puts heaps that are made here together, whole and with loss, out of order and interleaved, and compares every byte.
func TestHeaps(t *testing.T) {
	for _, c := range []struct {
		format  string
		address int
		loss    float64
	}{{"spead-64-40", 5, 0}, {"spead-64-40", 5, 0.1}, {"spead-64-48", 6, 0}, {"spead-64-48", 6, 0.02}} {
		t.Run(fmt.Sprintf("%s loss %g", c.format, c.loss), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, uint64(c.address)))
			want, digests := map[string]bool{}, map[int][32]byte{}
			var open [][][]byte
			for id := 1; id <= 40; id++ {
				size := 24 + r.IntN(200000)
				data := make([]byte, size)
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				copy(data, []byte{0x53, 4, byte(8 - c.address), byte(c.address), 0, 0, 0, 2}) // a descriptor of two items
				packets, pieces := speadHeap(id, c.address, size, data, r)
				missing, name := 0, ""
				for i := len(packets) - 1; i >= 0; i-- {
					if i == 0 {
						name = " 2 @24"
					} else if r.Float64() < c.loss {
						missing += pieces[i][1]
						clear(data[pieces[i][0] : pieces[i][0]+pieces[i][1]])
						packets = append(packets[:i], packets[i+1:]...)
					}
				}
				r.Shuffle(len(packets), func(a, b int) { packets[a], packets[b] = packets[b], packets[a] })
				open = append(open, packets)
				want[fmt.Sprintf("%d %d %d%s", id, size, missing, name)] = true
				digests[id] = sha256.Sum256(data)
			}
			var sent []formatPacket
			for first := 0; len(open) > first; { // of four heaps at a time
				k := first + r.IntN(min(4, len(open)-first))
				if len(open[k]) == 0 {
					open[k], first = open[first], first+1
					continue
				}
				sent = append(sent, formatPacket{Hex: hex.EncodeToString(open[k][0])})
				open[k] = open[k][1:]
			}
			checkHeaps(t, c.format, sent, want, digests)
		})
	}
}

// checkHeaps has the program put packets together, and compares the lines it prints and the bytes of each heap.
func checkHeaps(t *testing.T, format string, packets []formatPacket, want map[string]bool, digests map[int][32]byte) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "heaps.lua")
	if err := os.WriteFile(script, []byte(heapsScript), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(harness.Built(t), "--summary", "none", "--source", "rx_port="+framesAround(t, packets, wrap{port: 4015}), script, "--format", format,
		"--dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if !want[line] {
			t.Errorf("heap %q", line)
		}
		delete(want, line)
	}
	if len(want) > 0 {
		t.Errorf("no %v", want)
	}
	for id, digest := range digests {
		if data, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(id))); err != nil || sha256.Sum256(data) != digest {
			t.Errorf("heap %d: %v, other bytes", id, err)
		}
	}
}
