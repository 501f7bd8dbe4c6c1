package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// text reads a string.
func (o *object) text(name string) string {
	v, k, ok := o.find(name, schema.TypeText)
	if !ok {
		return schema.DefaultOf[string](k)
	}
	s, _ := o.p.text(v)
	return s
}

// name reads a non-empty string.
func (o *object) name(name string) string {
	v, _, ok := o.find(name, schema.TypeFilled)
	if !ok {
		return ""
	}
	s, ok := o.p.text(v)
	if ok && strings.TrimSpace(s) == "" {
		o.p.errorf(v.Source, "is empty")
	}
	return s
}

// choice reads one of several words.
func (o *object) choice(name string) string {
	v, k, ok := o.find(name, schema.TypeChoice)
	if !ok {
		return schema.DefaultOf[string](k)
	}
	return o.p.choice(v)
}

// choices reads a list of distinct words.
func (o *object) choices(name string) (list []string) {
	for _, v := range o.list(name) {
		switch word := o.p.choice(v); {
		case word == "":
		case slices.Contains(list, word):
			o.p.errorf(v.Source, "%q is listed twice", word)
		default:
			list = append(list, word)
		}
	}
	if list == nil {
		list = schema.DefaultOf[[]string](o.sec.Key(name))
	}
	return list
}

// boolean reads true or false (or yes, no, on, off).
func (o *object) boolean(name string) bool {
	v, k, ok := o.find(name, schema.TypeBoolean)
	if !ok {
		return schema.DefaultOf[bool](k)
	}
	if s, ok := o.p.scalar(v); ok {
		b, ok := parseBool(s)
		if ok && v.n.quoted {
			o.p.errorf(v.Source, "%s is text: write %t without quotes", v.n.describe(), b)
			return b
		}
		if ok {
			return b
		}
		o.p.errorf(v.Source, "%s is neither true nor false", v.n.describe())
	}
	return schema.DefaultOf[bool](k)
}

// integer reads an integer.
func integer[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32](o *object, name string) T {
	v, k, ok := o.find(name, schema.TypeInteger)
	if !ok {
		return T(schema.DefaultOf[int](k))
	}
	i, _ := o.p.integer(v)
	return T(i)
}

// optional reads an integer that may be absent.
func optional[T ~uint8 | ~uint16](o *object, name string) *T {
	v, _, ok := o.find(name, schema.TypeInteger)
	if !ok {
		return nil
	}
	i, _ := o.p.integer(v)
	t := T(i)
	return &t
}

// quantity reads a number in the key's unit, or text with a unit.
func (o *object) quantity(name string) int64 {
	v, k, ok := o.find(name, schema.TypeDuration, schema.TypeRate)
	parse := ParseDuration
	if k.Type == schema.TypeRate {
		parse = ParseRate
	}
	if !ok {
		q, _ := parse(schema.DefaultOf[string](k))
		return q
	}
	s, ok := o.p.scalar(v)
	if !ok {
		return 0
	}
	q, err := parse(v.n.withUnit(s, k.Unit))
	if err != nil {
		o.p.errorf(v.Source, "%v", OrNumber(err, k.Unit))
	}
	return q
}

// withUnit returns a scalar's text, with unit appended if it is a number.
func (n *node) withUnit(text, unit string) string {
	if n.tag == "int" || n.tag == "float" {
		return text + unit
	}
	return text
}

// probability reads a number between 0 and 1.
func (o *object) probability(name string) float64 {
	v, _, ok := o.find(name, schema.TypeProbability)
	if !ok {
		return 0
	}
	s, ok := o.p.scalar(v)
	if !ok {
		return 0
	}
	f, ok := parseFloat(s)
	switch {
	case !ok:
		o.p.errorf(v.Source, "%s is not a number", v.n.describe())
	case !(f >= 0 && f <= 1):
		o.p.errorf(v.Source, "%s is outside 0..1", s)
	}
	return f
}

// scalar returns the text of a scalar, and reports other nodes and placeholders.
func (p *parser) scalar(v value) (string, bool) {
	switch v.n.kind {
	case kindScalar:
		if fault := unfilled(v.n.text); fault != "" {
			p.errorf(v.Source, "%s", fault)
			return "", false
		}
		return v.n.text, true
	case kindBroken:
	case kindNull:
		p.errorf(v.Source, "has no value")
	default:
		p.errorf(v.Source, "%s where one value is expected", v.n.describe())
	}
	return "", false
}

// text is scalar for strings. Unquoted numbers and words of YAML are accepted as text.
func (p *parser) text(v value) (string, bool) {
	s, ok := p.scalar(v)
	if ok && v.n.tag == "bool" {
		p.errorf(v.Source, "%s where a text is expected (quote it)", v.n.describe())
		return "", false
	}
	return s, ok
}

func (p *parser) choice(v value) string {
	s, ok := p.scalar(v)
	if !ok || slices.Contains(v.key.Choices, s) {
		return s
	}
	if low := strings.ToLower(s); v.key.AnyCase && slices.Contains(v.key.Choices, low) {
		return low
	}
	p.errorf(v.Source, "%q is not one of %s%s", s, strings.Join(v.key.Choices, ", "), didYouMean(s, v.key.Choices))
	return ""
}

// wholeNumber matches an integer of YAML 1.2.
var wholeNumber = regexp.MustCompile(`^[-+]?(0x[0-9a-fA-F]+|0o[0-7]+|[0-9]+)$`)

// integer accepts integers of YAML 1.2: decimal, 0x and 0o.
func (p *parser) integer(v value) (int64, bool) {
	lo, hi := v.key.Lo, v.key.Hi
	s, ok := p.scalar(v)
	if !ok {
		return 0, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		p.errorf(v.Source, "%s: a leading zero may mean octal; write it without, or 0o", s)
		return 0, false
	}
	if !wholeNumber.MatchString(s) {
		p.errorf(v.Source, "%s is not a whole number", v.n.describe())
		return 0, false
	}
	if v.n.quoted {
		p.errorf(v.Source, "%s is text: write the number without quotes", v.n.describe())
		return 0, false
	}
	i, err := strconv.ParseInt(s, 0, 64)
	if err != nil || i < lo || i > hi {
		if lo == hi {
			p.errorf(v.Source, "%s is not supported, only %d is", s, lo)
		} else {
			p.errorf(v.Source, "%s is outside %d..%d", s, lo, hi)
		}
		return 0, false
	}
	return i, true
}
