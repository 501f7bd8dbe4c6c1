package bindings

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Options is a table of named options of a call. Unknown keys raise.
type Options struct {
	call *Call
	n    int // argument number
	t    *lua.LTable
}

// optionKeys are the option names in a function's row, parsed on first use.
type optionKeys struct {
	row   string
	names []string
	known map[string]bool
}

func (k *optionKeys) read() {
	if k.known != nil {
		return
	}
	row := mustParse("options", k.row)
	k.known = map[string]bool{}
	for _, o := range row.Options {
		if o.OfMore() {
			continue
		}
		k.names, k.known[o.Name] = append(k.names, o.Name), true
	}
}

// readOptions reads argument n as a table with only the keys of the function's row and those of more; an absent argument is an empty table.
func (c *Call) readOptions(n int, more ...string) Options {
	o := Options{call: c, n: n}
	switch v := c.arg(n).(type) {
	case *lua.LNilType:
		o.t = c.L.NewTable()
	case *lua.LTable:
		o.t = v
	default:
		c.wanted(n, "table of options")
	}
	c.keys.read()
	if len(more) > 0 {
		o.allow(slices.Concat(c.keys.names, more))
	} else {
		o.refuse(c.keys.known, c.keys.names)
	}
	return o
}

// optionsOf returns the options in a table that is argument n or an element of it.
func (c *Call) optionsOf(n int, t *lua.LTable) Options { return Options{call: c, n: n, t: t} }

// allow raises if the table has a key that is not in names.
func (o *Options) allow(names []string) {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	o.refuse(known, names)
}

// refuse raises for the first unknown key in sorted order, so that the error is deterministic.
func (o *Options) refuse(known map[string]bool, names []string) {
	var strange []string
	o.t.ForEach(func(k, _ lua.LValue) {
		if s, ok := k.(lua.LString); !ok || !known[string(s)] {
			strange = append(strange, k.String())
		}
	})
	if len(strange) == 0 {
		return
	}
	sort.Strings(strange)
	o.fault("%s", unknown("option", strange[0], slices.Sorted(slices.Values(names))))
}

// fault raises an error about the whole table.
func (o *Options) fault(format string, args ...any) { o.call.argError(o.n, format, args...) }

// wrong raises an error about one option.
func (o *Options) wrong(key, format string, args ...any) {
	o.fault("option '%s': %s", key, fmt.Sprintf(format, args...))
}

func (o *Options) get(key string) lua.LValue { return o.t.RawGetString(key) }

func (o *Options) has(key string) bool { return o.get(key) != lua.LNil }

func (o *Options) str(key, missing string) string {
	v := o.get(key)
	if v == lua.LNil {
		return missing
	}
	s, ok := v.(lua.LString)
	if !ok {
		o.wrong(key, "a string expected, got %s", describe(v))
	}
	return string(s)
}

func (o *Options) need(keys ...string) {
	for _, key := range keys {
		if !o.has(key) {
			o.fault("option '%s' is missing", key)
		}
	}
}

// exactlyOne raises unless exactly one of the options is given.
func (o *Options) exactlyOne(keys ...string) {
	n := 0
	for _, key := range keys {
		if o.has(key) {
			n++
		}
	}
	if n != 1 {
		o.fault("exactly one of the options %s expected, got %d", strings.Join(keys, ", "), n)
	}
}

func (o *Options) bool(key string, missing bool) bool {
	v := o.get(key)
	if v == lua.LNil {
		return missing
	}
	b, ok := v.(lua.LBool)
	if !ok {
		o.wrong(key, "true or false expected, got %s", describe(v))
	}
	return bool(b)
}

func (o *Options) whole(key string, missing, lo, hi int64) int64 {
	v := o.get(key)
	if v == lua.LNil {
		return missing
	}
	n, err := wholeNumber(v, lo, hi)
	if err != nil {
		o.wrong(key, "%v", err)
	}
	return n
}

func (o *Options) number(key string, missing float64) float64 {
	v := o.get(key)
	if v == lua.LNil {
		return missing
	}
	n, ok := v.(lua.LNumber)
	if !ok || !(n >= 0) {
		o.wrong(key, "a number from 0 expected, got %s", describe(v))
	}
	return float64(n)
}

// quantity reads a number in the base unit, or a string with a unit that parse accepts.
func (o *Options) quantity(key, base string, parse func(string) (int64, error)) float64 {
	s, ok := o.get(key).(lua.LString)
	if !ok {
		return o.number(key, 0)
	}
	n, err := parse(string(s))
	if err != nil {
		o.wrong(key, "%v", spec.OrNumber(err, base))
	}
	return float64(n)
}

// size reads an integer number of bytes, or a string with a unit.
func (o *Options) size(key string) int64 {
	if _, ok := o.get(key).(lua.LNumber); ok {
		return o.whole(key, 0, 0, maxInt)
	}
	return int64(o.quantity(key, "B", spec.ParseSize))
}

// rate reads bits per second, or a string with a unit.
func (o *Options) rate(key string) float64 { return o.quantity(key, "bit/s", spec.ParseRate) }

// seconds reads seconds, or a string with a unit, and returns nanoseconds.
func (o *Options) seconds(key string) (ns int64, given bool) {
	v := o.get(key)
	if v == lua.LNil {
		return 0, false
	}
	ns, err := duration(v)
	if err != nil {
		o.wrong(key, "%v", err)
	}
	return ns, true
}

func (o *Options) policy(missing session.Policy) session.Policy {
	text := o.str("policy", "")
	if text == "" {
		return missing
	}
	p, err := session.ParsePolicy(text)
	if err != nil {
		o.wrong("policy", "%v", err)
	}
	return p
}

// duration reads seconds, or a string with a unit, and returns ns.
func duration(v lua.LValue) (int64, error) {
	switch v := v.(type) {
	case lua.LNumber:
		s := float64(v)
		if s >= 0 && s <= 9e9 {
			return int64(math.Round(s * 1e9)), nil
		}
		return 0, fmt.Errorf("0 to 9e9 seconds expected, got %s", describe(v))
	case lua.LString:
		ns, err := spec.ParseDuration(string(v))
		return ns, spec.OrNumber(err, "s")
	}
	return 0, fmt.Errorf("seconds or text such as \"5ms\" expected, got %s", describe(v))
}
