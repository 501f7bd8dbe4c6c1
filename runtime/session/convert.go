package session

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// KindConvert is the kind of a stage that converts the payload elements of single packets.
const KindConvert = "convert"

// ConvertOptions describes the position of payloads and their conversion.
type ConvertOptions struct {
	MemoryRegion      string // region of the output packets
	Data              DataTypes
	Type              string       // with Choices: an expression over fields, whose value chooses the types
	Choices           []TypeChoice // nil: all packets have Data. Otherwise packets of no choice pass unchanged
	Scale             string       // an expression over fields, a factor of each scale; empty: none. See compileScale
	PayloadByteOffset int          // relative to the packet, or with AtPayload to the innermost payload
	AtPayload         bool
	Header, Length    string // as in ReorderOptions
	Fields            Fields
	Policy            Policy // if no buffer is free
}

// Convert creates a stage that outputs packets with converted payload elements. Bytes before the payload are unchanged.
func (s *Session) Convert(name string, o ConvertOptions) (*Stage, error) {
	region, err := s.Region(o.MemoryRegion)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", name, err)
	}
	types, err := o.Data.native()
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", name, err)
	}
	conf := native.ConvertConf{Region: region.native, Types: types, PayloadOffset: o.PayloadByteOffset, AtPayload: o.AtPayload,
		Policy: o.Policy}
	for _, c := range o.Choices {
		types, err := c.Data.native()
		if err != nil {
			return nil, fmt.Errorf("convert %s: %w", name, err)
		}
		conf.Choices = append(conf.Choices, native.SampleChoice{Number: c.Number, Types: types})
	}
	if err := compileScale(&conf, o.Scale, o.Fields); err != nil {
		return nil, fmt.Errorf("convert %s: scale: %w", name, err)
	}
	for _, number := range []struct {
		text string
		to   *[]native.Insn
	}{{o.Header, &conf.Header}, {o.Length, &conf.Length}, {o.Type, &conf.Type}} {
		if number.text == "" {
			continue
		}
		if *number.to, _, err = compileNumber(number.text, o.Fields); err != nil {
			return nil, fmt.Errorf("convert %s: %w", name, err)
		}
	}
	st, err := s.stage(name, KindConvert, "", func(n string) (native.Stage, error) {
		return s.native.AddConvert(n, conf)
	})
	if err == nil {
		st.region = o.MemoryRegion
	}
	return st, err
}

// TypeChoice has the types of packets whose Type has that number.
type TypeChoice struct {
	Number uint64
	Data   DataTypes
}

// compileScale compiles the scale of packets: a number over fields, such as "gain", multiplied or divided by a constant, such as "gain / 4096", or
// 2 to the power of one, such as "2 ^ -shift".
func compileScale(conf *native.ConvertConf, text string, fields Fields) (err error) {
	if text == "" {
		return nil
	}
	factor, number, power, err := expr.Scale(text)
	if err != nil {
		return err
	}
	if conf.Types.Scale != 0 {
		factor *= conf.Types.Scale
	}
	conf.Types.Scale = factor
	for i := range conf.Choices {
		conf.Choices[i].Types.Scale = factor
	}
	conf.ScalePower = power
	conf.Scale, conf.ScaleSigned, err = compileNumber(number, fields)
	return err
}

// DataTypes describes the conversion of payload elements from a type of schema.InputTypes, or of samples, to one of schema.OutputTypes. The value of an
// element is (v + Offset) * Scale, where v is its number, or Levels[code]. SlotBytes, PacketBytes and Offset of stages are in input bytes.
type DataTypes struct {
	Input, Output string
	Network       bool      // an Input of schema.InputTypes is big endian; else in host order
	FullScale     bool      // Scale is 2^-(bits-1), of unsigned types 2^-bits
	Scale, Offset float64   // Scale 0: 1
	Levels        []float64 // one for each code, at most 8 bits; nil: none
}

// shortOutputs maps the short names of output types to those of schema.OutputTypes.
var shortOutputs = map[string]string{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "i32": "int32", "i16": "int16", "i8": "int8"}

// output returns the output type, and whether its name is that of a complex one.
func (d *DataTypes) output() (name string, isComplex bool, err error) {
	if slices.Contains(schema.OutputTypes, d.Output) {
		return d.Output, false, nil
	}
	short, isComplex := strings.CutPrefix(d.Output, "c")
	if name = shortOutputs[strings.TrimSuffix(short, "le")]; name != "" {
		return name, isComplex, nil
	}
	names := slices.Clone(schema.OutputTypes)
	for short := range shortOutputs {
		names = append(names, short, "c"+short)
	}
	slices.Sort(names)
	hint := ""
	if near := suggest.Nearest(d.Output, names); near != "" {
		hint = fmt.Sprintf(": hint: did you mean %q?", near)
	}
	return "", false, fmt.Errorf("%q is not a valid output type (expected %s, or short names such as f32 and ci16)%s", d.Output,
		schema.JoinOr(schema.OutputTypes), hint)
}

// inputName returns the name of the input's type of samples.
func (d *DataTypes) inputName() string {
	if wide := d.Input == "int16" || d.Input == "int32"; wide && d.Network {
		return strings.Replace(d.Input, "int", "i", 1) + "be"
	}
	return d.Input
}

// native returns the conversion for the engine, or what is wrong with it.
func (d *DataTypes) native() (t native.DataTypes, err error) {
	if d == nil {
		return t, nil
	}
	out, isComplex, err := d.output()
	if err != nil {
		return t, err
	}
	t = native.DataTypes{Output: native.DtypeNamed(out), FullScale: d.FullScale, Scale: d.Scale, Offset: d.Offset, Levels: d.Levels}
	if t.Sample, err = native.ParseSample(d.inputName()); err != nil {
		return t, err
	}
	if isComplex && !t.Sample.Complex() {
		return t, fmt.Errorf("%q is complex, and %q is real: output_type %q", d.Output, d.Input, strings.TrimPrefix(d.Output, "c"))
	}
	if d.Levels != nil && t.Sample.Bits() <= 8 && len(d.Levels) != 1<<t.Sample.Bits() {
		return t, fmt.Errorf("levels: %s has %d codes, not %d", t.Sample, 1<<t.Sample.Bits(), len(d.Levels))
	}
	for _, v := range append([]float64{d.Scale, d.Offset}, d.Levels...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return t, errors.New("scale, offset and levels must be finite numbers")
		}
	}
	return t, nil
}

// Check returns what is wrong with the names and numbers of the conversion.
func (d *DataTypes) Check() error {
	_, err := d.native()
	return err
}

// IsSample reports whether the input has a name of a type of samples, which includes the byte order.
func (d *DataTypes) IsSample() bool { return !slices.Contains(schema.InputTypes, d.Input) }

// SampleType is a type of samples.
type SampleType = native.Sample

// ParseSample returns the type of samples of that name or alias.
func ParseSample(name string) (SampleType, error) { return native.ParseSample(name) }

// Dtype is the type of an aggregate's elements.
type Dtype = native.Dtype

// DtypeBytes is the type of unconverted data.
const DtypeBytes = native.DtypeBytes
