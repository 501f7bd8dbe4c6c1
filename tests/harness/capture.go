package harness

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Captured is one packet of a capture that a test writes.
type Captured struct {
	Ns        int64 // since the epoch; negative: a simple packet block
	Data      []byte
	Orig      int    // 0: as long as Data
	Link      int    // number of its interface
	Comment   string // and what else a pcapng can say of it
	Flags     uint32
	DropCount uint64
}

// Datagram is an Ethernet frame, or without ethernet an IP packet, of UDP with this IP id and so many bytes of payload.
func Datagram(id uint16, payload int, ethernet bool) []byte {
	be := binary.BigEndian
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	be.PutUint16(ip[2:], uint16(28+payload))
	be.PutUint16(ip[4:], id)
	sum := uint32(0)
	for k := 0; k < len(ip); k += 2 {
		sum += uint32(be.Uint16(ip[k:]))
	}
	be.PutUint16(ip[10:], ^uint16(sum&0xffff+sum>>16))
	udp := be.AppendUint16(be.AppendUint16(nil, 1000), 7148)
	udp = append(be.AppendUint16(udp, uint16(8+payload)), 0, 0)
	packet := slices.Concat(ip, udp, bytes.Repeat([]byte("y"), payload))
	if ethernet {
		packet = append([]byte("\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00"), packet...)
	}
	return packet
}

// PcapOf is a pcap in ns.
func PcapOf(linkType uint32, packets ...Captured) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 0xa1b23c4d)
	out = append(out, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = le.AppendUint32(le.AppendUint32(out, 262144), linkType)
	for _, p := range packets {
		for _, v := range []uint32{uint32(p.Ns / 1e9), uint32(p.Ns % 1e9), uint32(len(p.Data)), uint32(max(p.Orig, len(p.Data)))} {
			out = le.AppendUint32(out, v)
		}
		out = append(out, p.Data...)
	}
	return out
}

// TsharkLines are these fields of each frame of a capture.
func TsharkLines(t *testing.T, file string, fields ...string) []string {
	t.Helper()
	args := []string{"-n", "-r", file, "-T", "fields", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// ReplayConfig is a configuration with one replayed capture: its address, and further lines.
const ReplayConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    memory_regions:
    - {name: m, kind: host, affinity: 0, num_bufs: 8192, buf_size: 2048}
    interfaces:
    - name: src
      address: %s
      replay: {speed: max}
      rx: {queues: [{name: q, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [m]}]}
%s`

// BigEndianCapture writes n UDP frames of different lengths and gaps as a big endian capture in µs, with nothing of ours.
// It returns how long it takes.
func BigEndianCapture(t *testing.T, path string, n int) time.Duration {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	be := binary.BigEndian
	out := be.AppendUint32(nil, 0xa1b2c3d4)
	out = append(out, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0)
	out = be.AppendUint32(be.AppendUint32(out, 65535), 1)
	at := uint32(999000) // µs: over the end of a second
	first := at
	for k := range n {
		size := 18 + r.IntN(1400)
		f := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0}, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x10, 0, 0x1b, 0xec)
		be.PutUint16(f[16:], uint16(28+size))
		f = append(be.AppendUint16(f, uint16(8+size)), 0, 0)
		f = be.AppendUint32(f, uint32(k))
		for len(f) < 42+size {
			f = append(f, byte(r.Uint32()))
		}
		if k > 0 {
			at += 200 + uint32(r.IntN(1500))
		}
		for _, v := range []uint32{1700000000 + at/1e6, at % 1e6, uint32(len(f)), uint32(len(f))} {
			out = be.AppendUint32(out, v)
		}
		out = append(out, f...)
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at-first) * time.Microsecond
}

// PcapLengths are the lengths of a file's packets, as far as it is written.
func PcapLengths(path string) (list []int) {
	data, _ := os.ReadFile(path)
	for data = data[min(24, len(data)):]; len(data) >= 16; {
		n := int(binary.LittleEndian.Uint32(data[8:]))
		list = append(list, n)
		data = data[min(16+n, len(data)):]
	}
	return list
}
