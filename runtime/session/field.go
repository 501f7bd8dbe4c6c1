package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
)

// Field is a field of 1 to 64 bits in each packet.
type Field = native.Field

// Csum selects how checksums of IPv4, UDP, TCP and ICMP are handled when a field is set.
type Csum = native.Csum

// Values of Csum.
const (
	CsumKeep   = native.CsumKeep
	CsumUpdate = native.CsumUpdate // incremental update: correct checksums stay correct, wrong ones wrong
)

// Bases of a field's offset, and its flags.
const (
	BaseStart   = native.BaseStart   // first byte of the packet
	BaseL3      = native.BaseL3      // network header
	BaseL4      = native.BaseL4      // transport header
	BasePayload = native.BasePayload // innermost payload
	FieldLE     = native.FieldLE     // little endian
	FieldSigned = native.FieldSigned
)

// FieldNamed returns a common field by name, such as "udp_dst".
func FieldNamed(name string) (Field, bool) { return native.FieldNamed(name) }

// Place is the position of a field that may depend on the packet. It is safe for concurrent use.
type Place struct {
	Field Field
	prog  *native.Prog // additional bits; nil: fixed position
	code  []native.Insn
}

// CompilePlace resolves a field name to its position.
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

// At returns a Place of f that moves with p's field.
func (p *Place) At(f Field) *Place { return &Place{Field: f, prog: p.prog, code: p.code} }

// LayerOf returns the range of a layer in a packet: "frame", "network", "transport" or "payload". A packet that is not a frame is all payload. ok is
// false if the packet lacks the layer.
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

// FieldNames returns the names that FieldNamed accepts.
func FieldNames() []string { return native.FieldNames() }
