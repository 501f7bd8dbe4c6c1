package format

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Changeable returns an error for an item of a list, whose place is not fixed.
func (e *Entry) Changeable() error {
	if e.item {
		return errors.New("items of a list can't be changed")
	}
	return nil
}

// Parts returns the field, or both halves of a 128-bit field.
func (e *Entry) Parts() ([]session.Rewrite, error) {
	if e.low != nil {
		high, low, step, err := e.halvesAndStep()
		return []session.Rewrite{{Field: e.Field, Place: e.Place, Set: true, Start: high},
			{Field: *e.low, Place: e.lowPlace(), Set: true, Start: low, Step: step}}, err
	}
	v, step, err := e.startAndStep()
	return []session.Rewrite{{Field: e.Field, Place: e.Place, Set: true, Start: v, Step: step}}, err
}

// startAndStep reads value, {start, step}, or the keys value and step of a place.
func (e *Entry) startAndStep() (start, step uint64, err error) {
	first, second := e.Value, lua.LValue(lua.LNumber(0))
	if t, ok := e.Value.(*lua.LTable); ok {
		switch {
		case t.RawGetString("bit_width") != lua.LNil:
			first = t.RawGetString("value")
			if v := t.RawGetString("step"); v != lua.LNil {
				second = v
			}
		case t.Len() == 2:
			first, second = t.RawGetInt(1), t.RawGetInt(2)
		default:
			return 0, 0, errors.New("a value or {start, step} expected")
		}
	}
	if start, err = e.Raw(first); err == nil {
		step, err = row.Unsigned(second, 64)
	}
	return start, step, err
}

// Rewrites returns the rewrites of the entry's field.
func (e *Entry) Rewrites() ([]session.Rewrite, error) {
	if err := e.Changeable(); err != nil {
		return nil, err
	}
	t, ok := e.Value.(*lua.LTable)
	if !ok || t.Len() > 0 || t.RawGetString("bit_width") != lua.LNil {
		return e.Parts()
	}
	maps, err := e.maps(t)
	return []session.Rewrite{{Field: e.Field, Place: e.Place, Low: e.low, Maps: maps}}, err
}

// maps reads {["old"] = new, ...}, sorted with the longest prefixes first.
func (e *Entry) maps(t *lua.LTable) ([]session.RewriteMap, error) {
	var list []session.RewriteMap
	var failed error
	t.ForEach(func(k, v lua.LValue) {
		m, err := e.mapOf(k, v)
		if err != nil {
			failed = cmp.Or(failed, err)
			return
		}
		list = append(list, m)
	})
	if len(list) == 0 && failed == nil {
		failed = errors.New("a value, {start, step} or a table by old values expected, got an empty table")
	}
	slices.SortFunc(list, func(a, b session.RewriteMap) int {
		return cmp.Or(cmp.Compare(b.Mask, a.Mask), cmp.Compare(b.LowMask, a.LowMask), cmp.Compare(a.From, b.From))
	})
	return list, failed
}

func (e *Entry) mapOf(k, v lua.LValue) (m session.RewriteMap, err error) {
	key, ok := k.(lua.LString)
	if !ok {
		return m, fmt.Errorf("old values are text, as in { [\"7148\"] = 7149 }, got %s", row.Describe(k))
	}
	if to, ok := v.(lua.LString); ok && strings.Contains(string(key)+string(to), "/") {
		return e.mapOfPrefixes(string(key), string(to))
	}
	if e.low != nil {
		m.Mask, m.LowMask = ^uint64(0), ^uint64(0)
		if m.From, m.LowFrom, err = halves(key); err == nil {
			m.To, m.LowTo, err = halves(v)
		}
		return m, err
	}
	if m.From, err = e.old(string(key)); err != nil {
		return m, err
	}
	m.Mask = ^uint64(0) >> (64 - e.Field.BitWidth)
	m.To, err = e.Raw(v)
	return m, err
}

// old converts a value given as a key.
func (e *Entry) old(text string) (uint64, error) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		v, err := e.Raw(lua.LNumber(n))
		return v & (^uint64(0) >> (64 - e.Field.BitWidth)), err
	}
	return e.Raw(lua.LString(text))
}

func (e *Entry) mapOfPrefixes(from, to string) (m session.RewriteMap, err error) {
	if e.low == nil && !strings.HasPrefix(e.Name, "ipv4_") && (e.row == nil || e.row.Kind != format.IPv4) {
		return m, fmt.Errorf("%q: prefixes are for IPv4 and IPv6 addresses", from)
	}
	a, err := e.prefix(from)
	if err != nil {
		return m, err
	}
	b, err := e.prefix(to)
	if err != nil {
		return m, err
	}
	if a.Bits() != b.Bits() {
		return m, fmt.Errorf("%q and %q are of different length", from, to)
	}
	if e.low != nil {
		m.Mask, m.LowMask = ^uint64(0)<<(64-min(a.Bits(), 64)), ^uint64(0)<<(64-max(a.Bits()-64, 0))
		m.From, m.LowFrom = addressHalves(a.Addr())
		m.To, m.LowTo = addressHalves(b.Addr())
		return m, nil
	}
	m.Mask = uint64(^uint32(0)) << (32 - a.Bits()) & uint64(^uint32(0))
	m.From, m.To = ipv4Number(a.Addr()), ipv4Number(b.Addr())
	return m, nil
}

func (e *Entry) prefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if e.low == nil && (err != nil || !p.Addr().Is4()) {
		return p, fmt.Errorf("%q is not an IPv4 prefix such as 10.1.0.0/16", text)
	}
	if e.low != nil && (err != nil || p.Addr().Is4()) {
		return p, fmt.Errorf("%q is not an IPv6 prefix such as 2001:db8::/32", text)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%q has bits behind its prefix: %s is meant, or another length", text, p.Masked())
	}
	return p, nil
}

func ipv4Number(a netip.Addr) uint64 {
	b := a.As4()
	return uint64(binary.BigEndian.Uint32(b[:]))
}
