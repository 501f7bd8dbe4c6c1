package format

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
)

// ReadValue converts a decoded field to a Lua value: numbers as in the packet, addresses as text. integer converts a 64-bit number.
func ReadValue(L *lua.LState, r format.Read, integer func(uint64) lua.LValue) lua.LValue {
	if r.Items != nil {
		list := L.NewTable()
		for _, one := range r.Items {
			item := L.NewTable()
			for _, x := range one {
				item.RawSetString(x.Name, ReadValue(L, x, integer))
			}
			list.Append(item)
		}
		return list
	}
	if r.Field == nil {
		return integer(r.Raw)
	}
	switch r.Field.Kind {
	case format.Signed:
		if v := int64(r.Raw); v > row.MaxInt || v < -row.MaxInt {
			return lua.LString(strconv.FormatInt(v, 10))
		}
		return lua.LNumber(int64(r.Raw))
	case format.Float:
		return lua.LNumber(floatOf(r.Raw, r.Field.Bits))
	case format.Bytes:
		return lua.LString(r.Bytes)
	case format.MAC, format.IPv4, format.IPv6:
		return lua.LString(addressText(r))
	}
	return integer(r.Raw)
}

func floatOf(raw uint64, bits int) float64 {
	if bits == 32 {
		return float64(math.Float32frombits(uint32(raw)))
	}
	return math.Float64frombits(raw)
}

func addressText(r format.Read) string {
	switch r.Field.Kind {
	case format.MAC:
		return FieldText("eth_dst", r.Raw, false)
	case format.IPv4:
		return FieldText("ipv4_dst", r.Raw, false)
	}
	a, _ := netip.AddrFromSlice(r.Bytes)
	return a.String()
}

// ReadText formats a decoded field for display: value name, base, scale and unit applied.
func ReadText(r format.Read) string {
	if r.Field == nil {
		if r.Items != nil {
			return fmt.Sprintf("%d items", len(r.Items))
		}
		return strconv.FormatUint(r.Raw, 10)
	}
	x := r.Field
	for _, v := range x.Values {
		if v.Number == r.Raw {
			return v.Name
		}
	}
	number := float64(r.Raw)
	switch x.Kind {
	case format.Bytes:
		return fmt.Sprintf("%x", r.Bytes)
	case format.MAC, format.IPv4, format.IPv6:
		return addressText(r)
	case format.Float:
		number = floatOf(r.Raw, x.Bits)
	case format.Signed:
		number = float64(int64(r.Raw))
	}
	unit := ""
	if x.Unit != "" {
		unit = " " + x.Unit
	}
	switch {
	case x.Hex:
		return fmt.Sprintf("0x%x", r.Raw)
	case x.Scale != 0 || x.Offset != 0:
		scale := x.Scale
		if scale == 0 {
			scale = 1
		}
		return strconv.FormatFloat(number*scale+x.Offset, 'g', 10, 64) + unit
	case x.Kind == format.Float:
		return strconv.FormatFloat(number, 'g', -1, x.Bits) + unit
	case x.Kind == format.Signed:
		return strconv.FormatInt(int64(r.Raw), 10) + unit
	}
	return strconv.FormatUint(r.Raw, 10) + unit
}

// GivenValues reads { FIELD = value, ..., payload = bytes }, ignoring the keys in skip.
func GivenValues(f *format.Format, t *lua.LTable, skip ...string) (given map[string]format.Given, payload []byte, err error) {
	given = map[string]format.Given{}
	names := map[string]bool{}
	for _, n := range f.Names() {
		names[n] = true
	}
	lists := map[string]*format.List{}
	for _, l := range f.Lists {
		lists[l.List] = l
	}
	t.ForEach(func(k, v lua.LValue) {
		name := k.String()
		var g format.Given
		var bad error
		switch {
		case slices.Contains(skip, name):
			return
		case name == "payload":
			text, ok := v.(lua.LString)
			if payload = []byte(text); !ok {
				bad = fmt.Errorf("a string of bytes expected, got %s", row.Describe(v))
			}
		case lists[name] != nil:
			g.Items, bad = givenItems(lists[name], v)
			given[name] = g
		case !names[name]:
			bad = fmt.Errorf("%s", row.Unknown("field", name, f.Names()))
		default:
			g, bad = givenValue(f, name, v)
			given[name] = g
		}
		if bad != nil && err == nil {
			err = fmt.Errorf("%s: %w", name, bad)
		}
	})
	return given, payload, err
}

func givenItems(l *format.List, v lua.LValue) (items []map[string]uint64, err error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("a list of tables expected, got %s", row.Describe(v))
	}
	for i := 1; i <= t.Len(); i++ {
		in, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			return nil, fmt.Errorf("element %d: a table expected, got %s", i, row.Describe(t.RawGetInt(i)))
		}
		one := map[string]uint64{}
		in.ForEach(func(k, v lua.LValue) {
			for _, r := range l.Rows {
				if r.Name != k.String() || err != nil {
					continue
				}
				one[r.Name], err = rawNumber(v, r)
				return
			}
			if err == nil {
				err = fmt.Errorf("element %d: an item has no field '%s'", i, k)
			}
		})
		items = append(items, one)
	}
	return items, err
}

func givenValue(f *format.Format, name string, v lua.LValue) (g format.Given, err error) {
	x := f.Named(name)
	if x == nil { // list item
		g.Raw, err = row.Unsigned(v, 64)
		return g, err
	}
	text, isText := v.(lua.LString)
	switch x.Kind {
	case format.Float:
		n, ok := v.(lua.LNumber)
		if !ok {
			return g, fmt.Errorf("a number expected, got %s", row.Describe(v))
		}
		if g.Raw = math.Float64bits(float64(n)); x.Bits == 32 {
			g.Raw = uint64(math.Float32bits(float32(n)))
		}
	case format.Bytes:
		if g.Bytes = []byte(text); !isText {
			return g, fmt.Errorf("a string of bytes expected, got %s", row.Describe(v))
		}
	case format.IPv6:
		a, bad := netip.ParseAddr(string(text))
		if bad != nil || !a.Is6() {
			return g, fmt.Errorf("%q is not an IPv6 address", string(text))
		}
		g.Bytes = a.AsSlice()
	default:
		g.Raw, err = rawNumber(v, x.Row)
	}
	return g, err
}
