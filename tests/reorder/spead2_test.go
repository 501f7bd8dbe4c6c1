package reorder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// spead2Packets are datagrams that spead2_send made: with addresses of 40 bits of one that is installed, else those of
// testdata/spead2. --addr-bits of 4.5 changes the last heap alone.
func spead2Packets(t *testing.T, addressBits int) [][]byte {
	t.Helper()
	if _, err := exec.LookPath("spead2_send"); err != nil || addressBits != 40 {
		file, err := os.ReadFile(filepath.Join("testdata/spead2", fmt.Sprintf("spead-64-%d.pcap", addressBits)))
		if err != nil {
			t.Fatal(err)
		}
		var packets [][]byte
		for at := 24; at < len(file); { // a record: 16 bytes, then a frame with 42 bytes of headers
			n := int(binary.LittleEndian.Uint32(file[at+8:]))
			packets = append(packets, file[at+16+42:at+16+n])
			at += 16 + n
		}
		return packets
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadBuffer(64 << 20) // as much as there may be: what is lost is not compared
	cmd := exec.Command("spead2_send", "--heap-size", "65536", "--packet", "1472", "--heaps", "30", "--rate", "0.5", "--verify", conn.LocalAddr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var packets [][]byte
	for buf := make([]byte, 65536); ; {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatalf("after %d packets: %v", len(packets), err)
		}
		packets = append(packets, append([]byte(nil), buf[:n]...))
		if endsStream(packets[len(packets)-1], addressBits) {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return packets
}

// speadItems are a packet's items that are values, and where those are that are not; and its payload.
func speadItems(packet []byte, addressBits int) (values, places map[int]int, payload []byte) {
	values, places = map[int]int{}, map[int]int{}
	n := int(binary.BigEndian.Uint16(packet[6:]))
	for i := range n {
		v := binary.BigEndian.Uint64(packet[8+8*i:])
		id, value := int(v<<1>>1>>addressBits), int(v&(1<<addressBits-1))
		if v>>63 == 1 {
			values[id] = value
		} else {
			places[id] = value
		}
	}
	return values, places, packet[8+8*n:]
}

func endsStream(packet []byte, addressBits int) bool {
	values, _, _ := speadItems(packet, addressBits)
	return values[6] == 2
}

// speadModel is a heap of which some packets came.
type speadModel struct {
	data      []byte
	there     int
	extra, at string // as heapsScript prints them
}

// TestHeapsSpead2 puts heaps of spead2_send together, of both flavours, of which some packets are lost: every byte, and
// what is missing, is as the packets that are left say; and whole heaps have the numbers that its --verify means.
func TestHeapsSpead2(t *testing.T) {
	for _, bits := range []int{40, 48} {
		packets := spead2Packets(t, bits)
		for _, loss := range []float64{0, 0.01, 0.1} {
			t.Run(fmt.Sprintf("%d loss %g", bits, loss), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(5, uint64(bits)))
				heaps := map[int]*speadModel{}
				var sent []formatPacket
				for _, p := range packets {
					if r.Float64() < loss {
						continue
					}
					sent = append(sent, formatPacket{Hex: hex.EncodeToString(p)})
					values, places, payload := speadItems(p, bits)
					h := heaps[values[1]]
					if h == nil {
						h = &speadModel{data: make([]byte, values[2])}
						heaps[values[1]] = h
					}
					copy(h.data[values[3]:], payload[:values[4]])
					h.there += values[4]
					if at, ok := places[0x1000]; ok {
						h.at = fmt.Sprintf(" @%d", at)
					}
					if at, ok := places[5]; ok {
						h.extra = fmt.Sprintf(" %d", binary.BigEndian.Uint16(h.data[at+6:]))
					}
				}
				want, digests, whole := map[string]bool{}, map[int][32]byte{}, 0
				for id, h := range heaps {
					want[fmt.Sprintf("%d %d %d%s%s", id, len(h.data), len(h.data)-h.there, h.extra, h.at)] = true
					digests[id] = sha256.Sum256(h.data)
					if h.there == len(h.data) && h.at != "" {
						whole++
						checkNumbers(t, id, h)
					}
				}
				if len(heaps) < 5 || loss == 0 && whole < len(heaps)-1 {
					t.Fatalf("%d heaps, %d are whole", len(heaps), whole)
				}
				checkHeaps(t, fmt.Sprintf("spead-64-%d", bits), sent, want, digests)
			})
		}
	}
}

// speadSent prints packets of heaps with the numbers that spead2_recv --verify means, and one that ends the stream.
const speadSent = `
local daqiri = require "daqiri"
local f, x = daqiri.format "spead-64-40", 1
local function put(values) print(daqiri.hex(f:encode(values))) end
for heap = 1, 5 do
  local numbers = {}
  for i = 1, 5000 do
    x = x * 48271 % (2 ^ 31 - 1)
    numbers[i] = string.char(math.floor(x / 2 ^ 24), math.floor(x / 2 ^ 16) % 256, math.floor(x / 256) % 256, x % 256)
  end
  local data = table.concat(numbers)
  for at = 0, #data - 1, 1400 do
    local piece = data:sub(at + 1, at + 1400)
    put{ heap_cnt = heap, heap_len = #data, payload_offset = at, heap_payload_len = #piece, items = { { id = 0x1000 } }, payload = piece }
  end
end
put{ heap_cnt = 6, heap_len = 0, payload_offset = 0, heap_payload_len = 0, items = { { mode = 1, id = 6, value = 2 } } }
`

// TestHeapsToSpead2 has spead2_recv put together what the format encodes.
func TestHeapsToSpead2(t *testing.T) {
	if _, err := exec.LookPath("spead2_recv"); err != nil {
		t.Skip("no spead2_recv is installed")
	}
	script := filepath.Join(t.TempDir(), "sent.lua")
	if err := os.WriteFile(script, []byte(speadSent), 0o600); err != nil {
		t.Fatal(err)
	}
	packets, err := exec.Command(harness.Built(t), "--summary", "none", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	address := harness.FreeAddress(t)
	var out bytes.Buffer
	cmd := exec.Command("spead2_recv", "--verify", address)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	conn, err := net.Dial("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for range 100 { // until it listens: then what is not SPEAD is not refused
		_, _ = conn.Write([]byte("?"))
		time.Sleep(50 * time.Millisecond)
		if _, err = conn.Write([]byte("?")); err == nil {
			break
		}
	}
	for line := range strings.Lines(string(packets)) {
		packet, err := hex.DecodeString(strings.TrimSpace(line))
		if err == nil {
			_, err = conn.Write(packet)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "Received 5 heaps\n") {
		t.Fatalf("%v: %s", err, &out)
	}
}

// checkNumbers compares a heap's item with what spead2_send --verify puts there: 32-bit numbers of C++'s minstd_rand,
// which continue from heap to heap.
func checkNumbers(t *testing.T, id int, h *speadModel) {
	t.Helper()
	var at int
	if _, err := fmt.Sscanf(h.at, " @%d", &at); err != nil {
		t.Fatal(err)
	}
	data := h.data[at:]
	x := uint64(1)
	for range (id - 1) * len(data) / 4 {
		x = x * 48271 % (1<<31 - 1)
	}
	for i := 0; i < len(data); i += 4 {
		x = x * 48271 % (1<<31 - 1)
		if got := binary.BigEndian.Uint32(data[i:]); uint64(got) != x {
			t.Fatalf("heap %d, byte %d: %d, and spead2_send sent %d", id, i, got, x)
		}
	}
}
