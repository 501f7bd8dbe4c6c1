package bindings

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// template is a packet to be sent repeatedly. Hot: hand-written metatable.
type template struct {
	t         *session.Template
	length    int
	broadcast bool // frames are broadcast by default, not on request
}

func (*template) LuaType() string { return "template" }

var templateType = &typeDef{
	name: "template",
	self: "tpl",
	doc: `a template
		A packet to be sent many times, with fields that vary ('q:template').`,
	fields: []field{
		{"length", `-> integer, bytes
			How long the packet is.
			> print(tpl.length)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		if key == lua.LString("length") {
			return lua.LNumber(self.(*template).length)
		}
		return nil
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		t, _ := row.Userdata[*template](c.L.Get(1))
		return c.Push(lua.LString(fmt.Sprintf("template of %d bytes", t.length)))
	}}},
}

// payloadOptions are the template options of a queue without packet headers.
var payloadOptions = []string{"bytes", "format", "payload", "payload_bytes", "vary"}

// queueTemplate implements q:template{...}: for a frame queue it builds the headers; packets of a payload queue have none. bytes gives the whole
// packet as a string.
func queueTemplate(c *call) int {
	q := selfQueue(c, false)
	f := c.templateFormat()
	o := c.options(1, f.Settable()...)
	if q.q.Layer() != "frame" {
		o.Allow(slices.Concat(payloadOptions, f.Settable()))
	}
	data := []byte(o.Str("bytes", ""))
	var at layout
	switch {
	case o.Has("bytes"):
		for _, key := range c.Keys.Names {
			if key != "bytes" && key != "format" && key != "vary" && o.Has(key) {
				o.Wrong(key, "has no effect beside 'bytes', which is the whole packet")
			}
		}
		if q.q.Layer() == session.LayerFrame {
			at = layoutOf(data)
		}
		for _, key := range f.Settable() {
			if o.Has(key) {
				o.Wrong(key, "has no effect beside 'bytes', which is the whole packet")
			}
		}
	case q.q.Layer() == "frame":
		data, at = o.frame(q.q.Interface())
	default:
		data = o.payload()
	}
	if len(data) == 0 {
		o.Raise("the packet is empty: give payload_bytes, payload or bytes")
	}
	if room, _ := q.room(); len(data) > room {
		o.Raise("a packet of %d bytes does not fit into the %d bytes of a buffer of queue %s: see buf_size of its memory region",
			len(data), room, q.q.Name())
	}
	t, err := q.of.s.Template(session.TemplateConfig{Packet: data, Vary: o.vary(data, at), Checksums: q.q.Layer() == "frame",
		Seed: int64(c.rt.Task.ID())})
	c.Check(err)
	return c.Push(c.rt.newObject(&template{t: t, length: len(data), broadcast: o.isBroadcast(data)}))
}

// isBroadcast reports whether a frame is broadcast because eth_dst was not given.
func (o *options) isBroadcast(data []byte) bool {
	if o.Has("bytes") || o.Has("eth_dst") || o.Str("ipv4_dst", "") == "255.255.255.255" {
		return false
	}
	if t, ok := o.Get("vary").(*lua.LTable); ok && t.RawGetString("eth_dst") != lua.LNil {
		return false
	}
	return bytes.HasPrefix(data, []byte("\xff\xff\xff\xff\xff\xff"))
}

// room returns the maximum packet size of the transmit queue, and the number of regions over which a packet is split.
func (q *queue) room() (bytes, regions int) {
	for _, size := range q.q.BufSizes() {
		bytes += size
		regions++
	}
	return bytes, regions
}

// templateFormat returns the format of q:template; nil: none.
func (c *call) templateFormat() *luaformat.Format {
	t, ok := c.Arg(1).(*lua.LTable)
	if !ok {
		return nil
	}
	return newOptions(c, 1, t).format()
}

// formatHeader returns the encoded header for a payload.
func (o *options) formatHeader(f *luaformat.Format, payload string) string {
	if f == nil || f.Declared == nil {
		return payload
	}
	values, any := o.c.L.NewTable(), false
	for _, name := range f.Settable() {
		if o.Has(name) {
			values.RawSetString(name, o.Get(name))
			any = true
		}
	}
	switch layer := f.Declared.Spec.Layer; {
	case layer == "network" && f.Declared.Spec.Ethertype != 0 && !o.Has("ethertype"):
		o.Table.RawSetString("ethertype", lua.LNumber(f.Declared.Spec.Ethertype))
	case layer != "payload" && layer != "network":
		if any {
			o.Wrong("format", "%s is a header in front of the payload: give bytes, of f:encode", f.Name)
		}
		return payload
	}
	given, _, err := luaformat.GivenValues(f.Declared, values)
	if err != nil {
		o.Raise("%v", err)
	}
	room := int(o.Whole("payload_bytes", 0, 0, 1<<24))
	bytes, err := f.Declared.Encode(given, []byte(payload))
	if n, ok := f.Declared.HeaderBytes(bytes); err == nil && ok && room > n+len(payload) { // so that length fields include the padding
		bytes, err = f.Declared.Encode(given, append([]byte(payload), make([]byte, room-n-len(payload))...))
	}
	if err != nil {
		o.Raise("%v", err)
	}
	return string(bytes)
}

// payload returns the payload: the format's header and the given text, zero-padded to payload_bytes.
func (o *options) payload() []byte {
	text := o.formatHeader(o.format(), o.Str("payload", ""))
	n := int(o.Whole("payload_bytes", int64(len(text)), 0, 1<<24))
	if n < len(text) {
		o.Wrong("payload_bytes", "%d is less than the %d bytes that the payload has", n, len(text))
	}
	return append([]byte(text), make([]byte, n-len(text))...)
}

// vary reads {field = step | "toggle" | {start, step, max, random, every, toggle}, {place..., the same}}. The default start is the packet's
// value.
func (o *options) vary(data []byte, at layout) []session.Vary {
	if !o.Has("vary") {
		return nil
	}
	t, ok := o.Get("vary").(*lua.LTable)
	if !ok {
		o.Wrong("vary", "a table of fields expected, got %s", row.Describe(o.Get("vary")))
	}
	var list []session.Vary
	f := o.format()
	for _, e := range luaformat.Entries(o.Call, o.Arg, t, f, "", varyKeys...) {
		if err := e.TooWide(); err != nil {
			o.Wrong("vary", "%s: %v", e.Name, err)
		}
		if f.Moves(e.Name) {
			bit, ok := f.Declared.Place(data[min(at.of(e.Field.Base), len(data)):], e.Name)
			if !ok {
				o.Wrong("vary", "%s: this packet has no such field", e.Name)
			}
			e.Field.BitOffset = uint32(bit)
		}
		list = append(list, o.variation(e, at.value(data, e.Field)))
	}
	return list
}

var varyKeys = []string{"every", "max", "random", "start", "step", "toggle"}

func (o *options) variation(e luaformat.Entry, start uint64) session.Vary {
	top := uint64(math.MaxUint64)
	if e.Field.BitWidth < 64 {
		top = 1<<e.Field.BitWidth - 1
	}
	out := session.Vary{Field: e.Field, Start: start, Step: 1}
	t, ok := e.Value.(*lua.LTable)
	if e.Value == lua.LString("toggle") {
		out.Toggle, out.Step = true, top
		return out
	}
	if !ok {
		step, err := row.Unsigned(e.Value, 64)
		if err != nil {
			o.Wrong("vary", "%s: %v", e.Name, err)
		}
		out.Step = step
		return out
	}
	in := newOptions(o.c, o.Arg, t)
	if !in.Has("bit_width") {
		in.Allow(varyKeys)
	}
	for _, v := range []struct {
		key string
		to  *uint64
	}{{"start", &out.Start}, {"step", &out.Step}, {"max", &out.Max}} {
		if !in.Has(v.key) {
			continue
		}
		n, err := e.Raw(in.Get(v.key))
		if err != nil {
			o.Wrong("vary", "%s.%s: %v", e.Name, v.key, err)
		}
		*v.to = n & top
	}
	out.Every = uint64(in.Whole("every", 1, 1, row.MaxInt))
	if in.Has("toggle") {
		bits, err := row.Unsigned(in.Get("toggle"), int(e.Field.BitWidth))
		if err != nil {
			o.Wrong("vary", "%s.toggle: %v", e.Name, err)
		}
		for _, key := range []string{"max", "random", "step"} {
			if in.Has(key) {
				o.Wrong("vary", "%s.%s: it has no effect beside 'toggle'", e.Name, key)
			}
		}
		out.Toggle, out.Step = true, bits
	}
	if out.Random = in.Bool("random", false); out.Random && !in.Has("start") {
		out.Start = 0
	}
	if in.Has("max") && out.Max == 0 {
		out.Step = 0 // 0 is the only possible value
	}
	if in.Has("max") && out.Start > out.Max {
		o.Wrong("vary", "%s: start %d is above max %d", e.Name, out.Start, out.Max)
	}
	return out
}
