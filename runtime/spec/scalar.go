package spec

import (
	"strconv"
	"strings"
)

// text reads a string.
func (o *object) text(key string, def ...string) string {
	if v, ok := o.find(key, len(def) > 0); ok {
		s, _ := o.p.text(v)
		return s
	}
	return first(def)
}

// name reads a string that may not be empty.
func (o *object) name(key string) string {
	v, ok := o.required(key)
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
func (o *object) choice(key string, allowed []string, def ...string) string {
	v, ok := o.find(key, len(def) > 0)
	if !ok {
		return first(def)
	}
	return o.p.choice(v, allowed)
}

// level reads a level of the log, in letters of either case.
func (o *object) level(key string) string {
	v, ok := o.lookup(key)
	if !ok {
		return "warn"
	}
	if s := strings.ToLower(v.n.text); v.n.kind == kindScalar && contains(logLevels, s) {
		return s
	}
	return o.p.choice(v, logLevels)
}

// boolean reads true or false (yes, no, on and off too).
func (o *object) boolean(key string, def bool) bool {
	v, ok := o.lookup(key)
	if !ok {
		return def
	}
	if s, ok := o.p.scalar(v); ok {
		b, ok := parseBool(s)
		if ok {
			return b
		}
		o.p.errorf(v.Source, "%s is neither true nor false", v.n.describe())
	}
	return def
}

// integer reads a whole number between lo and hi.
func integer[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32](o *object, key string, lo, hi int64, def ...T) T {
	if v, ok := o.find(key, len(def) > 0); ok {
		i, _ := o.p.integer(v, lo, hi)
		return T(i)
	}
	return first(def)
}

// optional reads a whole number that may be absent.
func optional[T ~uint8 | ~uint16](o *object, key string, lo, hi int64) *T {
	v, ok := o.lookup(key)
	if !ok {
		return nil
	}
	i, _ := o.p.integer(v, lo, hi)
	t := T(i)
	return &t
}

// quantity reads a number, in the base unit, or text with a unit.
func (o *object) quantity(key, base string, parse func(string) (int64, error)) int64 {
	v, ok := o.lookup(key)
	if !ok {
		return 0
	}
	s, ok := o.p.scalar(v)
	if !ok {
		return 0
	}
	q, err := parse(v.n.withUnit(s, base))
	if err != nil {
		o.p.errorf(v.Source, "%v", OrNumber(err, base))
	}
	return q
}

// withUnit is a scalar's text, with this unit behind it where it is a number.
func (n *node) withUnit(text, unit string) string {
	if n.tag == "int" || n.tag == "float" {
		return text + unit
	}
	return text
}

// probability reads a number between 0 and 1.
func (o *object) probability(key string) float64 {
	v, ok := o.lookup(key)
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

func first[T any](def []T) (zero T) {
	if len(def) > 0 {
		return def[0]
	}
	return zero
}

// scalar returns the text of a scalar that is filled in.
func (p *parser) scalar(v value) (string, bool) {
	switch v.n.kind {
	case kindScalar:
		if ph := placeholder(v.n.text); ph != "" {
			p.errorf(v.Source, "placeholder not filled: %s", ph)
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

// text is scalar for strings. YAML's unquoted numbers and words are texts too.
func (p *parser) text(v value) (string, bool) {
	s, ok := p.scalar(v)
	if ok && v.n.tag == "bool" {
		p.errorf(v.Source, "%s where a text is expected (quote it)", v.n.describe())
		return "", false
	}
	return s, ok
}

func (p *parser) choice(v value, allowed []string) string {
	s, ok := p.scalar(v)
	if !ok || contains(allowed, s) {
		return s
	}
	p.errorf(v.Source, "%q is not one of %s%s", s, strings.Join(allowed, ", "), didYouMean(s, allowed))
	return ""
}

// integer accepts decimal and 0x, 0o and 0b numbers, quoted or not.
func (p *parser) integer(v value, lo, hi int64) (int64, bool) {
	s, ok := p.scalar(v)
	if !ok {
		return 0, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		p.errorf(v.Source, "%s: a leading zero may mean octal; write it without, or 0o", s)
		return 0, false
	}
	i, err := strconv.ParseInt(s, 0, 64)
	if err, isNum := err.(*strconv.NumError); isNum && err.Err == strconv.ErrSyntax {
		p.errorf(v.Source, "%s is not a whole number", v.n.describe())
		return 0, false
	}
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
