package bindings

import (
	"bytes"
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// template is a packet to send many times. Hot: hand-written.
type template struct {
	t         *session.Template
	length    int
	everybody bool // its frames are broadcast, which nobody asked for
}

func (*template) luaType() string { return "template" }

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
		t, _ := userdata[*template](c.L.Get(1))
		return c.push(lua.LString(fmt.Sprintf("template of %d bytes", t.length)))
	}}},
}

// payloadOptions are those of a queue whose packets have no headers.
var payloadOptions = []string{"bytes", "format", "payload", "payload_bytes", "vary"}

// queueTemplate is q:template{...}: on a frame queue it builds the headers, on a payload queue there
// are none. bytes gives the whole packet as a string.
func queueTemplate(c *call) int {
	q := selfQueue(c, false)
	o := c.options(1)
	if q.q.Layer() != "frame" {
		o.allow(payloadOptions)
	}
	data := []byte(o.str("bytes", ""))
	var at layout
	switch {
	case o.has("bytes"):
		for _, key := range c.keys.names {
			if key != "bytes" && key != "format" && key != "vary" && o.has(key) {
				o.wrong(key, "has no effect beside 'bytes', which is the whole packet")
			}
		}
	case q.q.Layer() == "frame":
		data, at = o.frame(q.q.Interface())
	default:
		data = o.payload()
	}
	if len(data) == 0 {
		o.fault("the packet is empty: give payload_bytes, payload or bytes")
	}
	if room, _ := q.room(); len(data) > room {
		o.fault("a packet of %d bytes does not fit into the %d bytes of a buffer of queue %s: see buf_size of its memory region",
			len(data), room, q.q.Name())
	}
	t, err := q.of.s.Template(session.TemplateConfig{Packet: data, Vary: o.vary(data, at), Checksums: q.q.Layer() == "frame",
		Seed: int64(c.rt.Task.ID())})
	c.check(err)
	return c.push(c.rt.newObject(&template{t: t, length: len(data), everybody: o.toEverybody(data)}))
}

// toEverybody says whether a frame goes to everybody because no eth_dst was said.
func (o *options) toEverybody(data []byte) bool {
	if o.has("bytes") || o.has("eth_dst") || o.str("ipv4_dst", "") == "255.255.255.255" {
		return false
	}
	if t, ok := o.get("vary").(*lua.LTable); ok && t.RawGetString("eth_dst") != lua.LNil {
		return false
	}
	return bytes.HasPrefix(data, []byte("\xff\xff\xff\xff\xff\xff"))
}

// room is how many bytes a packet of the transmit queue may have, and over how many regions it is split.
func (q *queue) room() (bytes, regions int) {
	cfg := q.of.s.Config()
	for _, s := range cfg.Interface(q.q.Interface().Name()).TX.Queues {
		if s.ID != q.q.ID() {
			continue
		}
		for _, name := range s.MemoryRegions {
			bytes += cfg.Region(name).BufSize
			regions++
		}
	}
	return bytes, regions
}

// payload is the payload: text, filled up with zeros to payload_bytes.
func (o *options) payload() []byte {
	text := o.str("payload", "")
	n := int(o.whole("payload_bytes", int64(len(text)), 0, 1<<24))
	if n < len(text) {
		o.wrong("payload_bytes", "%d is less than the %d bytes of 'payload'", n, len(text))
	}
	return append([]byte(text), make([]byte, n-len(text))...)
}

// vary reads {field = step | {start, step, max, random}, {place…, start, step, max, random}}. A field
// starts at the value that the packet has.
func (o *options) vary(data []byte, at layout) []session.Vary {
	if !o.has("vary") {
		return nil
	}
	t, ok := o.get("vary").(*lua.LTable)
	if !ok {
		o.wrong("vary", "a table of fields expected, got %s", describe(o.get("vary")))
	}
	var list []session.Vary
	for _, e := range o.c.fieldEntries(o.n, t, o.format(), "", varyKeys...) {
		if e.f.Base == session.BaseSpead {
			o.wrong("vary", "%s: where an item is depends on the packet: give its place, {at = \"payload\", bit_offset, bit_width}", e.name)
		}
		list = append(list, o.variation(e, at.value(data, e.f)))
	}
	return list
}

var varyKeys = []string{"max", "random", "start", "step"}

func (o *options) variation(e fieldEntry, start uint64) session.Vary {
	top := uint64(math.MaxUint64)
	if e.f.BitWidth < 64 {
		top = 1<<e.f.BitWidth - 1
	}
	out := session.Vary{Field: e.f, Start: start, Step: 1, Max: top}
	t, ok := e.value.(*lua.LTable)
	if !ok {
		step, err := unsigned(e.value, 64)
		if err != nil {
			o.wrong("vary", "%s: %v", e.name, err)
		}
		out.Step = step
		return out
	}
	in := &options{c: o.c, n: o.n, t: t}
	if !in.has("bit_width") {
		in.allow(varyKeys)
	}
	for _, v := range []struct {
		key string
		to  *uint64
	}{{"start", &out.Start}, {"step", &out.Step}, {"max", &out.Max}} {
		if !in.has(v.key) {
			continue
		}
		n, err := fieldValue(e.name, in.get(v.key), e.f)
		if err != nil {
			o.wrong("vary", "%s.%s: %v", e.name, v.key, err)
		}
		*v.to = n
	}
	if out.Random = in.bool("random", false); out.Random && !in.has("start") {
		out.Start = 0
	}
	if out.Start > out.Max {
		o.wrong("vary", "%s: start %d is above max %d", e.name, out.Start, out.Max)
	}
	return out
}
