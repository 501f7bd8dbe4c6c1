package format

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

// WideNames are the addresses present in every IPv6 packet.
var WideNames = []string{"ipv6_dst", "ipv6_src"}

// uppers resolves a format's address fields to their upper halves.
type uppers struct{ *Format }

func (u uppers) Derived(name string) (expr.Derived, bool) {
	if d, ok := u.Declared.Upper(name); ok {
		return d, true
	}
	return u.Format.Derived(name)
}

// wideEntry returns the entry of a 128-bit field; is is false for other fields.
func wideEntry(name string, v lua.LValue, in *Format) (e Entry, is bool, err error) {
	e = Entry{Name: name, Value: v}
	if in != nil && in.Declared != nil {
		if _, is = in.Declared.Upper(name); is {
			e.row = in.Declared.Named(name)
			if e.Place, err = Cached(&in.spots, name, uppers{in}, session.CompilePlace); err != nil {
				return e, true, err
			}
			e.Field = e.Place.Field
			low := e.Field
			low.BitOffset += 64
			e.low = &low
			return e, true, nil
		}
	}
	for _, wide := range WideNames {
		if wide == name && !in.has(name) {
			low, _ := session.FieldNamed(name + "_lo")
			e.Field, _ = session.FieldNamed(name + "_hi")
			e.low = &low
			return e, true, nil
		}
	}
	return e, false, nil
}

// has reports whether the format has a field of that name.
func (f *Format) has(name string) bool {
	if f == nil {
		return false
	}
	_, plain := f.Field(name)
	return plain || f.Moves(name)
}

// lowPlace returns e.place of the lower half; nil if e has no varying place.
func (e *Entry) lowPlace() *session.Place {
	if e.Place == nil {
		return nil
	}
	return e.Place.At(*e.low)
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
func (e *Entry) halvesAndStep() (high, low, step uint64, err error) {
	first := e.Value
	if t, ok := e.Value.(*lua.LTable); ok {
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

// TooWide returns the error for a 128-bit field where an integer is counted or varied.
func (e *Entry) TooWide() error {
	switch {
	case e.low == nil:
		return nil
	case e.row == nil:
		return fmt.Errorf("it is an address of 128 bits: %s_lo is its lower half", e.Name)
	}
	return errors.New("it is an address of 128 bits: declare its lower half as a field of 64")
}
