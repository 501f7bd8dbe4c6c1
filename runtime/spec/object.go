package spec

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// parser collects errors and warnings while reading.
type parser struct {
	opts     Options
	scheme   string // scheme of the file's endpoints, for legacy endpoint keys
	issues   []Issue
	warnings []Issue
	regions  map[string]*MemoryRegion // valid during check
	compared int                      // number of names compared to correct misspelt ones
}

func (p *parser) errorf(at Source, format string, args ...any) {
	p.issues = append(p.issues, at.Errorf(format, args...))
}

func (p *parser) warnf(at Source, format string, args ...any) {
	p.warnings = append(p.warnings, at.Errorf(format, args...))
}

// object reads the keys of one map according to its section. end reports unknown keys, and missing required keys that a getter requested.
type object struct {
	Source
	p       *parser
	n       *node
	sec     *schema.Section
	waived  []string // keys not required here
	refused []string // keys of the section that are invalid here
	missing []string
	asked   []string // keys requested by a getter
}

// value is a node with its row and the position for its errors: that of its key in a map, or its own in a list.
type value struct {
	Source
	n   *node
	key *schema.Key
}

// object starts reading a map. A node of another kind is reported once and read as an empty map.
func (p *parser) object(v value) *object {
	o := &object{Source: v.Source, p: p, sec: v.key.Map}
	switch v.n.kind {
	case kindTable, kindEmpty:
		o.Source, o.n = v.n.source(v.Pos, v.Path), v.n
	case kindBroken:
	default:
		p.errorf(v.Source, "%s where a map is expected", v.n.describe())
	}
	return o
}

// ok returns false if there is no map to read.
func (o *object) ok() bool { return o.n != nil }

// lookup returns a key's value. Only for maps and lists a key without a value counts as absent, so callers check that.
func (o *object) lookup(name string) (value, bool) {
	k := o.sec.Key(name)
	if o.n == nil {
		return value{}, false
	}
	f := o.n.field(name)
	if f == nil {
		return value{}, false
	}
	return value{Source: Source{Pos: f.pos, Path: joinPath(o.Path, name)}, n: f.val, key: k}, true
}

// waive makes required keys optional.
func (o *object) waive(names ...string) { o.waived = append(o.waived, names...) }

// find is lookup for a getter of keys of these types. It records an absent required key as missing.
func (o *object) find(name string, types ...schema.Type) (value, *schema.Key, bool) {
	k := o.sec.Key(name)
	if !slices.Contains(types, k.Type) {
		panic(fmt.Sprintf("spec: %s of %s is read as %s and is %s", name, o.sec.Name, types[0], k.Type))
	}
	o.asked = append(o.asked, name)
	v, ok := o.lookup(name)
	if !ok && o.n != nil && k.Required && !slices.Contains(o.waived, name) {
		o.missing = append(o.missing, name)
	}
	return v, k, ok
}

// fill sets the fields of *x from keys with the same JSON names that have a scalar value or are a list of choices, except keys that a getter
// requested or that are refused.
func (o *object) fill(x any) {
	for k, f := range fields(x, o.sec) {
		name := k.Name
		if slices.Contains(o.asked, name) || slices.Contains(o.refused, name) {
			continue
		}
		switch {
		case k.Type == schema.TypeInteger:
			f.SetInt(integer[int64](o, name))
		case k.Type == schema.TypeBoolean:
			f.SetBool(o.boolean(name))
		case k.Type == schema.TypeFilled:
			f.SetString(o.name(name))
		case k.Type == schema.TypeText:
			f.SetString(o.text(name))
		case k.Type == schema.TypeChoice:
			f.SetString(o.choice(name))
		case k.Type == schema.TypeList && k.Items == schema.TypeChoice:
			f.Set(reflect.ValueOf(o.choices(name)))
		}
	}
}

// fields yields the rows of sec with the fields of *x that have their names in JSON.
func fields(x any, sec *schema.Section) iter.Seq2[*schema.Key, reflect.Value] {
	s := reflect.ValueOf(x).Elem()
	return func(yield func(*schema.Key, reflect.Value) bool) {
		for i := range s.NumField() {
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			if k := sec.Find(name); k != nil && !yield(k, s.Field(i)) {
				return
			}
		}
	}
}

// end reports unknown and missing keys. A missing key is not reported if an unknown key is probably a misspelling of it.
func (o *object) end() {
	if o.n == nil {
		return
	}
	var absent []string
	for _, f := range o.n.fields {
		if o.sec.Find(f.name) != nil || slices.Contains(o.refused, f.name) {
			continue
		}
		if absent == nil {
			absent = o.absent()
		}
		guess := suggest.Nearest(f.name, absent)
		tail := ""
		if guess != "" {
			tail = fmt.Sprintf("; did you mean %q?", guess)
		}
		o.p.errorf(o.Key(f.name), "unknown key%s", tail)
		for i, m := range o.missing {
			if slices.Contains(strings.Split(m, " or "), guess) {
				o.missing = append(o.missing[:i:i], o.missing[i+1:]...)
				break
			}
		}
	}
	for _, m := range o.missing {
		o.p.errorf(o.Source, "%s is required", m)
	}
}

// absent returns the valid keys that are not present.
func (o *object) absent() []string {
	list := []string{}
	for _, name := range o.sec.Names() {
		if o.n.field(name) == nil && !slices.Contains(o.refused, name) {
			list = append(list, name)
		}
	}
	return list
}

// child reads a key that holds a map; the object is not ok if there is none.
func (o *object) child(name string) *object {
	v, k, ok := o.find(name, schema.TypeMap)
	if !ok {
		return &object{p: o.p, Source: o.Key(name), sec: k.Map}
	}
	return o.p.object(v)
}

// list reads a key that holds a list. A key without a value is an empty list.
func (o *object) list(name string) []value {
	v, k, ok := o.find(name, schema.TypeList)
	if !ok {
		return nil
	}
	switch v.n.kind {
	case kindList:
	case kindNull, kindEmpty, kindBroken:
		return nil
	default:
		o.p.errorf(v.Source, "%s where a list is expected", v.n.describe())
		return nil
	}
	items := make([]value, len(v.n.items))
	for i, n := range v.n.items {
		items[i] = value{Source{Pos: n.pos, Path: v.index(i)}, n, k}
	}
	return items
}

// empty reports whether a key was written without content.
func (o *object) empty(key string) bool {
	n := o.n.get(key)
	return n != nil && (n.kind == kindNull || n.kind == kindEmpty || n.kind == kindList && len(n.items) == 0)
}

// refuse reports keys that are not allowed here, if they were written.
func (o *object) refuse(why string, names ...string) {
	o.refused = append(o.refused, names...)
	for _, name := range names {
		if o.n != nil && o.n.field(name) != nil {
			o.p.errorf(o.Key(name), "%s", why)
		}
	}
}

// effectless reports a warning for a written key without effect.
func (o *object) effectless(name string) {
	if k := o.sec.Key(name); o.Has(name) {
		o.p.warnf(o.Key(name), "%s", k.NoEffect)
	}
}
