package format

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

// Format resolves names of an application's packet fields in conditions, columns and templates. Cold, except for the compiled conditions.
type Format struct {
	Name      string
	Declared  *format.Format               // nil: only places
	Places    Places                       // of a format without a declaration
	Selectors map[string]*session.Selector // compiled conditions by text; see Cached
	Numbers   map[string]*session.Number   // compiled expressions by text
	spots     map[string]*session.Place    // compiled places by field
}

// LuaType returns "format".
func (*Format) LuaType() string { return "format" }

// Field returns a field at a fixed place.
func (f *Format) Field(name string) (session.Field, bool) {
	if f.Declared == nil {
		return f.Places.Field(name)
	}
	x, ok := f.Declared.Field(name)
	return SessionField(x), ok
}

// Derived returns a field whose offset or presence depends on the packet.
func (f *Format) Derived(name string) (expr.Derived, bool) {
	if f.Declared == nil {
		return expr.Derived{}, false
	}
	return f.Declared.Derived(name)
}

// Constant returns the number of a named value.
func (f *Format) Constant(name string) (uint64, bool) {
	if f.Declared == nil {
		return 0, false
	}
	return f.Declared.Constant(name)
}

// Names lists the fields.
func (f *Format) Names() []string {
	if f.Declared == nil {
		return f.Places.Names()
	}
	return f.Declared.Names()
}

// SessionField converts a field of an expression.
func SessionField(x expr.Field) session.Field {
	return session.Field{Base: x.Base, Meta: x.Meta, Flags: x.Flags, Need: x.Need, BitWidth: x.BitWidth, BitOffset: x.BitOffset}
}

// Fields returns the format as a resolver of names; nil for no format.
func (f *Format) Fields() session.Fields {
	if f == nil {
		return nil
	}
	return f
}

// ownAndFormat resolves a call's own names before those of a format.
type ownAndFormat struct {
	Places
	f *Format
}

func (o ownAndFormat) Field(name string) (session.Field, bool) {
	if x, ok := o.Places.Field(name); ok {
		return x, true
	}
	return o.f.Field(name)
}

func (o ownAndFormat) Names() []string { return slices.Concat(o.Places.Names(), o.f.Names()) }

func (o ownAndFormat) Derived(name string) (expr.Derived, bool) {
	if _, own := o.Places[name]; own {
		return expr.Derived{}, false
	}
	return o.f.Derived(name)
}

func (o ownAndFormat) Constant(name string) (uint64, bool) { return o.f.Constant(name) }

// With returns a resolver of own, then of the format's fields, if any.
func (f *Format) With(own Places) session.Fields {
	if f == nil {
		return own
	}
	return ownAndFormat{own, f}
}

// Places are names for the expressions of one call: {name = {bit_offset = ..., bit_width = ...}, ...}.
type Places map[string]session.Field

// Field returns the field of that name.
func (f Places) Field(name string) (session.Field, bool) {
	x, ok := f[name]
	return x, ok
}

// Names lists the names in sorted order.
func (f Places) Names() []string { return slices.Sorted(maps.Keys(f)) }

// IsPlaces reports whether a table has the form {field = place, ...}.
func IsPlaces(t *lua.LTable) bool {
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

// Find returns a field of the format at a fixed place, or a standard field.
func (f *Format) Find(name string) (session.Field, error) {
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

// Moves reports whether the named field of the format has a varying offset, or is absent from some packets.
func (f *Format) Moves(name string) bool {
	if f == nil {
		return false
	}
	_, ok := f.Derived(name)
	return ok
}

// maxSelectors bounds the cache of compiled conditions, for scripts that generate condition texts.
const maxSelectors = 256

// Cached returns the compiled form of text, from the cache if it was compiled before.
func Cached[T any](known *map[string]*T, text string, fields session.Fields, compile func(string, session.Fields) (*T, error)) (*T, error) {
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

// Settable returns the names for which a template accepts values.
func (f *Format) Settable() []string {
	if f == nil || f.Declared == nil {
		return nil
	}
	names := f.Declared.Names()
	for _, l := range f.Declared.Lists {
		names = append(names, l.List)
	}
	return names
}
