package bindings

import (
	"fmt"
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// packetFormat resolves names of an application's packet fields in conditions, columns and templates. Cold, except for the compiled conditions.
type packetFormat struct {
	name      string
	f         *format.Format // nil: only places
	places    ownFields
	selectors map[string]*session.Selector
	numbers   map[string]*session.Number
	spots     map[string]*session.Place
}

func (*packetFormat) LuaType() string { return "format" }

// Field returns a field at a fixed place.
func (f *packetFormat) Field(name string) (session.Field, bool) {
	if f.f == nil {
		return f.places.Field(name)
	}
	x, ok := f.f.Field(name)
	return sessionField(x), ok
}

// Derived returns a field whose offset or presence depends on the packet.
func (f *packetFormat) Derived(name string) (expr.Derived, bool) {
	if f.f == nil {
		return expr.Derived{}, false
	}
	return f.f.Derived(name)
}

// Constant returns the number of a named value.
func (f *packetFormat) Constant(name string) (uint64, bool) {
	if f.f == nil {
		return 0, false
	}
	return f.f.Constant(name)
}

// Names lists the fields.
func (f *packetFormat) Names() []string {
	if f.f == nil {
		return f.places.Names()
	}
	return f.f.Names()
}

func sessionField(x expr.Field) session.Field {
	return session.Field{Base: x.Base, Meta: x.Meta, Flags: x.Flags, Need: x.Need, BitWidth: x.BitWidth, BitOffset: x.BitOffset}
}

// fields returns the format as a resolver of names; nil for no format.
func (f *packetFormat) fields() session.Fields {
	if f == nil {
		return nil
	}
	return f
}

// ownAndFormat resolves a call's own names before those of a format.
type ownAndFormat struct {
	ownFields
	f *packetFormat
}

func (o ownAndFormat) Field(name string) (session.Field, bool) {
	if x, ok := o.ownFields.Field(name); ok {
		return x, true
	}
	return o.f.Field(name)
}

func (o ownAndFormat) Names() []string { return slices.Concat(o.ownFields.Names(), o.f.Names()) }

func (o ownAndFormat) Derived(name string) (expr.Derived, bool) {
	if _, own := o.ownFields[name]; own {
		return expr.Derived{}, false
	}
	return o.f.Derived(name)
}

func (o ownAndFormat) Constant(name string) (uint64, bool) { return o.f.Constant(name) }

// with returns a resolver of own, then of the format's fields, if any.
func (f *packetFormat) with(own ownFields) session.Fields {
	if f == nil {
		return own
	}
	return ownAndFormat{own, f}
}

// ownFields are names for the expressions of one call: {name = {bit_offset = ..., bit_width = ...}, ...}.
type ownFields map[string]session.Field

func (f ownFields) Field(name string) (session.Field, bool) {
	x, ok := f[name]
	return x, ok
}

func (f ownFields) Names() []string { return slices.Sorted(maps.Keys(f)) }

// isPlaces reports whether a table has the form {field = place, ...}.
func isPlaces(t *lua.LTable) bool {
	if t.Len() > 0 || t.RawGetString("struct") != lua.LNil {
		return false
	}
	places := true
	t.ForEach(func(k, v lua.LValue) {
		_, table := v.(*lua.LTable)
		places = places && (table || !slices.Contains(formatKeys, k.String()))
	})
	return places
}

// field returns a field of the format at a fixed place, or a standard field.
func (f *packetFormat) field(name string) (session.Field, error) {
	if f != nil {
		if x, ok := f.Field(name); ok {
			return x, nil
		}
		if _, ok := session.FieldNamed(name); !ok {
			return session.Field{}, fmt.Errorf("%s", row.Unknown("field", name, append(f.Names(), session.FieldNames()...)))
		}
	}
	return namedField(name)
}

// moves reports whether the named field of the format has a varying offset, or is absent from some packets.
func (f *packetFormat) moves(name string) bool {
	if f == nil {
		return false
	}
	_, ok := f.Derived(name)
	return ok
}

// maxSelectors bounds the cache of compiled conditions, for scripts that generate condition texts.
const maxSelectors = 256

// remembered returns the compiled form of text, from the cache if it was compiled before.
func remembered[T any](known *map[string]*T, text string, fields session.Fields, compile func(string, session.Fields) (*T, error)) (*T, error) {
	if x := (*known)[text]; x != nil {
		return x, nil
	}
	x, err := compile(text, fields)
	if err != nil {
		return nil, err
	}
	if *known == nil || len(*known) >= maxSelectors {
		*known = map[string]*T{}
	}
	(*known)[text] = x
	return x, nil
}

// settable returns the names for which a template accepts values.
func (f *packetFormat) settable() []string {
	if f == nil || f.f == nil {
		return nil
	}
	names := f.f.Names()
	for _, l := range f.f.Lists {
		names = append(names, l.List)
	}
	return names
}
