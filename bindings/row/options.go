package row

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
	Call  *Call
	Arg   int         // number of the argument that is the table, or contains it
	Table *lua.LTable // the options by name
}

// Keys are the option names in a function's row, parsed on first use.
type Keys struct {
	Row   string          // text of the row
	Names []string        // in the order of the row; valid after Read
	Known map[string]bool // the same as a set
}

// Read parses the row, unless that was done before.
func (k *Keys) Read() {
	if k.Known != nil {
		return
	}
	row := MustParse("options", k.Row)
	k.Known = map[string]bool{}
	for _, o := range row.Options {
		if o.OfMore() {
			continue
		}
		k.Names, k.Known[o.Name] = append(k.Names, o.Name), true
	}
}

// Options reads argument n as a table with only the keys of the function's row and those of more; an absent argument is an empty table.
func (c *Call) Options(n int, more ...string) Options {
	o := Options{Call: c, Arg: n}
	switch v := c.Arg(n).(type) {
	case *lua.LNilType:
		o.Table = c.L.NewTable()
	case *lua.LTable:
		o.Table = v
	default:
		c.Wanted(n, "table of options")
	}
	c.Keys.Read()
	if len(more) > 0 {
		o.Allow(slices.Concat(c.Keys.Names, more))
	} else {
		o.refuse(c.Keys.Known, c.Keys.Names)
	}
	return o
}

// OptionsOf returns the options in a table that is argument n or an element of it.
func (c *Call) OptionsOf(n int, t *lua.LTable) Options { return Options{Call: c, Arg: n, Table: t} }

// Allow raises if the table has a key that is not in names.
func (o *Options) Allow(names []string) {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	o.refuse(known, names)
}

// refuse raises for the first unknown key in sorted order, so that the error is deterministic.
func (o *Options) refuse(known map[string]bool, names []string) {
	var strange []string
	o.Table.ForEach(func(k, _ lua.LValue) {
		if s, ok := k.(lua.LString); !ok || !known[string(s)] {
			strange = append(strange, k.String())
		}
	})
	if len(strange) == 0 {
		return
	}
	sort.Strings(strange)
	o.Raise("%s", Unknown("option", strange[0], slices.Sorted(slices.Values(names))))
}

// Raise raises an error about the whole table.
func (o *Options) Raise(format string, args ...any) { o.Call.ArgError(o.Arg, format, args...) }

// Wrong raises an error about one option.
func (o *Options) Wrong(key, format string, args ...any) {
	o.Raise("option '%s': %s", key, fmt.Sprintf(format, args...))
}

// Get returns the value of an option; nil if it is absent.
func (o *Options) Get(key string) lua.LValue { return o.Table.RawGetString(key) }

// Has reports whether an option is given.
func (o *Options) Has(key string) bool { return o.Get(key) != lua.LNil }

// Str returns an option, a string; missing if it is absent.
func (o *Options) Str(key, missing string) string {
	v := o.Get(key)
	if v == lua.LNil {
		return missing
	}
	s, ok := v.(lua.LString)
	if !ok {
		o.Wrong(key, "a string expected, got %s", Describe(v))
	}
	return string(s)
}

// Need raises if one of the options is absent.
func (o *Options) Need(keys ...string) {
	for _, key := range keys {
		if !o.Has(key) {
			o.Raise("option '%s' is missing", key)
		}
	}
}

// ExactlyOne raises unless exactly one of the options is given.
func (o *Options) ExactlyOne(keys ...string) {
	n := 0
	for _, key := range keys {
		if o.Has(key) {
			n++
		}
	}
	if n != 1 {
		o.Raise("exactly one of the options %s expected, got %d", strings.Join(keys, ", "), n)
	}
}

// Bool returns an option, a boolean; missing if it is absent.
func (o *Options) Bool(key string, missing bool) bool {
	v := o.Get(key)
	if v == lua.LNil {
		return missing
	}
	b, ok := v.(lua.LBool)
	if !ok {
		o.Wrong(key, "true or false expected, got %s", Describe(v))
	}
	return bool(b)
}

// Whole returns an option, an integer in lo..hi; missing if it is absent.
func (o *Options) Whole(key string, missing, lo, hi int64) int64 {
	v := o.Get(key)
	if v == lua.LNil {
		return missing
	}
	n, err := WholeNumber(v, lo, hi)
	if err != nil {
		o.Wrong(key, "%v", err)
	}
	return n
}

// Number returns an option, a number from 0; missing if it is absent.
func (o *Options) Number(key string, missing float64) float64 {
	v := o.Get(key)
	if v == lua.LNil {
		return missing
	}
	n, ok := v.(lua.LNumber)
	if !ok || !(n >= 0) {
		o.Wrong(key, "a number from 0 expected, got %s", Describe(v))
	}
	return float64(n)
}

// quantity reads a number in the base unit, or a string with a unit that parse accepts.
func (o *Options) quantity(key, base string, parse func(string) (int64, error)) float64 {
	s, ok := o.Get(key).(lua.LString)
	if !ok {
		return o.Number(key, 0)
	}
	n, err := parse(string(s))
	if err != nil {
		o.Wrong(key, "%v", spec.OrNumber(err, base))
	}
	return float64(n)
}

// Size reads an integer number of bytes, or a string with a unit.
func (o *Options) Size(key string) int64 {
	if _, ok := o.Get(key).(lua.LNumber); ok {
		return o.Whole(key, 0, 0, MaxInt)
	}
	return int64(o.quantity(key, "B", spec.ParseSize))
}

// Rate reads bits per second, or a string with a unit.
func (o *Options) Rate(key string) float64 { return o.quantity(key, "bit/s", spec.ParseRate) }

// Seconds reads seconds, or a string with a unit, and returns nanoseconds.
func (o *Options) Seconds(key string) (ns int64, given bool) {
	v := o.Get(key)
	if v == lua.LNil {
		return 0, false
	}
	ns, err := Duration(v)
	if err != nil {
		o.Wrong(key, "%v", err)
	}
	return ns, true
}

// Policy returns the option "policy"; missing if it is absent.
func (o *Options) Policy(missing session.Policy) session.Policy {
	text := o.Str("policy", "")
	if text == "" {
		return missing
	}
	p, err := session.ParsePolicy(text)
	if err != nil {
		o.Wrong("policy", "%v", err)
	}
	return p
}

// Duration reads seconds, or a string with a unit, and returns ns.
func Duration(v lua.LValue) (int64, error) {
	switch v := v.(type) {
	case lua.LNumber:
		s := float64(v)
		if s >= 0 && s <= 9e9 {
			return int64(math.Round(s * 1e9)), nil
		}
		return 0, fmt.Errorf("0 to 9e9 seconds expected, got %s", Describe(v))
	case lua.LString:
		ns, err := spec.ParseDuration(string(v))
		return ns, spec.OrNumber(err, "s")
	}
	return 0, fmt.Errorf("seconds or text such as \"5ms\" expected, got %s", Describe(v))
}
