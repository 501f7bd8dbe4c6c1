package samples

import (
	"errors"
	"fmt"
	"math"

	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Windows returns the names of the windows of a spectrum, the default first.
func Windows() (names []string) {
	for _, w := range signal.Windows {
		names = append(names, w.Name)
	}
	return names
}

// Hertz returns a frequency in cycles per sample in Hz, around Frequency if that is known; without a known rate it returns the argument.
func (s *Samples) Hertz(cycles float64) float64 {
	if math.IsNaN(s.Rate) {
		return cycles
	}
	if math.IsNaN(s.Frequency) {
		return cycles * s.Rate
	}
	return cycles*s.Rate + s.Frequency
}

// A Gatherer collects the samples of packets.
type Gatherer struct {
	Format *format.Format // nil: payloads are samples of Type
	Other  *format.Format // format whose packets have the type of Format's samples; nil: none
	Type   string         // instead of the type that packets name; empty: theirs
	Frames bool           // packets have Ethernet headers
	out    *Samples
	raw    int
	known  map[string]format.Sampled // what packets of a stream have named
	types  map[string]session.SampleType
}

// Check returns an error if no packet could have samples.
func (g *Gatherer) Check() error {
	if g.Type != "" {
		_, err := g.typeNamed(g.Type)
		return err
	}
	switch {
	case g.Format == nil:
		return errors.New("a format that declares samples, or the option type, expected, such as type = \"ci16le\" (daqiri-run help samples)")
	case g.Format.Spec.Samples == nil:
		return fmt.Errorf("format %s declares no samples: give the option type, or declare them: samples = { type = \"ci16le\" } (daqiri-run help formats)", g.Format.Spec.Name)
	case g.Format.Spec.Samples.Type == "" && g.Format.Spec.Samples.Of == "" && g.Other == nil:
		return fmt.Errorf("format %s does not declare the type of its samples: give the option type", g.Format.Spec.Name)
	}
	return nil
}

func (g *Gatherer) typeNamed(name string) (session.SampleType, error) {
	t, ok := g.types[name]
	if ok {
		return t, nil
	}
	t, err := session.ParseSample(name)
	if err == nil {
		if g.types == nil {
			g.types = map[string]session.SampleType{}
		}
		g.types[name] = t
	}
	return t, err
}

// Packet adds the samples of a packet, which are in payload, or if that is nil behind the header.
func (g *Gatherer) Packet(packet, payload []byte) error {
	layer := "payload"
	if g.Format != nil {
		layer = g.Format.Spec.Layer
	}
	from, to, ok := session.LayerOf(packet, g.Frames, layer)
	s, is := format.Sampled{}, false
	if ok {
		s, is = g.sampled(packet[from:to])
	}
	if payload != nil && is && (s.Data != nil || s.Short) {
		s.Data, s.Short = payload, false
	}
	switch {
	case is && s.Data == nil && !s.Short:
		return nil // without data, such as a leader or a context packet
	case !is || s.Short || s.Type == "" || s.Unlisted:
		g.skip()
		return nil
	}
	t, err := g.typeNamed(s.Type)
	if err != nil {
		return err
	}
	if !g.add(t, &s) {
		g.skip()
	}
	return nil
}

// skip counts a packet whose samples are not gathered. The next ones do not continue those before it.
func (g *Gatherer) skip() {
	g.raw++
	if g.out != nil {
		g.out.Skip(0)
	}
}

// sampled describes the samples of a packet from its header on, with what earlier packets of its stream have named.
func (g *Gatherer) sampled(b []byte) (s format.Sampled, ok bool) {
	if g.Format == nil || g.Format.Spec.Samples == nil {
		nan := math.NaN()
		return format.Sampled{Type: g.Type, Data: b, Count: nan, Scale: nan, Offset: nan, Rate: nan, Time: nan, Frequency: nan}, true
	}
	s, ok = g.Format.Sampled(b)
	if g.Other != nil && s.Data == nil {
		if x, is := g.Other.Sampled(b); is {
			s.Type, s.Unlisted, s.Rate, s.Frequency, s.Scale, s.Offset = x.Type, x.Unlisted, x.Rate, x.Frequency, x.Scale, x.Offset
		}
	}
	if !ok {
		return s, false
	}
	if g.known == nil {
		g.known = map[string]format.Sampled{}
	}
	if had, is := g.known[s.Stream]; is {
		if s.Type == "" && !s.Unlisted {
			s.Type, s.Unlisted = had.Type, had.Unlisted
		}
		for _, x := range []struct{ to, had *float64 }{{&s.Rate, &had.Rate}, {&s.Frequency, &had.Frequency}, {&s.Scale, &had.Scale}, {&s.Offset, &had.Offset}} {
			if math.IsNaN(*x.to) {
				*x.to = *x.had
			}
		}
	}
	kept := s
	kept.Data = nil
	g.known[s.Stream] = kept
	if g.Type != "" {
		s.Type, s.Unlisted = g.Type, false
	}
	return s, true
}

// add appends the samples of a packet. It returns false if they are of another type, are not whole, or have an unknown value.
func (g *Gatherer) add(t session.SampleType, s *format.Sampled) bool {
	scale, offset, ok := g.factors(s)
	if !ok {
		return false
	}
	if g.out == nil {
		var levels []float64
		if d := g.declared(); d != nil {
			levels = d.LevelsOf(t.Bits())
		}
		g.out = New(t, levels)
	}
	step := g.out.Step()
	n := t.Elements(len(s.Data))
	switch d := g.declared(); {
	case d != nil && d.Count != "":
		if !(s.Count >= 0 && s.Count*float64(step) <= float64(n)) {
			return false
		}
		n = int(s.Count) * step
	case t.Bytes(n) != len(s.Data):
		return false
	}
	if t != g.out.Type || !g.out.Add(s.Data, n, scale, offset) {
		return false
	}
	if len(g.out.runs) == 1 {
		g.out.Shape, g.out.Rate, g.out.Time, g.out.Frequency = s.Shape(n/step), s.Rate, s.Time, s.Frequency
	}
	return true
}

func (g *Gatherer) declared() *format.Samples {
	if g.Format == nil {
		return nil
	}
	return g.Format.Spec.Samples
}

// factors returns the scale, 0 for the full one, and the offset of a packet's values; false if the packet does not have them.
func (g *Gatherer) factors(s *format.Sampled) (scale, offset float64, ok bool) {
	d := g.declared()
	scale, offset = s.Scale, s.Offset
	if math.IsNaN(scale) {
		if d != nil && d.Scale != "" {
			return 0, 0, false
		}
		scale = 1
	} else if scale == 0 {
		return 0, 0, false
	}
	if d != nil && d.FullScale {
		scale = 0
	}
	if math.IsNaN(offset) {
		if d != nil && d.Offset != "" {
			return 0, 0, false
		}
		offset = 0
	}
	return scale, offset, true
}

// Samples returns what was gathered. Without any samples the type is the given or declared one, otherwise u8.
func (g *Gatherer) Samples() *Samples {
	if g.out == nil {
		name := g.Type
		if d := g.declared(); name == "" && d != nil {
			name = d.Type
		}
		t, err := g.typeNamed(name)
		if err != nil {
			t, _ = g.typeNamed("u8")
		}
		g.out = New(t, nil)
	}
	g.out.Raw = g.raw
	return g.out
}

// A Slotted collects the samples of an aggregate's slots.
type Slotted struct {
	*Samples
	scale, offset float64
}

// OfType returns no samples of an aggregate whose data are of the type dtype. name or the format f specifies the type of unconverted data; empty
// and nil: dtype.
func OfType(name string, dtype session.Dtype, f *format.Format) (*Slotted, error) {
	s := &Slotted{scale: 1}
	var declared *format.Samples
	if f != nil && dtype == session.DtypeBytes {
		declared = f.Spec.Samples
	}
	switch {
	case name != "":
	case dtype != session.DtypeBytes:
		name = dtype.String()
	case declared == nil:
		return nil, errors.New("the data were not converted: give the option type, or a format that declares samples")
	default:
		if why := declared.Varies(); why != "" {
			return nil, fmt.Errorf("format %s: %s: give the option type", f.Spec.Name, why)
		}
		name = declared.Type
	}
	t, err := session.ParseSample(name)
	if err != nil {
		return nil, err
	}
	var levels []float64
	if declared != nil {
		if s.scale, s.offset, err = Constants(f); err != nil {
			return nil, err
		}
		levels = declared.LevelsOf(t.Bits())
	}
	s.Samples = New(t, levels)
	return s, nil
}

// Constants returns the scale, 0 for the full one, and the offset of a format's samples. Its error names a text that depends on the packet.
func Constants(f *format.Format) (scale, offset float64, err error) {
	d := f.Spec.Samples
	scale, constant := format.Number(d.Scale)
	if !constant {
		return 0, 0, fmt.Errorf("format %s: the scale %q of its samples depends on each packet (expected a number)", f.Spec.Name, d.Scale)
	}
	if d.Scale == "" && !d.FullScale {
		scale = 1
	}
	if offset, constant = format.Number(d.Offset); !constant {
		return 0, 0, fmt.Errorf("format %s: the offset %q of its samples depends on each packet (expected a number)", f.Spec.Name, d.Offset)
	}
	return scale, offset, nil
}

// Slot adds a slot of data if all of it was received and is whole elements; otherwise it counts as raw, and its samples are missing.
func (s *Slotted) Slot(a *session.Aggregate, data []byte, slot int) {
	n := s.Type.Elements(a.SlotBytes)
	if !present(a, slot) || (slot+1)*a.SlotBytes > len(data) || // its buffers were freed
		s.Type.Bytes(n) != a.SlotBytes || !s.Add(data[slot*a.SlotBytes:(slot+1)*a.SlotBytes], n, s.scale, s.offset) {
		s.Raw++
		s.Skip(n / s.Step())
	}
}

// present reports whether all cells of a slot were received.
func present(a *session.Aggregate, slot int) bool {
	each := a.Cells / a.Slots
	for cell := slot * each; cell < (slot+1)*each; cell++ {
		if a.PresentBits[cell/64]>>(cell%64)&1 == 0 {
			return false
		}
	}
	return true
}
