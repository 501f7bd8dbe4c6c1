package bindings

import (
	"fmt"
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// format is names for fields of an application's packets, for texts, columns and templates. Cold, but what it compiled.
type format struct {
	name      string
	fields    ownFields
	header    int  // bytes in front of the data, in the payload; -1: not known
	items     bool // SPEAD-64-48: the header is as long as it says
	selectors map[string]*session.Selector
	numbers   map[string]*session.Number
}

func (*format) luaType() string { return "format" }

var formatType = &typeDef{
	name: "format",
	self: "f",
	doc: `a format
		Names for fields of an application's packets, for the 'format' of 's:reorder', 's:filter', 's:convert' and 'q:template', and behind the text in
		'b:column("seq", format)', 'b:select', 'b:count' and 'b:set'. Where a format is taken, so is its name, '"chips"'. Fields that every packet has are
		known beside its own. 'daqiri.format' makes them.

		Places are in the innermost payload. By name there are 'simple' (a counter 'seq' of 64 bits), 'chips', 'snap2', 'ata-snap', 'vrt' (VITA 49 data with stream
		id; 'vrt-class-id' where there is a class id, too), 'ecpri' and 'spead-64-48'.

		'spead-64-48' has 'heap_cnt', 'heap_len', 'payload_offset', 'heap_payload_len' and the items that are named by their ids. The order of items is the
		sender's choice and may change, so each is looked for in each packet; only values in the item itself (immediate ones) are found. A packet that lacks
		an item fails a condition with it, and belongs nowhere in a rule ('bad_place'). Items can't be changed.

		's:reorder' and 's:convert' with a format take the payload from behind its header, as long as that is in each packet; 'at' or 'payload_byte_offset' say
		otherwise.`,
	fields: []field{
		{"fields", `-> string[]
			The names of the fields, in order.
			> for _, name in ipairs(f.fields) do print(name) end`},
		{"header_bytes", `-> integer | nil, bytes
			How long the header in front of the data is; nil where it depends on the packet, or of a table.
			> print(f.header_bytes)`},
		{"name", `-> string
			The format's name; 'of fields' of a table.
			> print(f.name)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		f := self.(*format)
		switch key {
		case lua.LString("name"):
			return lua.LString(f.name)
		case lua.LString("fields"):
			return rt.list(f.fields.Names())
		case lua.LString("header_bytes"):
			if f.items || f.header < 0 {
				return lua.LNil
			}
			return lua.LNumber(f.header)
		}
		return nil
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		f, _ := userdata[*format](c.L.Get(1))
		return c.push(lua.LString("format " + f.name))
	}}},
}

const spead = "spead-64-48"

// speadItems are those that every packet has.
var speadItems = map[string]uint32{"heap_cnt": 1, "heap_len": 2, "payload_offset": 3, "heap_payload_len": 4}

// formats are known by name: the header's bytes, and each field's bits in the payload: offset, width.
var formats = map[string]struct {
	header int
	fields map[string][2]int
}{
	"simple": {8, map[string][2]int{"seq": {0, 64}}},
	"chips": {16, map[string][2]int{"roach": {0, 8}, "gbe": {8, 8}, "nchan": {16, 8}, "nsubband": {24, 8}, "subband": {32, 8},
		"nroach": {40, 8}, "chan0": {48, 16}, "seq": {64, 64}}},
	"snap2": {32, map[string][2]int{"seq": {0, 64}, "sync_time": {64, 32}, "npol": {96, 16}, "npol_tot": {112, 16}, "nchan": {128, 16},
		"nchan_tot": {144, 16}, "chan_block_id": {160, 32}, "chan0": {192, 32}, "pol0": {224, 32}}},
	"ata-snap": {16, map[string][2]int{"snap_version": {0, 8}, "snap_type": {8, 8}, "n_chans": {16, 16}, "chan": {32, 16}, "feng_id": {48, 16},
		"timestamp": {64, 64}}},
	"vrt":          {20, vrt(64, nil)},
	"vrt-class-id": {28, vrt(128, map[string][2]int{"class_oui": {72, 24}, "info_class": {96, 16}, "packet_class": {112, 16}})},
	"ecpri": {8, map[string][2]int{"ecpri_revision": {0, 4}, "ecpri_concatenated": {7, 1}, "ecpri_type": {8, 8}, "ecpri_size": {16, 16},
		"pc_id": {32, 16}, "seq_id": {48, 16}}},
}

// vrt is a data packet of VITA 49 with a stream id, whose times begin at that bit.
func vrt(times int, more map[string][2]int) map[string][2]int {
	fields := map[string][2]int{"packet_type": {0, 4}, "has_class_id": {4, 1}, "has_trailer": {5, 1}, "tsi": {8, 2}, "tsf": {10, 2},
		"packet_count": {12, 4}, "packet_words": {16, 16}, "stream_id": {32, 32}, "integer_time": {times, 32}, "fractional_time": {times + 32, 64}}
	maps.Copy(fields, more)
	return fields
}

// formatNamed is one of formats, or SPEAD with the items that every packet has; nil: there is none of that name.
func formatNamed(name string) *format {
	f := &format{name: name, fields: ownFields{}}
	if name == spead {
		f.items = true
		for item, id := range speadItems {
			f.fields[item] = speadItem(id)
		}
		return f
	}
	known, ok := formats[name]
	if !ok {
		return nil
	}
	f.header = known.header
	for field, bits := range known.fields {
		f.fields[field] = session.Field{Base: session.BasePayload, BitOffset: uint32(bits[0]), BitWidth: uint16(bits[1])}
	}
	return f
}

func speadItem(id uint32) session.Field {
	return session.Field{Base: session.BaseSpead, BitOffset: id, BitWidth: 48}
}

// moduleFormat is daqiri.format(name | {field = place, …}, {items}).
func moduleFormat(c *call) int {
	o := c.options(2)
	if t, ok := c.arg(1).(*lua.LTable); ok {
		if o.has("items") {
			o.wrong("items", "only %s has items; a table has the fields' places", spead)
		}
		f := &format{name: "of fields", header: -1, fields: c.fieldPlaces(1, "format", t)}
		c.newNames(1, f.fields)
		return c.push(c.rt.newObject(f))
	}
	f := c.formatText(1, c.str(1, "format's name, or table of its fields"))
	items, ok := o.get("items").(*lua.LTable)
	switch {
	case o.has("items") && !ok:
		o.wrong("items", "a table of ids by name expected, got %s", describe(o.get("items")))
	case o.has("items") && !f.items:
		o.wrong("items", "only %s has items", spead)
	case !ok:
		return c.push(c.rt.newObject(f))
	}
	items.ForEach(func(k, v lua.LValue) {
		id, err := wholeNumber(v, 1, 0x7fff)
		name, text := k.(lua.LString)
		if err != nil || !text {
			o.wrong("items", "%s = %s: a name and an id from 1 to 0x7fff expected", k, describe(v))
		}
		f.fields[string(name)] = speadItem(uint32(id))
	})
	c.newNames(2, f.fields)
	return c.push(c.rt.newObject(f))
}

// newNames refuses names that every packet's fields have, as texts would be read differently with and without the format.
func (c *call) newNames(n int, fields ownFields) {
	for _, name := range fields.Names() {
		if _, known := session.FieldNamed(name); known {
			c.argError(n, "every packet has a field '%s': choose another name", name)
		}
	}
}

func (c *call) formatText(n int, name string) *format {
	f := formatNamed(name)
	if f == nil {
		c.argError(n, "%s", unknown("format", name, append(slices.Sorted(maps.Keys(formats)), spead)))
	}
	return f
}

// formatArg reads argument n, a format or a name of one; nil where it is absent.
func (c *call) formatArg(n int) *format {
	switch v := c.arg(n).(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		return c.formatText(n, string(v))
	}
	f, ok := userdata[*format](c.arg(n))
	if !ok {
		c.wanted(n, "format")
	}
	return f
}

// format reads the option of that name; nil where it is absent.
func (o *options) format() *format {
	switch v := o.get("format").(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		return o.c.formatText(o.n, string(v))
	default:
		f, ok := userdata[*format](v)
		if !ok {
			o.wrong("format", "a format, or the name of one, expected, got %s", describe(v))
		}
		return f
	}
}

// with is the format's fields, if any, below these.
func (f *format) with(own ownFields) ownFields {
	if f == nil {
		return own
	}
	all := maps.Clone(f.fields)
	maps.Copy(all, own)
	return all
}

// field finds a field of the format, or one that every packet has.
func (f *format) field(name string) (session.Field, error) {
	if f != nil {
		if x, ok := f.fields[name]; ok {
			return x, nil
		}
		if _, ok := session.FieldNamed(name); !ok {
			return session.Field{}, fmt.Errorf("%s", unknown("field", name, append(f.fields.Names(), session.FieldNames()...)))
		}
	}
	return namedField(name)
}

// selector compiles a condition once for each format, and without one for each state.
func (c *call) selector(n int, f *format) *session.Selector {
	known, fields := &c.rt.selectors, session.Fields(nil)
	if f != nil {
		known, fields = &f.selectors, f.fields
	}
	sel, err := remembered(known, c.str(n, "condition"), fields, session.CompileSelector)
	if err != nil {
		c.argError(n, "%v", err)
	}
	return sel
}
