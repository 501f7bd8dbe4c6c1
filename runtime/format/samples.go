package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// Samples describes the samples in the payloads of a format. Scale, Offset, Rate, Time, Frequency and Count are numbers as text over the packet's
// fields; empty: not declared.
type Samples struct {
	Type      string      // of every packet; empty: chosen by Of or From, or not declared
	Of        string      // a number as text that chooses one of Types
	Types     []Value     // names of types, by that number
	From      string      // format whose packets have the type, of the same stream: with the same values of the fields of Per
	Complex   string      // field: 0 for real, 1 for complex samples
	Shape     []string    // dimensions of a packet's samples, the outermost first: numbers as text, one of them may be Rest
	Levels    [][]float64 // values of the codes, for types with as many codes
	FullScale bool        // the scale is that of the type's full range
	Scale     string      // the value is (v + Offset) * Scale
	Offset    string
	Rate      string // samples per second
	Time      string // of the first sample, in s
	Frequency string // of the middle of the band, in Hz
	Count     string // samples in the packet; a complex one counts once
}

// Rest is the dimension of a shape that has what the others leave.
const Rest = "*"

const restDim = -1

const mostListed = 16 // types in a description

// A SampleType is what formats need to know of a type of samples.
type SampleType struct {
	Bits    int // of an element
	Complex bool
}

// sampleTexts are the compiled texts of Samples.
type sampleTexts struct {
	of, complex, scale, offset, rate, time, frequency, count *expr.Expr
	shape                                                    []*expr.Expr // nil: Rest
}

// samples checks the declaration of samples.
func (c *compiler) samples() error {
	s := c.f.Spec.Samples
	if s == nil {
		return nil
	}
	t := &sampleTexts{}
	c.f.samples = t
	texts := []struct {
		key, text string
		to        **expr.Expr
	}{{"of", s.Of, &t.of}, {"complex", s.Complex, &t.complex}, {"scale", s.Scale, &t.scale}, {"offset", s.Offset, &t.offset}, {"rate", s.Rate, &t.rate},
		{"time", s.Time, &t.time}, {"frequency", s.Frequency, &t.frequency}, {"count", s.Count, &t.count}}
	for _, x := range texts {
		var err error
		if *x.to, err = c.text(Row{}, "samples: "+x.key, x.text, false, HeaderBytes, PayloadBytes); err != nil {
			return err
		}
	}
	rest := 0
	for i, dim := range s.Shape {
		var e *expr.Expr
		var err error
		if dim == Rest {
			rest++
		} else if e, err = c.text(Row{}, fmt.Sprintf("samples: shape[%d]", i+1), dim, false, HeaderBytes, PayloadBytes); err != nil {
			return err
		}
		t.shape = append(t.shape, e)
	}
	if rest > 1 {
		return c.errorf(Row{}, "samples: shape: only one dimension can be \"*\"")
	}
	return c.sampleTypes(s)
}

// sampleTypes checks the names of the types, and that levels fit one of them.
func (c *compiler) sampleTypes(s *Samples) error {
	if c.o.Sample == nil {
		return nil
	}
	names := make([]string, 0, len(s.Types)+1)
	for _, v := range s.Types {
		names = append(names, v.Name)
	}
	if s.Type != "" {
		names = append(names, s.Type)
	}
	codes := map[int]bool{}
	for _, name := range names {
		t, err := c.o.Sample(name)
		if err != nil {
			return c.errorf(Row{}, "samples: type: %v", err)
		}
		if t.Bits <= 8 {
			codes[1<<t.Bits] = true
		}
		if s.Complex == "" {
			continue
		}
		if _, err := c.o.Sample("c" + name); err != nil || t.Complex {
			return c.errorf(Row{}, "samples: type: \"%s\" is not a valid type beside the key complex (expected the type of one part, without c)", name)
		}
	}
	for _, l := range s.Levels {
		if len(s.Levels) == 1 && !codes[len(l)] && s.From == "" {
			return c.errorf(Row{}, "samples: levels: %d is not a valid number of levels (expected 2^bits of a type, at most 256)", len(l))
		}
	}
	return nil
}

// Varies returns why the type of the samples is not the same for all packets; empty if it is.
func (s *Samples) Varies() string {
	switch {
	case s.Of != "":
		return fmt.Sprintf("the type of its samples depends on '%s' of each packet", s.Of)
	case s.From != "":
		return fmt.Sprintf("the type of its samples is in packets of %s", s.From)
	case s.Type == "":
		return "it does not declare the type of its samples"
	case s.Complex != "":
		return fmt.Sprintf("whether its samples are complex depends on '%s' of each packet", s.Complex)
	}
	return ""
}

// Choices returns the types that packets choose from by a number, which is given as text; none if all have one type.
func (s *Samples) Choices() (types []Value, of string) {
	types, of = s.Types, s.Of
	switch {
	case s.Complex == "":
		return types, of
	case s.Of == "":
		return []Value{{Number: 0, Name: s.Type}, {Number: 1, Name: "c" + s.Type}}, s.Complex
	}
	both := make([]Value, 0, 2*len(types))
	for _, v := range types {
		both = append(both, Value{Number: 2 * v.Number, Name: v.Name}, Value{Number: 2*v.Number + 1, Name: "c" + v.Name})
	}
	return both, fmt.Sprintf("(%s) * 2 + (%s)", of, s.Complex)
}

// LevelsOf returns the value of each code for a type of so many bits; nil: the codes are numbers.
func (s *Samples) LevelsOf(bits int) []float64 {
	for _, l := range s.Levels {
		if bits <= 8 && len(l) == 1<<bits {
			return l
		}
	}
	return nil
}

// Number returns a text that is a constant. It returns false if it is over fields, and 0 and true if it is empty.
func Number(text string) (float64, bool) {
	if text == "" {
		return 0, true
	}
	e, err := expr.Parse(text)
	if err != nil {
		return 0, false
	}
	v := e.Eval(func(string) (float64, bool) { return 0, false })
	return v.Num, v.Known && len(e.Names()) == 0
}

// Sampled describes the samples of one packet. Numbers that the packet does not have are NaN.
type Sampled struct {
	Stream                               string // values of the fields of Per
	Type                                 string // empty: not in this packet
	Unlisted                             bool   // the number that chooses the type is not listed
	Data                                 []byte // payload; nil: none
	Short                                bool   // the packet ends before its payload
	Count                                float64
	Scale, Offset, Rate, Time, Frequency float64
	shape                                []float64
}

// Sampled returns the description of a packet's samples; b begins at the header and ends with the packet. It returns false for packets of other
// formats, and if the format declares no samples.
func (f *Format) Sampled(b []byte) (s Sampled, ok bool) {
	t := f.samples
	r := f.reader(b)
	if t == nil || !r.matches() {
		return s, false
	}
	number := func(e *expr.Expr) float64 {
		if e == nil {
			return math.NaN()
		}
		if v := e.Eval(r.float); v.Known && !math.IsInf(v.Num, 0) {
			return v.Num
		}
		return math.NaN()
	}
	s = Sampled{Count: number(t.count), Scale: number(t.scale), Offset: number(t.offset), Rate: number(t.rate), Time: number(t.time),
		Frequency: number(t.frequency)}
	s.Type, s.Unlisted = f.typeOf(number(t.of), number(t.complex))
	for _, e := range t.shape {
		dim := number(e)
		if e == nil {
			dim = restDim
		}
		s.shape = append(s.shape, dim)
	}
	var stream strings.Builder
	for _, name := range f.Spec.Per {
		v, _, _ := r.env(name)
		stream.WriteString(strconv.FormatUint(v, 10) + " ")
	}
	s.Stream = stream.String()
	s.Data, s.Short = r.payload()
	return s, true
}

// typeOf returns the type that the numbers choose; unlisted if they are there, and choose none.
func (f *Format) typeOf(of, complex float64) (name string, unlisted bool) {
	s := f.Spec.Samples
	name = s.Type
	if s.Of != "" {
		if math.IsNaN(of) {
			return "", false
		}
		for _, v := range s.Types {
			if float64(v.Number) == of {
				name = v.Name
			}
		}
		if name == "" {
			return "", true
		}
	}
	switch {
	case s.Complex == "" || complex == 0 || name == "":
		return name, false
	case complex == 1:
		return "c" + name, false
	}
	return "", !math.IsNaN(complex)
}

// matches reports whether the packet has the constants of the format.
func (r *reader) matches() bool {
	for _, x := range r.f.Fields {
		if x.Const == nil || x.Reserved {
			continue
		}
		if v, ok := r.number(x); ok && v != *x.Const || !ok && len(x.when) == 0 && len(x.terms) == 0 {
			return false
		}
	}
	return true
}

// float returns the value of a name as a floating-point number.
func (r *reader) float(name string) (float64, bool) {
	v, unsigned, ok := r.env(name)
	if unsigned {
		return float64(v), ok
	}
	return float64(int64(v)), ok
}

// payload returns the bytes behind the header; nil for packets without data. short: the packet ends before them.
func (r *reader) payload() (data []byte, short bool) {
	bits, ok := r.bits(r.f.header)
	from := bits / 8
	n := int64(len(r.b)) - from
	if n >= 0 && r.f.data != nil && !r.f.data.Holds(r.env) {
		return nil, false
	}
	if ok && r.f.length != nil {
		v, known := r.f.length.Whole(r.env)
		ok, n = known, min(int64(v), n+1)
	}
	if !ok || n < 0 || from+n > int64(len(r.b)) {
		return nil, true
	}
	return r.b[from : from+n], false
}

// Shape returns the dimensions of n samples of the packet, the outermost first; nil if they are unknown, or do not have n samples.
func (s *Sampled) Shape(n int) []int {
	dims, rest, product := make([]int, len(s.shape)), -1, 1
	for i, d := range s.shape {
		switch {
		case d == restDim && rest < 0:
			rest = i
		case d >= 1 && d == math.Trunc(d) && d <= float64(max(n, 1)):
			dims[i] = int(d)
			product *= dims[i]
		default:
			return nil
		}
	}
	if rest >= 0 && product <= n && n%product == 0 {
		dims[rest] = n / product
		product = n
	}
	if len(dims) == 0 || product != n {
		return nil
	}
	return dims
}

// sentences returns a description of the samples; none if s is nil.
func (s *Samples) sentences() []string {
	if s == nil {
		return nil
	}
	text := "The type of its samples is not declared."
	switch {
	case s.Type != "":
		text = "Samples have the type `" + s.Type + "`."
	case s.From != "":
		text = "Packets of `" + s.From + "` have the type of its samples."
	case s.Of == "":
	case len(s.Types) <= mostListed:
		var list []string
		for _, v := range s.Types {
			number := fmt.Sprint(v.Number)
			if v.Number > math.MaxUint16 { // an identifier
				number = fmt.Sprintf("0x%08x", v.Number)
			}
			list = append(list, number+" `"+v.Name+"`")
		}
		text = "`" + s.Of + "` chooses the type of samples: " + strings.Join(list, ", ") + "."
	default:
		text = fmt.Sprintf("`%s` chooses one of %d types of samples.", s.Of, len(s.Types))
	}
	all := []string{text}
	if s.Complex != "" {
		all = append(all, "They are complex where `"+s.Complex+" == 1`.")
	}
	if len(s.Shape) > 0 {
		all = append(all, "The dimensions of a packet's samples are `"+strings.Join(s.Shape, "`, `")+"`.")
	}
	for _, x := range []struct{ what, text string }{{"rate in samples/s", s.Rate}, {"time in s", s.Time}, {"frequency in Hz", s.Frequency}, {"number", s.Count},
		{"scale", s.Scale}, {"offset", s.Offset}} {
		if x.text != "" {
			all = append(all, "Their "+x.what+" is `"+x.text+"`.")
		}
	}
	return all
}
