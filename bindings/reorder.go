package bindings

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/samples"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// sessionReorder implements s:reorder{...}: a stage that assembles packets into aggregates.
func sessionReorder(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region")
	f := opts.format()
	r := session.ReorderOptions{
		MemoryRegion:   opts.Str("memory_region", ""),
		Offset:         opts.Str("offset", ""),
		Extra:          opts.Str("extra", ""),
		Fields:         f.With(opts.ownFields("fields")),
		SlotBytes:      int(opts.Size("slot_bytes")),
		PacketBytes:    int(opts.Size("packet_bytes")),
		Segment:        int(opts.Whole("segment", 1, 1, 4)) - 1,
		Data:           opts.dataTypes("data_types", f),
		FlowIDs:        opts.flowIDs("flow_ids"),
		Window:         int(opts.Whole("window", 0, 1, int64(session.MaxWindow))),
		TimeoutNS:      opts.Whole("timeout_us", 0, 0, 1<<40) * 1000,
		Fill:           opts.fill("fill", f),
		DropIncomplete: opts.choice("missing_action", "passthrough", "drop") == "drop",
		WaitForOthers:  opts.choice("hand_over", "eager", "wait") == "wait",
		Policy:         opts.Policy(session.Drop),
	}
	opts.placeRule(&r, f)
	at := opts.payloadPlace(f, r.Segment)
	r.PayloadByteOffset, r.AtPayload, r.Header, r.Length = at.offset, at.payload, at.header, at.length
	opts.source(&r)
	st, err := o.s.Reorder(opts.Str("name", ""), r)
	return c.pushStage(st, o, err)
}

// placeRule reads how packets are placed: by a sequence number, with or without a batch number, or by expressions.
func (o *options) placeRule(r *session.ReorderOptions, f *luaformat.Format) {
	if f != nil && f.Declared != nil && f.Declared.Spec.Sequence != "" && o.Has("packets_per_batch") && !o.Has("sequence_number") {
		o.numbersStream(f.Declared.Spec)
		o.Table.RawSetString("sequence_number", lua.LString(f.Declared.Spec.Sequence))
	}
	if !o.Has("sequence_number") {
		o.Need("batch", "slot", "slots")
		for _, key := range []string{"batch_number", "packets_per_batch"} {
			if o.Has(key) {
				o.Wrong(key, "it goes with sequence_number; a rule has batch, slot and slots")
			}
		}
		r.Batch, r.Slot = o.Str("batch", ""), o.Str("slot", "")
		r.Slots = int(o.Whole("slots", 0, 1, 1<<31-1))
		r.Wrap = uint64(o.Whole("wrap", 0, spec.LeastBatches, row.MaxInt))
		return
	}
	for _, key := range []string{"batch", "slot", "slots", "wrap"} {
		if o.Has(key) {
			o.Wrong(key, "sequence_number has the same meaning: keep one of them")
		}
	}
	var seq, batch session.Field
	seq, r.SequenceName = o.placed("sequence_number", f)
	r.Sequence = &seq
	if !o.Has("batch_number") {
		o.Need("packets_per_batch")
		r.Slots = int(o.Whole("packets_per_batch", 0, 1, 1<<31-1))
		return
	}
	batch, r.BatchName = o.placed("batch_number", f)
	r.BatchNumber = &batch
	slots := int64(0)
	if less := int(seq.BitWidth) - int(batch.BitWidth); less >= 0 && less < 31 {
		slots = 1 << less
	} else if !o.Has("packets_per_batch") {
		o.Wrong("batch_number", "%d bits are not some bits less than the %d of sequence_number: give packets_per_batch",
			batch.BitWidth, seq.BitWidth)
	}
	r.Slots = int(o.Whole("packets_per_batch", slots, 1, 1<<31-1))
	if bits.OnesCount(uint(r.Slots)) != 1 {
		o.Wrong("packets_per_batch", "with a batch_number it is a power of 2: the slot is the low bits of the sequence number")
	}
}

// numbersStream raises if a format's sequence number restarts within the stream.
func (o *options) numbersStream(s format.Spec) {
	if len(s.Per) == 0 {
		return
	}
	hint := "texts, batch, slot and slots, over these fields"
	if s.Place != "" {
		hint = s.Place
	}
	o.Wrong("packets_per_batch", "'%s' begins again for each '%s', so it does not number the stream: instead of packets_per_batch give, with your numbers, %s",
		s.Sequence, strings.Join(s.Per, "' and '"), hint)
}

// source reads the expression that distinguishes sources, whose values are formatted like a column's, or "peer".
func (o *options) source(r *session.ReorderOptions) {
	r.Source = o.Str("source", "")
	number, err := session.CompileNumber(r.Source, r.Fields)
	if err == nil { // the stage reports the error
		r.SourceText = func(v uint64) string { return luaformat.FieldText(r.Source, v, number.Signed) }
	}
}

// dataTypes reads the element conversion: {input_type, output_type, endianness, scale, offset, levels}. Without input_type the format f declares the
// samples.
func (o *options) dataTypes(key string, f *luaformat.Format) *session.DataTypes {
	t, ok := o.Get(key).(*lua.LTable)
	if !ok && o.Has(key) {
		o.Wrong(key, "a table expected, got %s", row.Describe(o.Get(key)))
	}
	if !ok {
		return nil
	}
	d := newOptions(o.c, o.Arg, t)
	d.Allow([]string{"endianness", "input_type", "levels", "offset", "output_type", "scale"})
	d.Need("output_type")
	types := &session.DataTypes{Output: d.Str("output_type", ""), Network: d.choice("endianness", "host", "network") == "network", Scale: 1}
	if !d.Has("input_type") && f != nil && f.Declared != nil && f.Declared.Spec.Samples != nil {
		if err := declaredTypes(types, f.Declared); err != nil {
			o.Wrong(key, "%v", err)
		}
	} else {
		d.Need("input_type")
		types.Input = d.Str("input_type", "")
	}
	d.values(types)
	if err := types.Check(); err != nil {
		o.Wrong(key, "%v", err)
	}
	if d.Has("endianness") && types.IsSample() {
		d.Wrong("endianness", "the name %q includes the byte order", types.Input)
	}
	return types
}

// declaredTypes sets the input of a conversion to the samples that a format declares. Its error is that they depend on the packet.
func declaredTypes(types *session.DataTypes, f *format.Format) (err error) {
	declared := f.Spec.Samples
	if why := declared.Varies(); why != "" {
		return fmt.Errorf("format %s: %s: give input_type", f.Spec.Name, why)
	}
	types.Input, types.FullScale = declared.Type, declared.FullScale
	if types.Scale, types.Offset, err = samples.Constants(f); err != nil {
		return fmt.Errorf("%w: give input_type and scale", err)
	}
	t, err := session.ParseSample(declared.Type)
	types.Levels = declared.LevelsOf(t.Bits())
	return err
}

// values reads the scale, offset and levels that replace those of types.
func (o *options) values(types *session.DataTypes) {
	if o.Get("scale") == lua.LString("full") {
		types.FullScale = true
	} else if o.Has("scale") {
		types.FullScale = false
		if types.Scale = o.Number("scale", 1); types.Scale == 0 {
			o.Wrong("scale", "0 is not a valid scale (expected another number, or \"full\")")
		}
	}
	types.Offset = o.Number("offset", types.Offset)
	if o.Has("levels") {
		types.Levels = o.levels()
	}
}

// levels reads the value of each code: a list, or "vlbi".
func (o *options) levels() (levels []float64) {
	switch v := o.Get("levels").(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		if v == "vlbi" {
			return luaformat.VLBI[1]
		}
	case *lua.LTable:
		for i := 1; i <= v.Len(); i++ {
			n, ok := v.RawGetInt(i).(lua.LNumber)
			if !ok {
				o.Wrong("levels", "[%d]: a number expected, got %s", i, row.Describe(v.RawGetInt(i)))
			}
			levels = append(levels, float64(n))
		}
		return levels
	}
	o.Wrong("levels", "a list of numbers, or \"vlbi\", expected, got %s", row.Describe(o.Get("levels")))
	return nil
}

// placed reads a field: its place, or its name, which is also returned if the offset varies between packets.
func (o *options) placed(key string, in *luaformat.Format) (f session.Field, name string) {
	switch v := o.Get(key).(type) {
	case *lua.LTable:
		_, f = luaformat.Placed(o.Call, o.Arg, v)
	case lua.LString:
		var err error
		if in.Moves(string(v)) {
			d, _ := in.Derived(string(v))
			if f, name = luaformat.SessionField(d.Field), string(v); d.Find != nil {
				f.BitWidth = uint16(d.Find.ValueBits)
			}
		} else if f, err = in.Find(string(v)); err != nil {
			o.Wrong(key, "%v", err)
		}
	default:
		o.Wrong(key, "a field's name, or a table with its place, expected, got %s", row.Describe(o.Get(key)))
	}
	return f, name
}

func (o *options) ownFields(key string) luaformat.Places {
	own := luaformat.Places{}
	t, ok := o.Get(key).(*lua.LTable)
	if !ok && o.Has(key) {
		o.Wrong(key, "a table of fields by name expected, got %s", row.Describe(o.Get(key)))
	}
	if !ok {
		return own
	}
	return luaformat.ReadPlaces(o.Call, o.Arg, key, t)
}

func (o *options) flowIDs(key string) []uint32 {
	t, ok := o.Get(key).(*lua.LTable)
	if !o.Has(key) {
		return nil
	}
	if !ok || t.Len() == 0 {
		o.Wrong(key, "a list of flow ids expected, got %s", row.Describe(o.Get(key)))
	}
	var ids []uint32
	for i := 1; i <= t.Len(); i++ {
		id, err := row.WholeNumber(t.RawGetInt(i), 0, 1<<32-1)
		if err != nil {
			o.Wrong(key, "%v", err)
		}
		ids = append(ids, uint32(id))
	}
	return ids
}

// fill reads the content of gaps: "zero", "keep", or a byte. Zero is the code of 0 where a format declares offset-binary samples, unless they are
// converted.
func (o *options) fill(key string, f *luaformat.Format) int {
	switch v := o.Get(key).(type) {
	case *lua.LNilType:
	case lua.LString:
		if v == "keep" {
			return session.FillKeep
		} else if v != "zero" {
			o.Wrong(key, "'%s' is neither zero, keep, nor a byte", string(v))
		}
	default:
		return int(o.Whole(key, 0, 0, 255))
	}
	if f == nil || f.Declared == nil || f.Declared.Spec.Samples == nil || f.Declared.Spec.Samples.Varies() != "" || o.Has("data_types") {
		return 0
	}
	t, err := session.ParseSample(f.Declared.Spec.Samples.Type)
	if err != nil {
		return 0
	}
	return t.ZeroByte()
}

// ---- fields of reordered bursts -----------------------------------------------------------------------------

// aggregateField returns a field of a reordered burst; nil for other bursts.
func aggregateField(rt *Runtime, b *burst, name lua.LString) lua.LValue {
	a, ok := b.b.Aggregate()
	if !ok {
		return lua.LNil
	}
	switch name {
	case "batch_id":
		return rt.integer(a.BatchID)
	case "data":
		return rt.newObject(&packet{of: b})
	case "dtype":
		return lua.LString(a.Dtype.String())
	case "missing":
		return lua.LNumber(a.Cells - a.PresentCells)
	case "expected":
		return lua.LNumber(a.Cells)
	case "last_time":
		return receiveTime(a.LastNS, b.b.TimeOrigin(), lua.LNil)
	case "timed_out":
		return lua.LBool(a.Flags&session.AggregateTimeout != 0)
	case "cut":
		return lua.LBool(a.Flags&(session.AggregateFirst|session.AggregateStopped) != 0)
	case "source_packets":
		return lua.LNumber(a.Packets)
	case "slot_bytes":
		return lua.LNumber(a.SlotBytes)
	case "items":
		return heapItems(rt, b, &a)
	case "present":
		return rt.newObject(&presence{bits: slices.Clone(a.PresentBits), n: a.Cells, count: a.PresentCells})
	}
	return extraColumn(rt, &a)
}

// extraColumn returns the number that the rule stores per slot as a column; nil if there is none.
func extraColumn(rt *Runtime, a *session.Aggregate) lua.LValue {
	if a.Extra == nil {
		return lua.LNil
	}
	has, each := make([]uint8, a.Slots), a.Cells/a.Slots
	for cell := range a.Cells {
		if a.PresentBits[cell/64]>>(cell%64)&1 != 0 {
			has[cell/each] = 1
		}
	}
	return rt.newObject(&column{name: "extra", values: session.NewNumbers(a.Extra), has: has})
}

// presence is a copy of an aggregate's bitmap of received cells; it outlives the burst. Hot.
type presence struct {
	bits     []uint64
	n, count int
}

func (*presence) LuaType() string { return "presence" }

func (p *presence) has(i int) bool { return p.bits[i/64]>>(i%64)&1 != 0 }

// text returns one character per cell: 1 if received, 0 if missing.
func (p *presence) text() string {
	var b strings.Builder
	for i := range p.n {
		b.WriteByte("01"[p.bits[i/64]>>(i%64)&1])
	}
	return b.String()
}

// hex returns the cells as hexadecimal digits; the first cell is the most significant bit of the first digit.
func (p *presence) hex() string {
	var b strings.Builder
	for i := 0; i < p.n; i += 4 {
		digit := 0
		for k := i; k < min(i+4, p.n); k++ {
			if p.has(k) {
				digit |= 8 >> (k - i)
			}
		}
		fmt.Fprintf(&b, "%x", digit)
	}
	return b.String()
}

// presenceMissing implements p:missing(): the list of missing cells.
func presenceMissing(c *call) int {
	p := receiver[*presence](c, "presence")
	list := c.L.CreateTable(p.n-p.count, 0)
	for i := range p.n {
		if !p.has(i) {
			list.Append(lua.LNumber(i + 1))
		}
	}
	return c.Push(list)
}

var presenceType = &typeDef{
	name: "presence",
	self: "present",
	doc: `a presence
		Which parts of an aggregate came ('b.present'): slots, or the parts of slots that an offset addresses. '#present' is how many there are. It outlives
		the burst.
		. [integer] boolean | nil: whether a part came`,
	fields: []field{
		{"count", `-> integer
			How many parts came.
			> print(present.count)`},
		{"hex", `-> string: a bit a part, the first one the highest of the first digit
			Which parts came, as hexadecimal digits.
			> print(present.hex)`},
		{"text", `-> string: a character a part
			Which parts came, as '1' and '0'.
			> print(present.text)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		p := self.(*presence)
		if n, ok := key.(lua.LNumber); ok {
			if i := int(n) - 1; i >= 0 && i < p.n && float64(n) == float64(i+1) {
				return lua.LBool(p.has(i))
			}
			return lua.LNil
		}
		switch key {
		case lua.LString("count"):
			return lua.LNumber(p.count)
		case lua.LString("hex"):
			return lua.LString(p.hex())
		case lua.LString("text"):
			return lua.LString(p.text())
		}
		return nil
	},
	methods: []entry{
		{"missing", presenceMissing, `-> integer[]: numbers of parts, from 1
			The parts that did not come.
			> for _, slot in ipairs(present:missing()) do print(slot) end`}},
	meta: []entry{
		{name: "__len", fn: func(c *call) int {
			p, _ := row.Userdata[*presence](c.L.Get(1))
			return c.Push(lua.LNumber(p.n))
		}},
		{name: "__tostring", fn: func(c *call) int {
			p, _ := row.Userdata[*presence](c.L.Get(1))
			return c.Push(lua.LString(fmt.Sprintf("%d of %d", p.count, p.n)))
		}},
	},
}
