package bindings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/samples"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// sessionConvert implements s:convert{name, memory_region, data_types, format, at, payload_byte_offset, policy}: a stage that creates packets
// with the payload elements converted to another type.
func sessionConvert(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region", "data_types")
	f := opts.format()
	at := opts.payloadPlace(f, 0)
	types, each := opts.packetTypes("data_types", f)
	st, err := o.s.Convert(opts.Str("name", ""), session.ConvertOptions{
		MemoryRegion:      opts.Str("memory_region", ""),
		Data:              *types,
		Type:              each.of,
		Choices:           each.choices,
		Scale:             each.scale,
		PayloadByteOffset: at.offset,
		AtPayload:         at.payload,
		Header:            at.header,
		Length:            at.length,
		Fields:            f.Fields(),
		Policy:            opts.Policy(session.Drop),
	})
	return c.pushStage(st, o, err)
}

// payloadPlace is the start of the payloads: a byte offset from the packet's start or from the innermost payload, plus the value of an
// expression.
type payloadPlace struct {
	offset         int
	payload        bool
	header, length string
}

// payloadPlace reads these options. A format's payload follows its header unless the options specify it, or packets are split: then the header is
// in segment 0.
func (o *options) payloadPlace(f *luaformat.Format, segment int) payloadPlace {
	data := f != nil && f.Declared != nil && f.Declared.Spec.Data != ""
	if f == nil || f.Declared == nil || segment > 0 || o.Has("at") || o.Has("payload_byte_offset") {
		at := payloadPlace{offset: int(o.Whole("payload_byte_offset", 0, 0, 1<<20)), payload: o.choice("at", "start", "payload") == "payload"}
		if data {
			at.header = format.DataHeaderBytes + " * 0" // undefined for packets without data
		}
		return at
	}
	if f.Declared.Spec.Layer != "payload" {
		o.Wrong("format", "%s is the header of another layer, behind which there are others: give at and payload_byte_offset", f.Name)
	}
	at := payloadPlace{payload: true, length: f.Declared.PayloadText()}
	n, fixed := f.Declared.Fixed()
	if at.offset = n; !fixed || data {
		at.offset, at.header = 0, format.DataHeaderBytes
	}
	return at
}

// sessionCopy implements s:copy{name, memory_region, data_types, format, at, payload_byte_offset, policy}: a stage that copies bursts to another
// region.
func sessionCopy(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region")
	f := opts.format()
	at := opts.payloadPlace(f, 0)
	if opts.Has("data_types") && (at.header != "" || at.length != "") {
		opts.Wrong("format", "where its payload begins or ends, or whether it is data, depends on the packet, and a copy converts what is behind a header of one length: use s:convert")
	}
	copied := session.CopyOptions{
		MemoryRegion:      opts.Str("memory_region", ""),
		PayloadByteOffset: at.offset,
		AtPayload:         at.payload,
		Policy:            opts.Policy(session.Drop),
	}
	if opts.Has("data_types") {
		copied.Data = opts.dataTypes("data_types", f)
	}
	st, err := o.s.Copy(opts.Str("name", ""), copied)
	return c.pushStage(st, o, err)
}

// ---- samples ------------------------------------------------------------------------------------------------

var samplesType = &typeDef{
	name: "samples",
	self: "x",
	doc: `samples
		The numbers in the payloads of packets ('b:samples') or in an aggregate ('a.data:samples'), all of one type. They are a copy and outlive the burst; '#x'
		is how many there are, a complex one counts once.`,
	fields: []field{
		{"complex", `-> boolean
			Whether samples are complex.
			> print(x.complex)`},
		{"frequency", `-> number | nil, Hz
			The middle of the band, as the format declares it for the first packet.
			> print(x.frequency)`},
		{"rate", `-> number | nil
			Samples per second, as the format declares it for the first packet.
			> print(x.rate)`},
		{"raw", `-> integer
			How many packets, or slots, have samples that are not here. Their type is unknown, or differs from that of the first packet, or they are not whole.
			> print(x.raw)`},
		{"shape", `-> integer[] | nil
			The dimensions of the first packet's samples, the outermost first, as the format declares them.
			> if x.shape then print(table.concat(x.shape, " x ")) end`},
		{"time", `-> number | nil, s
			The time of the first sample, as the format declares it for the first packet.
			> print(x.time)`},
		{"type", `-> string
			The type: 'daqiri-run doc samples' describes the names.
			> print(x.type)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		x := self.(*samples.Samples)
		switch key {
		case lua.LString("complex"):
			return lua.LBool(x.Type.Complex())
		case lua.LString("frequency"):
			return knownNumber(x.Frequency)
		case lua.LString("rate"):
			return knownNumber(x.Rate)
		case lua.LString("raw"):
			return lua.LNumber(x.Raw)
		case lua.LString("shape"):
			if x.Shape == nil {
				return lua.LNil
			}
			return numberList(rt.root, x.Shape)
		case lua.LString("time"):
			return knownNumber(x.Time)
		case lua.LString("type"):
			return lua.LString(x.Type.String())
		}
		return nil
	},
	methods: []entry{
		{"get", samplesGet, `- i integer: which sample, from 1
			-> number: its value, the real part of a complex one
			-> number | nil: the imaginary part of a complex one
			The value of a sample: (v + offset) * scale, or that of its code's level.
			> if #x > 0 then print(x:get(1)) end`},
		{"histogram", samplesHistogram, `-> table: counts by code
			How often each code is there, without those that are not: a code is the bits of an element as an unsigned number, and complex samples have two.
			Types of up to 16 bits that are integers have codes.
			> for code, n in pairs(x:histogram()) do print(code, n) end`},
		{"mean", samplesMean, `-> number | nil: the real part of complex samples
			-> number | nil: the imaginary part
			The mean of the values; nil without samples.
			> print(x:mean())`},
		{"power", samplesPower, `-> number | nil
			The mean of |x|^2; nil without samples.
			> print(x:power())`},
		{"spectrum", samplesSpectrum, `. points integer = 1024: of a block, a power of 2 from 2 to 65536
			. window ` + row.OneOf(samples.Windows()) + ` = "` + samples.Windows()[0] + `": the shape of a block
			. first integer = 1: the first sample of each packet, from 1
			. step integer = 1: takes every so many samples, such as those of one channel
			. continuous boolean = false: whether samples continue those of the packet before; otherwise no block has samples of two packets
			-> table | nil: lists by frequency, 'levels', 'max' and 'frequencies', and 'blocks', 'peak', 'peak_frequency'; nil where there are fewer samples than a block has
			The mean power of blocks of samples in dBFS: a complex tone, or a real sine, of full scale has 0. The full scale of floating-point numbers and levels is
			1. Frequencies are in Hz if the rate is known, around 'frequency' if that is, otherwise in cycles per sample.
			> local spectrum = x:spectrum{ points = 16 }
			> if spectrum then print(spectrum.peak, spectrum.peak_frequency) end`},
	},
	meta: []entry{
		{name: "__len", fn: func(c *call) int {
			x, _ := row.Userdata[*samples.Samples](c.L.Get(1))
			return c.Push(lua.LNumber(x.Len()))
		}},
		{name: "__tostring", fn: func(c *call) int {
			x, _ := row.Userdata[*samples.Samples](c.L.Get(1))
			return c.Push(lua.LString(fmt.Sprintf("%d samples of %s", x.Len(), x.Type)))
		}},
	},
}

// numberList returns a list of numbers.
func numberList[T int | float64](L *lua.LState, values []T) *lua.LTable {
	t := L.CreateTable(len(values), 0)
	for _, v := range values {
		t.Append(lua.LNumber(v))
	}
	return t
}

// knownNumber returns a number, nil for NaN.
func knownNumber(v float64) lua.LValue {
	if math.IsNaN(v) {
		return lua.LNil
	}
	return lua.LNumber(v)
}

// pushParts returns the real part, and the imaginary part of complex samples; nil: NaN.
func (c *call) pushParts(x *samples.Samples, re, im float64) int {
	c.L.Push(knownNumber(re))
	if !x.Type.Complex() {
		return 1
	}
	c.L.Push(knownNumber(im))
	return 2
}

func samplesGet(c *call) int {
	x := receiver[*samples.Samples](c, "samples")
	re, im := x.At(c.Index(1, "sample", x.Len()))
	c.L.Push(lua.LNumber(re))
	if !x.Type.Complex() {
		return 1
	}
	c.L.Push(lua.LNumber(im))
	return 2
}

func samplesMean(c *call) int {
	x := receiver[*samples.Samples](c, "samples")
	re, im := x.Mean()
	return c.pushParts(x, re, im)
}

func samplesPower(c *call) int {
	return c.Push(knownNumber(receiver[*samples.Samples](c, "samples").Power()))
}

func samplesHistogram(c *call) int {
	counts, err := receiver[*samples.Samples](c, "samples").Histogram()
	c.Check(err)
	t := c.L.NewTable()
	for code, n := range counts {
		if n > 0 {
			t.RawSetInt(code, lua.LNumber(n))
		}
	}
	return c.Push(t)
}

func samplesSpectrum(c *call) int {
	x := receiver[*samples.Samples](c, "samples")
	o := c.options(1)
	s, err := x.Spectrum(o.spectrum(o.points(1024)))
	c.Check(err)
	bin, peak, ok := s.Peak()
	if !ok {
		return c.Push(lua.LNil)
	}
	step := float64(o.Whole("step", 1, 1, 1<<30))
	frequency := func(bin int) float64 { return x.Hertz(s.Frequency(bin) / step) }
	frequencies := make([]float64, len(s.Average()))
	for i := range frequencies {
		frequencies[i] = frequency(i)
	}
	t := c.L.NewTable()
	t.RawSetString("levels", numberList(c.L, s.Average()))
	t.RawSetString("max", numberList(c.L, s.MaxHold()))
	t.RawSetString("frequencies", numberList(c.L, frequencies))
	t.RawSetString("blocks", lua.LNumber(s.Blocks))
	t.RawSetString("peak", lua.LNumber(peak))
	t.RawSetString("peak_frequency", lua.LNumber(frequency(bin)))
	return c.Push(t)
}

// points reads the option points, a power of 2.
func (o *options) points(missing int64) int {
	points := int(o.Whole("points", missing, 2, 1<<16))
	if points&(points-1) != 0 {
		o.Wrong("points", "%d is not a valid number of points (expected a power of 2)", points)
	}
	return points
}

// spectrum reads the options window, first, step and continuous.
func (o *options) spectrum(points int) samples.SpectrumOptions {
	return samples.SpectrumOptions{Points: points, Window: o.choice("window", samples.Windows()...),
		First: int(o.Whole("first", 1, 1, 1<<30)) - 1, Step: int(o.Whole("step", 1, 1, 1<<30)), Continuous: o.Bool("continuous", false)}
}

// burstSamples implements b:samples(format, {type, packet, segment}).
func burstSamples(c *call) int {
	b, f := selfBurst(c), c.formatArg(1)
	return c.Push(c.rt.newObject(c.options(2).gathered(b, f, 1)))
}

// gathered returns the samples of packets, by the options type, packet and segment. n is the argument that has the format.
func (o *options) gathered(b *burst, f *luaformat.Format, n int) *samples.Samples {
	c := o.c
	g := samples.Gatherer{Frames: b.b.Queue().Layer() == session.LayerFrame, Type: o.Str("type", "")}
	if f != nil {
		g.Format = f.Declared
	}
	if g.Format != nil && g.Format.Spec.Samples != nil && g.Format.Spec.Samples.From != "" {
		g.Other = c.formatText(n, g.Format.Spec.Samples.From).Declared
	}
	if err := g.Check(); err != nil {
		c.ArgError(n, "%v", err)
	}
	segment, from, to := int(o.Whole("segment", 1, 1, int64(b.b.Segments())))-1, 0, b.b.N()
	if o.Has("packet") {
		from = int(o.Whole("packet", 1, 1, int64(max(to, 1)))) - 1
		to = min(from+1, to)
	}
	for i := from; i < to; i++ {
		head := (&packet{of: b, i: i}).data(c.L)
		c.Check(b.b.Beyond(segment))
		var payload []byte
		if segment > 0 {
			payload = (&packet{of: b, i: i, seg: segment}).data(c.L)
		}
		c.Check(g.Packet(head, payload))
	}
	return g.Samples()
}

// packetSamples implements p:samples(slot, {format, type}) of an aggregate's data.
func packetSamples(c *call) int {
	p := receiver[*packet](c, "packet")
	data := p.data(c.L)
	a, ok := p.of.b.Aggregate()
	if !ok {
		c.Raise("'samples' of a packet is for the data of aggregates: b:samples(format, { packet = %d }) has those of a packet", p.i+1)
	}
	c.Check(p.of.b.Beyond(p.seg))
	from, to := 0, a.Slots
	if c.Arg(1) != lua.LNil {
		from = c.Index(1, "slot", a.Slots)
		to = from + 1
	}
	return c.Push(c.rt.newObject(c.options(2).slotted(&a, data, from, to)))
}

// slotted returns the samples of slots from to before to of an aggregate's data, by the options format and type.
func (o *options) slotted(a *session.Aggregate, data []byte, from, to int) *samples.Samples {
	var declared *format.Format
	if f := o.format(); f != nil {
		declared = f.Declared
	}
	x, err := samples.OfType(o.Str("type", ""), a.Dtype, declared)
	if err != nil {
		o.Raise("%v", err)
	}
	for slot := from; slot < to; slot++ {
		x.Slot(a, data, slot)
	}
	return x.Samples
}

// burstPlot implements b:plot{format, type, kind, …}: a picture of the samples of packets or of an aggregate.
func burstPlot(c *call) int {
	b, o := selfBurst(c), c.options(1)
	kind := o.choice("kind", picture.Kinds()...)
	points := o.points(0)
	var x *samples.Samples
	if a, ok := b.b.Aggregate(); ok {
		data := (&packet{of: b}).data(c.L)
		c.Check(b.b.Beyond(0))
		x = o.slotted(&a, data, 0, a.Slots)
	} else {
		x = o.gathered(b, o.format(), 1)
	}
	f, err := x.Figures(o.spectrum(points))
	if err == nil {
		err = f.Check(kind)
	}
	c.Check(err)
	if name := o.Str("file", ""); name != "" {
		err := picture.Save(name, o.Bool("overwrite", c.rt.Open.Overwrite), func(w io.Writer) error { return f.PNG(w, kind) })
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is there, and stays as it is; hint: another name, or overwrite = true", name)
		}
		c.Check(err)
		return 0
	}
	screen := picture.Screen{Plain: true}
	if c.rt.Screen != nil {
		screen = c.rt.Screen()
	}
	_, err = io.WriteString(c.rt.Stdout, f.Terminal(kind, screen))
	c.Check(err)
	return 0
}
