package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Layout of the classic capture file (draft-ietf-opsawg-pcap): a 24-byte file header, then per packet a 16-byte header and the captured bytes, in
// the byte order given by the magic number.
const (
	pcapMicro       = 0xa1b2c3d4
	pcapNano        = 0xa1b23c4d
	pcapFileHeader  = 24
	pcapFrameHeader = 16
)

// capture is a decoded capture file. Packets reference the file's memory.
type capture struct {
	nano         bool
	major, minor uint16
	snaplen      uint32
	link         uint32
	packets      []pcapPacket
	// cut describes a truncated last packet; empty for a complete file.
	cut  string
	left []byte // its remaining bytes
}

type pcapPacket struct {
	offset         int // of the packet's header in the file
	sec, frac      uint32
	captured, orig uint32
	data           []byte
}

// pcapOrder returns the byte order of a capture and whether its times are in nanoseconds; nil if data is not a capture.
func pcapOrder(data []byte) (order binary.ByteOrder, nano bool) {
	if len(data) < pcapFileHeader {
		return nil, false
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(data) {
		case pcapMicro:
			return order, false
		case pcapNano:
			return order, true
		}
	}
	return nil, false
}

func isPcap(data []byte) bool {
	order, _ := pcapOrder(data)
	return order != nil
}

// readPcap decodes a capture; the caller has checked it with isPcap.
func readPcap(data []byte) capture {
	order, nano := pcapOrder(data)
	c := capture{nano: nano, major: order.Uint16(data[4:]), minor: order.Uint16(data[6:]),
		snaplen: order.Uint32(data[16:]), link: order.Uint32(data[20:])}
	for at := pcapFileHeader; at < len(data); {
		rest := data[at:]
		if len(rest) < pcapFrameHeader {
			c.left = rest
			c.cut = fmt.Sprintf("ends in the header of packet %d, at offset %d", len(c.packets)+1, len(data))
			break
		}
		p := pcapPacket{offset: at, sec: order.Uint32(rest), frac: order.Uint32(rest[4:]),
			captured: order.Uint32(rest[8:]), orig: order.Uint32(rest[12:])}
		rest = rest[pcapFrameHeader:]
		if uint64(len(rest)) < uint64(p.captured) {
			c.left = rest
			c.cut = fmt.Sprintf("ends %d bytes into packet %d, which has %d, at offset %d",
				len(rest), len(c.packets)+1, p.captured, len(data))
			break
		}
		p.data = rest[:p.captured]
		c.packets = append(c.packets, p)
		at += pcapFrameHeader + int(p.captured)
	}
	return c
}

// field is one value to compare, as text.
type field struct{ name, want, got string }

// comparePcap reports differing header fields of two captures and shows the first differing packet. Byte order is not compared.
func comparePcap(name string, wantData, gotData []byte) string {
	want, got := readPcap(wantData), readPcap(gotData)
	var b strings.Builder
	writeFields(&b, []field{
		{"times in", want.unit(), got.unit()},
		{"version", fmt.Sprintf("%d.%d", want.major, want.minor), fmt.Sprintf("%d.%d", got.major, got.minor)},
		{"snapshot length", number(want.snaplen), number(got.snaplen)},
		{"link type", number(want.link), number(got.link)},
		{"packets", number(uint32(len(want.packets))), number(uint32(len(got.packets)))},
		{"end of file", orWhole(want.cut), orWhole(got.cut)},
	})
	if want.cut == got.cut && !bytes.Equal(want.left, got.left) {
		fmt.Fprintf(&b, "  the bytes of the last packet, which is cut, differ:\n%s", hexDifference(want.left, got.left))
	}
	first, differing := -1, 0
	for i := range min(len(want.packets), len(got.packets)) {
		if packetDifference(want, got, i) == "" {
			continue
		}
		if differing++; first < 0 {
			first = i
		}
	}
	if first >= 0 {
		fmt.Fprintf(&b, "  %d packets differ; the first is packet %d (golden offset 0x%x, output offset 0x%x)\n%s", differing,
			first+1, want.packets[first].offset, got.packets[first].offset, packetDifference(want, got, first))
	}
	if b.Len() == 0 {
		return ""
	}
	return name + ":\n" + b.String()
}

// packetDifference shows the differing fields and bytes of packet i, or returns "".
func packetDifference(want, got capture, i int) string {
	w, g := want.packets[i], got.packets[i]
	var b strings.Builder
	writeFields(&b, []field{
		{"time", want.time(w), got.time(g)},
		{"captured length", number(w.captured), number(g.captured)},
		{"original length", number(w.orig), number(g.orig)},
	})
	if string(w.data) != string(g.data) {
		b.WriteString(hexDifference(w.data, g.data))
	}
	return b.String()
}

func writeFields(b *strings.Builder, fields []field) {
	for _, f := range fields {
		if f.want != f.got {
			fmt.Fprintf(b, "  %s: %s, want %s\n", f.name, f.got, f.want)
		}
	}
}

func (c capture) unit() string {
	if c.nano {
		return "nanoseconds"
	}
	return "microseconds"
}

// time formats a packet's time with the digits of the file's unit, and both raw words.
func (c capture) time(p pcapPacket) string {
	digits := 6
	if c.nano {
		digits = 9
	}
	return fmt.Sprintf("%d.%0*d (0x%08x 0x%08x)", p.sec, digits, p.frac, p.sec, p.frac)
}

func number(v uint32) string { return fmt.Sprintf("%d (0x%x)", v, v) }

func orWhole(cut string) string {
	if cut == "" {
		return "after a whole packet"
	}
	return cut
}
