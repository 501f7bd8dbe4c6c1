package bindings

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

var formatType = &typeDef{
	name: "format",
	self: "f",
	doc: `a format
		The header of an application's packets, declared once: 'daqiri.format' makes it of a table, or finds one of the library by its name. Its names are taken
		wherever fields are: in 'b:column("seq", f)', 'b:select', 'b:count', 'b:set', and with the option 'format' in 's:filter', 's:rewrite', 's:reorder', 's:convert' and
		'q:template'. Where a format is taken, so is its name, '"chips"'. Fields that every packet has are known beside its own, and so are 'header_bytes',
		'payload_bytes' and names of values, 'packet_type.context'.

		Texts and columns have numbers as they stand in the packet; 'b:show' and dissectors show them with scale, unit and names. A packet that is of another
		format, for a constant differs, or that is too short lacks the fields. A condition with one is false, and in a rule the packet belongs nowhere
		('bad_place').

		's:reorder' and 's:convert' with a format take the payload from behind its header, as long as that is in each packet, and as much of it as the format
		specifies. 'at' or 'payload_byte_offset' override that. How a table declares one: [formats](../formats.md).`,
	fields: []field{
		{"fields", `-> string[]
			The names of the fields, in order.
			> for _, name in ipairs(f.fields) do print(name) end`},
		{"header_bytes", `-> integer | nil, bytes
			How long the header in front of the data is; nil where it depends on the packet, or of places.
			> print(f.header_bytes)`},
		{"name", `-> string
			The format's name; 'of fields' where it has none.
			> print(f.name)`},
		{"sequence", `-> string | nil
			The field that counts packets: of the stream, or of each value of the fields that the declaration names as 'per'.
			> print(f.sequence)`},
		{"title", `-> string
			What the packets are, in words.
			> print(f.title)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		f := self.(*luaformat.Format)
		switch key {
		case lua.LString("name"):
			return lua.LString(f.Name)
		case lua.LString("fields"):
			return value.List(rt.root, f.Names())
		case lua.LString("title"):
			if f.Declared != nil {
				return lua.LString(f.Declared.Spec.Title)
			}
			return lua.LString("")
		case lua.LString("sequence"):
			if f.Declared != nil && f.Declared.Spec.Sequence != "" {
				return lua.LString(f.Declared.Spec.Sequence)
			}
			return lua.LNil
		case lua.LString("header_bytes"):
			if f.Declared == nil || f.Declared.Moves() {
				return lua.LNil
			}
			n, _ := f.Declared.Fixed()
			return lua.LNumber(n)
		}
		return nil
	},
	methods: []entry{
		{"decode", formatDecode, `- packet packet | string: a packet, or the bytes from the header's start on
			-> table | failure: values by field; those that the packet lacks are absent, and a list is a table of tables; a signed number beyond 2^53 is a text
			Reads one packet; nil, '"INVALID_PARAMETER"', text where it is of another format.
			> local packet = daqiri.format("simple"):decode("\0\0\0\0\0\0\0\7rest")
			> print(packet.seq)    -- 7`},
		{"dissector", formatDissector, `-> string: Lua for Wireshark
			A dissector for Wireshark and tshark ('tshark -X lua_script:x.lua'), as 'daqiri-run dissector NAME' prints it.
			> print(#f:dissector())`},
		{"encode", formatEncode, `- values table<string, any>: by field; 'payload' is what follows the header
			-> string
			Makes the bytes of one packet. A field that is not given has the value of the format, else 0. A value that does not fit raises.
			> local bytes = daqiri.format("simple"):encode{ seq = 7, payload = "rest" }
			> print(#bytes)    -- 12`},
		{"page", formatPage, `-> string: Markdown
			A page that describes the format: its fields with their places, widths, units and values.
			> print(daqiri.format("chips"):page())`},
		{"vectors", formatVectors, `. n integer = 8: how many, 1 to 100000
			. seed integer = 1: other seeds give other packets
			-> table[]: '{bytes, fields}'
			Packets with random values, for tests of other programs that know the format.
			> for _, v in ipairs(daqiri.format("chips"):vectors{ n = 2 }) do print(daqiri.hex(v.bytes), v.fields.seq) end`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		f, _ := row.Userdata[*luaformat.Format](c.L.Get(1))
		return c.Push(lua.LString("format " + f.Name))
	}}},
}

// moduleFormat implements daqiri.format(name | {field...} | {field = place, ...}, {items}).
func moduleFormat(c *call) int {
	o := c.options(2)
	f, err := c.formatOf(1)
	var declErr *format.Error
	if errors.As(err, &declErr) && declErr.Line > 0 {
		c.L.Error(lua.LString(err.Error()), 0) // contains its position
	}
	c.Check(err)
	if o.Has("items") {
		f = o.withItems(f)
	}
	return c.Push(c.rt.newObject(f))
}

// formatOf returns the format that argument n names or declares.
func (c *call) formatOf(n int) (*luaformat.Format, error) {
	t, ok := c.Arg(n).(*lua.LTable)
	if !ok {
		return c.formatText(n, c.Str(n, "format's name, or table that declares one")), nil
	}
	if luaformat.IsPlaces(t) {
		f := &luaformat.Format{Name: "of fields", Places: luaformat.ReadPlaces(&c.Call, n, "format", t)}
		for _, name := range f.Places.Names() {
			if _, known := session.FieldNamed(name); known {
				c.ArgError(n, "every packet has a field '%s': choose another name", name)
			}
		}
		return f, nil
	}
	made, err := luaformat.DeclareHere(&c.Call, t)
	if err != nil {
		return nil, err
	}
	return c.rt.keepFormat(made)
}

// keepFormat registers a declared format under its name, which must be unused.
func (rt *Runtime) keepFormat(made *format.Format) (*luaformat.Format, error) {
	name := made.Spec.Name
	if name == "" {
		return &luaformat.Format{Name: "of fields", Declared: made}, nil
	}
	taken := func(by string) error {
		return &format.Error{File: made.Spec.File, Format: name, Line: made.Spec.Line, Msg: "the name is taken by " + by}
	}
	if had := rt.formats[name]; had != nil && had.Declared.Spec.File != "" && had.Declared.Spec.Line > 0 {
		return nil, taken(fmt.Sprintf("the format that %s:%d declares", had.Declared.Spec.File, had.Declared.Spec.Line))
	} else if had != nil {
		return nil, taken("another format")
	}
	if slices.Contains(luaformat.LibraryNames(rt.Shared.Library), name) {
		return nil, taken("a format of the library")
	}
	f := &luaformat.Format{Name: name, Declared: made}
	rt.rememberFormat(f)
	return f, nil
}

func (rt *Runtime) rememberFormat(f *luaformat.Format) {
	if rt.formats == nil {
		rt.formats = map[string]*luaformat.Format{}
	}
	rt.formats[f.Name] = f
}

// withItems returns the format with names for items of its list.
func (o *options) withItems(f *luaformat.Format) *luaformat.Format {
	if f.Declared == nil || !f.Declared.HasItems() {
		o.Wrong("items", "%s has no list of items", f.Name)
	}
	items, err := luaformat.NamedNumbers(o.Get("items"))
	if err != nil {
		o.Wrong("items", "%v", err)
	}
	made, err := f.Declared.WithItems(items, luaformat.Options)
	if err != nil {
		o.Wrong("items", "%v", err)
	}
	return &luaformat.Format{Name: f.Name, Declared: made}
}

// formatText returns the format of that name.
func (c *call) formatText(n int, name string) *luaformat.Format {
	if f := c.rt.formats[name]; f != nil {
		return f
	}
	made, err := c.rt.Shared.libraryFormat(name)
	c.Check(err)
	if made == nil {
		known := append(luaformat.LibraryNames(c.rt.Shared.Library), slices.Sorted(maps.Keys(c.rt.formats))...)
		c.ArgError(n, "%s", row.Unknown("format", name, known))
	}
	return &luaformat.Format{Name: name, Declared: made}
}

// libraryFormat returns a format of the process's library, loaded once.
func (p *Process) libraryFormat(name string) (*format.Format, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.formats[name]; f != nil {
		return f, nil
	}
	f, err := luaformat.FromLibrary(p.Library, name)
	if err == nil && f != nil {
		if p.formats == nil {
			p.formats = map[string]*format.Format{}
		}
		p.formats[name] = f
	}
	return f, err
}

// formatArg reads argument n, a format or the name of one; nil if absent.
func (c *call) formatArg(n int) *luaformat.Format {
	switch v := c.Arg(n).(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		return c.usedFormat(n, string(v))
	}
	f, ok := row.Userdata[*luaformat.Format](c.Arg(n))
	if !ok {
		c.Wanted(n, "format")
	}
	return f
}

// usedFormat is formatText with a cache, so that compiled conditions are reused.
func (c *call) usedFormat(n int, name string) *luaformat.Format {
	f := c.formatText(n, name)
	if c.rt.used == nil {
		c.rt.used = map[string]*luaformat.Format{}
	}
	if had := c.rt.used[name]; had != nil && had.Declared == f.Declared {
		return had
	}
	c.rt.used[name] = f
	return f
}

// format reads the option "format"; nil if absent.
func (o *options) format() *luaformat.Format {
	switch v := o.Get("format").(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		return o.c.formatText(o.Arg, string(v))
	default:
		f, ok := row.Userdata[*luaformat.Format](v)
		if !ok {
			o.Wrong("format", "a format, or the name of one, expected, got %s", row.Describe(v))
		}
		return f
	}
}

// selector compiles a condition once per format, or once per state without a format.
func (c *call) selector(n int, f *luaformat.Format) *session.Selector {
	known := &c.rt.selectors
	if f != nil {
		known = &f.Selectors
	}
	sel, err := luaformat.Cached(known, c.Str(n, "condition"), f.Fields(), session.CompileSelector)
	if err != nil {
		c.ArgError(n, "%v", err)
	}
	return sel
}

// selfFormat returns self, a declared format.
func selfFormat(c *call) *format.Format {
	f := receiver[*luaformat.Format](c, "format")
	if f.Declared == nil {
		c.Raise("'%s' is for formats that declare a header, and this one has places alone", c.Name)
	}
	return f.Declared
}

func formatDecode(c *call) int {
	f := selfFormat(c)
	var bytes []byte
	if p, ok := row.Userdata[*packet](c.Arg(1)); ok {
		data := p.data(c.L)
		from, to, ok := session.LayerOf(data, p.of.b.Queue().Layer() == session.LayerFrame, f.Spec.Layer)
		if !ok {
			return c.notSuch("the packet has no " + f.Spec.Layer + " that is whole")
		}
		bytes = data[from:to]
	} else {
		bytes = []byte(c.Str(1, "packet, or string of bytes"))
	}
	read, err := f.Decode(bytes)
	if err != nil {
		return c.notSuch(err.Error())
	}
	return c.Push(c.rt.readTable(read))
}

// notSuch returns nil, status, text for a packet that does not match the format.
func (c *call) notSuch(why string) int {
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString("INVALID_PARAMETER"))
	c.L.Push(lua.LString(why))
	return 3
}

func (rt *Runtime) readTable(read []format.Read) *lua.LTable {
	t := rt.root.NewTable()
	for _, r := range read {
		t.RawSetString(r.Name, luaformat.ReadValue(rt.root, r, rt.integer))
	}
	return t
}

func formatEncode(c *call) int {
	f := selfFormat(c)
	given, payload, err := luaformat.GivenValues(f, c.Table(1, "table of values"))
	var bytes []byte
	if err == nil {
		bytes, err = f.Encode(given, payload)
	}
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(lua.LString(bytes))
}

func formatDissector(c *call) int { return c.Push(lua.LString(selfFormat(c).Dissector())) }

func formatPage(c *call) int { return c.Push(lua.LString(selfFormat(c).Page())) }

func formatVectors(c *call) int {
	f := selfFormat(c)
	o := c.options(1)
	random := rand.New(rand.NewPCG(uint64(o.Whole("seed", 1, 0, row.MaxInt)), 16))
	list := c.L.NewTable()
	for range o.Whole("n", 8, 1, 100000) {
		bytes, read, err := f.Random(random)
		c.Check(err)
		v := c.L.NewTable()
		v.RawSetString("bytes", lua.LString(bytes))
		v.RawSetString("fields", c.rt.readTable(read))
		list.Append(v)
	}
	return c.Push(list)
}
