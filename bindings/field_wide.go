package bindings

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// 128-bit fields are IPv6 addresses. Native code supports fields of up to 64 bits, so an address is handled as two fields.

// wideNames are the addresses present in every IPv6 packet.
var wideNames = []string{"ipv6_dst", "ipv6_src"}

// uppers resolves a format's address fields to their upper halves.
type uppers struct{ *packetFormat }

func (u uppers) Derived(name string) (expr.Derived, bool) {
	if d, ok := u.f.Upper(name); ok {
		return d, true
	}
	return u.packetFormat.Derived(name)
}

// wideEntry returns the entry of a 128-bit field; is is false for other fields.
func wideEntry(name string, v lua.LValue, in *packetFormat) (e fieldEntry, is bool, err error) {
	e = fieldEntry{name: name, value: v}
	if in != nil && in.f != nil {
		if _, is = in.f.Upper(name); is {
			e.row = in.f.Named(name)
			if e.place, err = remembered(&in.spots, name, uppers{in}, session.CompilePlace); err != nil {
				return e, true, err
			}
			e.f = e.place.Field
			low := e.f
			low.BitOffset += 64
			e.low = &low
			return e, true, nil
		}
	}
	for _, wide := range wideNames {
		if wide == name && !in.has(name) {
			low, _ := session.FieldNamed(name + "_lo")
			e.f, _ = session.FieldNamed(name + "_hi")
			e.low = &low
			return e, true, nil
		}
	}
	return e, false, nil
}

// has reports whether the format has a field of that name.
func (f *packetFormat) has(name string) bool {
	if f == nil {
		return false
	}
	_, plain := f.Field(name)
	return plain || f.moves(name)
}

// lowPlace returns e.place of the lower half; nil if e has no varying place.
func (e *fieldEntry) lowPlace() *session.Place {
	if e.place == nil {
		return nil
	}
	return e.place.At(*e.low)
}

// halves converts an address to its upper and lower 64 bits.
func halves(v lua.LValue) (high, low uint64, err error) {
	text, ok := v.(lua.LString)
	if !ok {
		return 0, 0, fmt.Errorf("an IPv6 address expected, got %s", row.Describe(v))
	}
	a, err := netip.ParseAddr(string(text))
	if err != nil || !a.Is6() || a.Zone() != "" {
		return 0, 0, fmt.Errorf("%q is not an IPv6 address", string(text))
	}
	high, low = addressHalves(a)
	return high, low, nil
}

func addressHalves(a netip.Addr) (high, low uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// halvesAndStep reads address or {address, step}; the step applies to the lower half.
func (e *fieldEntry) halvesAndStep() (high, low, step uint64, err error) {
	first := e.value
	if t, ok := e.value.(*lua.LTable); ok {
		if t.Len() != 2 {
			return 0, 0, 0, errors.New("an address or {start, step} expected")
		}
		first = t.RawGetInt(1)
		if step, err = row.Unsigned(t.RawGetInt(2), 64); err != nil {
			return 0, 0, 0, err
		}
	}
	high, low, err = halves(first)
	return high, low, step, err
}

// tooWide returns the error for a 128-bit field where an integer is counted or varied.
func (e *fieldEntry) tooWide() error {
	switch {
	case e.low == nil:
		return nil
	case e.row == nil:
		return fmt.Errorf("it is an address of 128 bits: %s_lo is its lower half", e.name)
	}
	return errors.New("it is an address of 128 bits: declare its lower half as a field of 64")
}
