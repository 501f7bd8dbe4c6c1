package bindings

import (
	"cmp"
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

// packetTypes are what a conversion computes for each packet.
type packetTypes struct {
	of      string               // a number that chooses one of choices
	choices []session.TypeChoice // nil: all packets have one type
	scale   string               // a factor of the scale; empty: none
}

// dataTypes reads the element conversion of a stage whose packets all have one type and scale.
func (o *options) dataTypes(key string, f *luaformat.Format) *session.DataTypes {
	if t, ok := o.Get(key).(*lua.LTable); ok && f != nil && f.Declared != nil && f.Declared.Spec.Samples != nil && t.RawGetString("input_type") == lua.LNil {
		declared := f.Declared.Spec.Samples
		if why := declared.Varies(); why != "" {
			o.Wrong(key, "format %s: %s: give input_type", f.Declared.Spec.Name, why)
		}
		if _, _, err := samples.Constants(f.Declared); err != nil {
			o.Wrong(key, "%v: give input_type and scale", err)
		}
	}
	types, each := o.packetTypes(key, f)
	if each.choices != nil {
		o.Wrong(key, "input_type: the type depends on '%s' of each packet, which only s:convert follows (expected a type's name)", each.of)
	}
	if each.scale != "" {
		o.Wrong(key, "scale: '%s' depends on the packet, which only s:convert follows (expected a number or \"full\")", each.scale)
	}
	return types
}

// packetTypes reads the element conversion: {input_type, output_type, endianness, scale, offset, levels}. Without input_type the format f declares the
// samples. It returns nil without one.
func (o *options) packetTypes(key string, f *luaformat.Format) (types *session.DataTypes, each packetTypes) {
	t, ok := o.Get(key).(*lua.LTable)
	if !ok && o.Has(key) {
		o.Wrong(key, "a table expected, got %s", row.Describe(o.Get(key)))
	}
	if !ok {
		return nil, each
	}
	d := newOptions(o.c, o.Arg, t)
	d.Allow([]string{"endianness", "input_type", "levels", "offset", "output_type", "scale"})
	d.Need("output_type")
	types = &session.DataTypes{Output: d.Str("output_type", ""), Network: d.choice("endianness", "host", "network") == "network", Scale: 1}
	var declared *format.Samples
	var names []format.Value
	if !d.Has("input_type") && f != nil && f.Declared != nil && f.Declared.Spec.Samples != nil {
		declared = f.Declared.Spec.Samples
		var err error
		if names, err = each.declared(types, f.Declared); err != nil {
			o.Wrong(key, "%v", err)
		}
	} else if list, ok := d.Get("input_type").(*lua.LTable); ok {
		names = each.listed(d, list)
	} else {
		d.Need("input_type")
		types.Input = d.Str("input_type", "")
	}
	d.values(types, &each)
	for _, v := range names {
		c := *types
		c.Input = v.Name
		if s, err := session.ParseSample(v.Name); err == nil && declared != nil && !d.Has("levels") {
			c.Levels = declared.LevelsOf(s.Bits())
		}
		each.choices = append(each.choices, session.TypeChoice{Number: v.Number, Data: c})
		if err := c.Check(); err != nil {
			o.Wrong(key, "%v", err)
		}
	}
	if len(names) > 0 {
		*types = each.choices[0].Data
	}
	if err := types.Check(); err != nil {
		o.Wrong(key, "%v", err)
	}
	if d.Has("endianness") && (types.IsSample() || len(names) > 0) {
		d.Wrong("endianness", "the name %q includes the byte order", types.Input)
	}
	return types, each
}

// declared sets the input of a conversion to the samples that a format declares, and returns the types that packets choose from; nil: one. Its error is
// that another packet has the type.
func (each *packetTypes) declared(types *session.DataTypes, f *format.Format) (names []format.Value, err error) {
	s := f.Spec.Samples
	if s.From != "" || s.Type == "" && s.Of == "" {
		return nil, fmt.Errorf("format %s: %s: give input_type", f.Spec.Name, s.Varies())
	}
	names, each.of = s.Choices()
	types.Input, types.FullScale = s.Type, s.FullScale
	offset, constant := format.Number(s.Offset)
	if !constant {
		return nil, fmt.Errorf("format %s: the offset %q of its samples depends on each packet: give input_type, scale and offset", f.Spec.Name, s.Offset)
	}
	types.Offset = offset
	if scale, constant := format.Number(s.Scale); !constant {
		each.scale = s.Scale
	} else if s.Scale != "" {
		types.Scale = scale
	}
	if len(names) > 0 {
		return names, nil
	}
	t, err := session.ParseSample(s.Type)
	types.Levels = s.LevelsOf(t.Bits())
	return nil, err
}

// listed reads { of = NUMBER, [NUMBER] = TYPE, … }.
func (each *packetTypes) listed(d *options, list *lua.LTable) (names []format.Value) {
	const expected = "a type's name or { of = FIELD, [NUMBER] = TYPE, … } expected"
	of, ok := list.RawGetString("of").(lua.LString)
	each.of = string(of)
	list.ForEach(func(k, v lua.LValue) {
		if k == lua.LString("of") {
			return
		}
		n, err := row.WholeNumber(k, 0, row.MaxInt)
		name, isName := v.(lua.LString)
		if err != nil || !isName {
			d.Wrong("input_type", "%s, got [%s] = %s", expected, k, row.Describe(v))
		}
		names = append(names, format.Value{Number: uint64(n), Name: string(name)})
	})
	if !ok || len(names) == 0 {
		d.Wrong("input_type", "%s", expected)
	}
	slices.SortFunc(names, func(a, b format.Value) int { return cmp.Compare(a.Number, b.Number) })
	return names
}

// values reads the scale, offset and levels that replace those of types.
func (o *options) values(types *session.DataTypes, each *packetTypes) {
	text, isText := o.Get("scale").(lua.LString)
	switch {
	case text == "full":
		types.FullScale, each.scale = true, ""
	case isText:
		types.FullScale, types.Scale, each.scale = false, 1, string(text)
	case o.Has("scale"):
		types.FullScale, each.scale = false, ""
		if types.Scale = o.Number("scale", 1); types.Scale == 0 {
			o.Wrong("scale", "0 is not a valid scale (expected another number, a number over fields, or \"full\")")
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
