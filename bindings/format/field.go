package format

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// placeKeys are the keys of an unnamed field's place: {at = "payload", bit_offset = 0, bit_width = 32}.
var placeKeys = []string{"at", "bit_offset", "bit_width", "endianness"}

var bases = map[string]uint8{"start": session.BaseStart, "payload": session.BasePayload}

// namedField returns a field that any packet may have.
func namedField(name string) (session.Field, error) {
	f, ok := session.FieldNamed(name)
	if !ok {
		return f, fmt.Errorf("%s", row.Unknown("field", name, slices.Sorted(slices.Values(session.FieldNames()))))
	}
	return f, nil
}

// Placed reads a field given by its place. Bits count from the most significant bit of the first byte, from the start of the packet or of
// the payload. more lists further allowed keys of the table.
func Placed(c *row.Call, n int, t *lua.LTable, more ...string) (string, session.Field) {
	o := c.OptionsOf(n, t)
	o.Allow(append(append([]string(nil), placeKeys...), more...))
	o.Need("bit_offset", "bit_width")
	at := o.Str("at", "start")
	base, ok := bases[at]
	if !ok {
		o.Wrong("at", "'%s' is neither start nor payload", at)
	}
	f := session.Field{Base: base, BitOffset: uint32(o.Whole("bit_offset", 0, 0, 1<<20)),
		BitWidth: uint16(o.Whole("bit_width", 0, 1, 64))}
	switch e := o.Str("endianness", "big"); e {
	case "big":
	case "little":
		f.Flags = session.FieldLE
	default:
		o.Wrong("endianness", "'%s' is neither big nor little", e)
	}
	return fmt.Sprintf("%s bits %d:%d", at, f.BitOffset, f.BitWidth), f
}

// FieldArg reads argument n: the name of a standard field or of a field of the format (may be nil), or a place.
func FieldArg(c *row.Call, n int, in *Format) (string, session.Field) {
	if t, ok := c.Arg(n).(*lua.LTable); ok {
		return Placed(c, n, t)
	}
	name := c.Str(n, "field name, or table with its place")
	f, err := in.Find(name)
	if err != nil {
		c.ArgError(n, "%v", err)
	}
	return name, f
}

// Entry is one field of a table of fields, with its value or options.
type Entry struct {
	Name  string
	Field session.Field
	Place *session.Place // of a field at a varying offset; replaces f
	row   *format.Field  // the format's description of the field
	low   *session.Field // lower half of a 128-bit field, whose upper half is f
	item  bool           // list item, whose offset depends on the packet
	Value lua.LValue
}

// Raw converts a value for the field.
func (e *Entry) Raw(v lua.LValue) (uint64, error) {
	if e.row != nil {
		return rawNumber(v, e.row.Row)
	}
	return fieldValue(e.Name, v, e.Field)
}

// Entries reads {name = value, ..., {place..., ...}, ...} with standard names or names of the format (may be nil): named fields sorted by
// name, then the list. Keys in skip are not fields.
func Entries(c *row.Call, n int, t *lua.LTable, in *Format, skip string, more ...string) []Entry {
	var room [4]string // handlers usually change one or two fields per burst
	names := room[:0]
	t.ForEach(func(k, _ lua.LValue) {
		switch k := k.(type) {
		case lua.LString:
			if string(k) != skip {
				names = append(names, string(k))
			}
		case lua.LNumber:
		default:
			c.ArgError(n, "field names expected as keys, got %s", row.Describe(k))
		}
	})
	slices.Sort(names)
	list := make([]Entry, 0, len(names)+t.Len())
	for _, name := range names {
		e, wide, err := wideEntry(name, t.RawGetString(name), in)
		if wide && err == nil {
			list = append(list, e)
			continue
		}
		if wide {
			c.ArgError(n, "%v", err)
		}
		if in.Moves(name) {
			d, _ := in.Derived(name)
			if e.item = d.Find != nil; e.item {
				e.Field = session.Field{Base: session.BasePayload, BitWidth: uint16(d.Find.ValueBits)}
			} else {
				e.Place, err = Cached(&in.spots, name, in.Fields(), session.CompilePlace)
			}
		} else {
			e.Field, err = in.Find(name)
		}
		if err != nil {
			c.ArgError(n, "%v", err)
		}
		if in != nil && in.Declared != nil {
			e.row = in.Declared.Named(name)
		}
		if e.Place != nil {
			e.Field = e.Place.Field
		}
		list = append(list, e)
	}
	for i := 1; i <= t.Len(); i++ {
		place, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok {
			c.ArgError(n, "element %d: a table with a field's place expected, got %s", i, row.Describe(t.RawGetInt(i)))
		}
		name, f := Placed(c, n, place, more...)
		list = append(list, Entry{Name: name, Field: f, Value: place})
	}
	return list
}

// ReadPlaces reads {name = {place...}, ...}; what names the owner in errors.
func ReadPlaces(c *row.Call, n int, what string, t *lua.LTable) Places {
	own := Places{}
	t.ForEach(func(k, v lua.LValue) {
		place, isTable := v.(*lua.LTable)
		if name, isText := k.(lua.LString); isText && isTable {
			_, own[string(name)] = Placed(c, n, place)
			return
		}
		c.ArgError(n, "%s: %s = %s: a name and a table with the field's place expected", what, k, row.Describe(v))
	})
	return own
}
