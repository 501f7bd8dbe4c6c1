package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
)

// Field is a field of 1 to 64 bits in each packet.
type Field = native.Field

// Csum is what becomes of the IPv4, UDP, TCP and ICMP checksums of packets in which a field is set.
type Csum = native.Csum

// What becomes of checksums.
const (
	CsumKeep   = native.CsumKeep
	CsumUpdate = native.CsumUpdate // they follow by the difference: right ones stay right, wrong ones wrong
)

// What a field's offset counts from, and its flags.
const (
	BaseStart   = native.BaseStart   // the first byte of what the queue holds
	BaseL3      = native.BaseL3      // the network header
	BaseL4      = native.BaseL4      // the transport header
	BasePayload = native.BasePayload // the innermost payload
	FieldLE     = native.FieldLE     // little endian
	FieldSigned = native.FieldSigned
)

// FieldNamed returns the field of that name that every packet may have, such as "udp_dst".
func FieldNamed(name string) (Field, bool) { return native.FieldNamed(name) }

// Place is where a field lies that may be elsewhere in each packet. Safe for concurrent use.
type Place struct {
	Field Field
	prog  *native.Prog // bits further on; nil: always there
	code  []native.Insn
}

// CompilePlace finds a field by its name.
func CompilePlace(name string, fields Fields) (*Place, error) {
	code, f, err := expr.CompilePlace(name, resolver{fields})
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	p := &Place{Field: Field{Base: f.Base, Meta: f.Meta, Flags: f.Flags, Need: f.Need, BitWidth: f.BitWidth, BitOffset: f.BitOffset}}
	if code != nil {
		p.code = nativeInsns(code)
		p.prog, err = native.NewProg(p.code)
	}
	return p, err
}

// At is where f lies, which moves as p's field does.
func (p *Place) At(f Field) *Place { return &Place{Field: f, prog: p.prog, code: p.code} }

// LayerOf is where in a packet a layer is: "frame", "network", "transport" or "payload"; of a packet that is no frame all
// of it is its payload. False: the packet has none.
func LayerOf(packet []byte, frame bool, layer string) (from, to int, ok bool) {
	if !frame {
		return 0, len(packet), layer == "payload" || layer == "frame"
	}
	h, ok := native.ParsePacket(packet)
	to = min(h.End, len(packet))
	switch layer {
	case "frame":
		return 0, len(packet), true
	case "network":
		from = h.L3
	case "transport":
		from = h.L4
	default:
		from, to = h.Payload, h.Payload+h.PayloadLen
	}
	return from, to, ok && from >= 0 && from <= to
}

// FieldNames lists the names that FieldNamed knows.
func FieldNames() []string { return native.FieldNames() }
