package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Layout of the classic capture file, after draft-ietf-opsawg-pcap: a 24-byte file header, then for each packet a
// 16-byte header and the captured bytes, all in the byte order that the magic number shows.
const (
	pcapMicro       = 0xa1b2c3d4
	pcapNano        = 0xa1b23c4d
	pcapFileHeader  = 24
	pcapFrameHeader = 16
)

// capture is a decoded file. Packets share the file's memory.
type capture struct {
	nano         bool
	major, minor uint16
	snaplen      uint32
	link         uint32
	packets      []pcapPacket
	// cut says where the file ends in the middle of a packet; empty when it is whole.
	cut  string
	left []byte // of that packet
}

type pcapPacket struct {
	offset         int // of the packet's header in the file
	sec, frac      uint32
	captured, orig uint32
	data           []byte
}

// pcapOrder returns the byte order of a capture and whether its times are in nanoseconds; nil when it is none.
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

// readPcap decodes a file for which isPcap holds.
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

// comparePcap says in which header fields two captures differ and shows the first packet that does. Captures that
// differ in byte order alone are the same.
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

// packetDifference shows the fields and bytes in which packet i differs; "" when it doesn't.
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

// time shows a packet's time with as many digits as the file's unit has, and its two words as they stand there.
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
