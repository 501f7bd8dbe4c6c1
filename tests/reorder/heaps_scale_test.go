package reorder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// heapsStreamScript writes each heap to its output: a line with id, bytes and missing ones, then its data.
const heapsStreamScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ format = "" }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "socket", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 9216 },
    { name = "heaps", kind = "host", affinity = 0, num_bufs = 24, buf_size = 4 * 2 ^ 20 } },
  interfaces = { { name = "rx_port", address = "0.0.0.0", socket_config = { mode = "server", local_addr = "udp://0.0.0.0:4015" },
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 1000, memory_regions = { "packets" } } } } } } } } }
local heaps = s:heaps{ name = "heaps", format = args.format, memory_region = "heaps", window = 8, policy = "wait", fill = 0 }
s:pipe(s:rx_queue("rx_port"), heaps)
heaps:on_burst(function(h)
  io.write(("%d %d %d\n"):format(h.batch_id, #h.data, h.missing), h.data:bytes())
end)
s:run{}
`

// A scaleHeap is what a heap was sent as: size bytes of the pool from at on, without the pieces that were lost.
type scaleHeap struct {
	at, size, missing int
	lost              [][2]int
}

// heapsSent writes a capture of n heaps, pieces of four at a time by turns.
type heapsSent struct {
	address int // bytes of one
	loss    float64
	r       *rand.Rand
	pool    []byte
	mu      sync.Mutex
	open    map[int]scaleHeap // sent, and not yet back
}

func newHeapsSent(address int, loss float64) *heapsSent {
	h := &heapsSent{address: address, loss: loss, r: rand.New(rand.NewPCG(uint64(address), math.Float64bits(loss))), pool: make([]byte, 8<<20), open: map[int]scaleHeap{}}
	for i := 0; i < len(h.pool); i += 8 {
		binary.LittleEndian.PutUint64(h.pool[i:], h.r.Uint64())
	}
	return h
}

func (h *heapsSent) write(to io.Writer, n int) error {
	w := bufio.NewWriterSize(to, 1<<20)
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = append(head, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for first := 1; first <= n; first += 4 {
		var parts [4][][2]int
		var heaps [4]scaleHeap
		for k := 0; k < 4 && first+k <= n; k++ {
			heaps[k], parts[k] = h.next()
			if heaps[k].missing < heaps[k].size {
				h.mu.Lock()
				h.open[first+k] = heaps[k]
				h.mu.Unlock()
			}
		}
		for some := true; some; {
			some = false
			for k := range parts {
				if len(parts[k]) == 0 {
					continue
				}
				some = true
				if err := h.packet(w, first+k, heaps[k], parts[k][0]); err != nil {
					return err
				}
				parts[k] = parts[k][1:]
			}
		}
	}
	return w.Flush()
}

// next makes a heap of 64 KiB to 4 MiB, of which small ones are more often, and which of its pieces are sent, a few of them out of order.
func (h *heapsSent) next() (heap scaleHeap, sent [][2]int) {
	heap.size = min(4<<20, int(65536/math.Sqrt(1-h.r.Float64())))
	heap.at = h.r.IntN(len(h.pool) - heap.size + 1)
	piece := []int{1400, 4096, 8192, 8900}[h.r.IntN(4)]
	for at := 0; at < heap.size; at += piece {
		p := [2]int{at, min(piece, heap.size-at)}
		if h.r.Float64() < h.loss {
			heap.lost = append(heap.lost, p)
			heap.missing += p[1]
			continue
		}
		sent = append(sent, p)
		if k := len(sent) - 1; k > 0 && h.r.IntN(20) == 0 {
			sent[k], sent[k-1] = sent[k-1], sent[k]
		}
	}
	return heap, sent
}

// packet writes the record of one piece.
func (h *heapsSent) packet(w io.Writer, id int, heap scaleHeap, p [2]int) error {
	be := binary.BigEndian
	const headers, spead = 14 + 20 + 8, 8 + 4*8
	n := uint32(headers + spead + p[1])
	out := binary.LittleEndian.AppendUint32(make([]byte, 8, 16+headers+spead), n)
	out = binary.LittleEndian.AppendUint32(out, n)
	out = append(out, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0)
	out = be.AppendUint16(out, uint16(n-14))
	out = append(out, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x20, 1)
	out = be.AppendUint16(out, 4015)
	out = be.AppendUint16(out, uint16(n-34))
	out = append(out, 0, 0, 0x53, 4, byte(8-h.address), byte(h.address), 0, 0, 0, 4)
	for k, value := range []int{id, heap.size, p[0], p[1]} {
		out = be.AppendUint64(out, 1<<63|uint64(k+1)<<(8*h.address)|uint64(value))
	}
	if _, err := w.Write(out); err != nil {
		return err
	}
	_, err := w.Write(h.pool[heap.at+p[0]:][:p[1]])
	return err
}

// compare reads the heaps that came back; what is wrong with one.
func (h *heapsSent) compare(from io.Reader) (heaps, size int, err error) {
	r, data, zeros := bufio.NewReaderSize(from, 1<<20), make([]byte, 4<<20), make([]byte, 8900)
	for {
		var id, n, missing int
		if _, err := fmt.Fscanf(r, "%d %d %d\n", &id, &n, &missing); err == io.EOF {
			return heaps, size, nil
		} else if err != nil {
			return heaps, size, fmt.Errorf("after heap %d: %w", id, err)
		}
		h.mu.Lock()
		want, ok := h.open[id]
		delete(h.open, id)
		h.mu.Unlock()
		if !ok || n != want.size || missing != want.missing {
			return heaps, size, fmt.Errorf("heap %d: %d bytes, %d missing; want %d and %d (sent and not yet back: %t)", id, n, missing, want.size, want.missing, ok)
		}
		if _, err := io.ReadFull(r, data[:n]); err != nil {
			return heaps, size, err
		}
		at := 0
		for _, p := range append(want.lost, [2]int{n, 0}) {
			if !bytes.Equal(data[at:p[0]], h.pool[want.at+at:want.at+p[0]]) || !bytes.Equal(data[p[0]:p[0]+p[1]], zeros[:p[1]]) {
				return heaps, size, fmt.Errorf("heap %d: other bytes between %d and %d", id, at, p[0]+p[1])
			}
			at = p[0] + p[1]
		}
		heaps, size = heaps+1, size+n
	}
}

// TestHeapsScale streams heaps of 64 KiB to 4 MiB through the program, of both flavours, whole and with loss, and compares every byte and
// what is missing. DAQIRI_TEST_HEAPS is how many (100000: 13 GB, some minutes).
func TestHeapsScale(t *testing.T) {
	total := 60
	if n, err := strconv.Atoi(os.Getenv("DAQIRI_TEST_HEAPS")); err == nil {
		total = n
	}
	script := filepath.Join(t.TempDir(), "heaps.lua")
	if err := os.WriteFile(script, []byte(heapsStreamScript), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []int{5, 6} {
		for _, loss := range []float64{0, 0.01, 0.1} {
			t.Run(fmt.Sprintf("%d loss %g", 8*address, loss), func(t *testing.T) {
				sent := newHeapsSent(address, loss)
				cmd := exec.Command(harness.Built(t), "--summary", "none", "--source", "rx_port=-", script, "--format", fmt.Sprintf("spead-64-%d", 8*address))
				var output bytes.Buffer
				cmd.Stderr = &output
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				wrote := make(chan error, 1)
				go func() {
					err := sent.write(in, total/6)
					_ = in.Close()
					wrote <- err
				}()
				heaps, size, err := sent.compare(out)
				if err != nil {
					_ = cmd.Process.Kill()
					t.Fatalf("%v after %d heaps\n%s", err, heaps, output.String())
				}
				if err := <-wrote; err != nil {
					t.Errorf("sending: %v", err)
				}
				if err := cmd.Wait(); err != nil || len(sent.open) > 0 || heaps == 0 {
					t.Fatalf("%v: %d heaps are back, %d are not\n%s", err, heaps, len(sent.open), output.String())
				}
				t.Logf("%d heaps, %d MB: %v of CPU time", heaps, size/1e6, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			})
		}
	}
}
