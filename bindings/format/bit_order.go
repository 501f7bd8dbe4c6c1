package format

import (
	"github.com/daqiri/daqiri-run/runtime/format"
)

// mixed returns an error for the first field of single bits in big-endian order if the table also has little-endian numbers: such bits usually count
// from the least significant one.
func (d *declaration) mixed() error {
	little, bits := orders(d.spec.Rows)
	if little == nil || bits == nil {
		return nil
	}
	name := bits.Name
	if bits.Reserved {
		name = "reserved"
	}
	return d.errorf(*bits, "the table has little-endian fields ('%s'), and no order of the bits within a byte: say lsb0 = true, or lsb0 = false if the first field has "+
		"the most significant bits of its byte; or name the bits of a whole field, { \"flags\", 8, bits = { %s = 0 } }", little.Name, name)
}

// orders returns the first little-endian number of more than a byte, and the first field of a part of a byte in big-endian order; nil: none.
func orders(rows []format.Row) (little, bits *format.Row) {
	for i := range rows {
		r := &rows[i]
		l, b := r, r
		switch {
		case r.Group:
			l, b = orders(r.Rows)
		case r.List != "", r.At != "":
			continue
		default:
			if !r.Little || r.Bits <= 8 || r.Reserved || r.Kind == format.Bytes {
				l = nil
			}
			if r.Little || r.Bits%8 == 0 {
				b = nil
			}
		}
		if little == nil {
			little = l
		}
		if bits == nil {
			bits = b
		}
	}
	return little, bits
}
