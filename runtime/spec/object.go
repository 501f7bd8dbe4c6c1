package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// parser collects what is wrong while it reads.
type parser struct {
	opts     Options
	scheme   string // of the endpoints of the file, for legacy endpoint keys
	issues   []Issue
	warnings []Issue
	regions  map[string]*MemoryRegion // while the whole is checked
	compared int                      // names, to find what misspelt ones were meant to be
}

func (p *parser) errorf(at Source, format string, args ...any) {
	p.issues = append(p.issues, at.Errorf(format, args...))
}

func (p *parser) warnf(at Source, format string, args ...any) {
	p.warnings = append(p.warnings, at.Errorf(format, args...))
}

// object reads the keys of one map. The keys of its section are known; end reports all others, and the required ones that a
// getter asked for and that were absent.
type object struct {
	Source
	p       *parser
	n       *node
	sec     *Section
	waived  []string // required elsewhere, and not here
	refused []string // of the section, and not in place here
	missing []string
	asked   []string // for by a getter
}

// value is a node, the row that says what it may be, and the place where its faults are reported: its key in a map, itself
// in a list.
type value struct {
	Source
	n   *node
	key *Key
}

// object starts to read a map. What is no map is reported once and read as if every key
// were absent.
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

// ok is false when there was no map to read.
func (o *object) ok() bool { return o.n != nil }

// lookup returns a key's value. A key without a value counts as absent for maps and lists
// only, so the caller decides.
func (o *object) lookup(name string) (value, bool) {
	k := o.sec.key(name)
	if o.n == nil {
		return value{}, false
	}
	f := o.n.field(name)
	if f == nil {
		return value{}, false
	}
	return value{Source: Source{Pos: f.pos, Path: joinPath(o.Path, name)}, n: f.val, key: k}, true
}

// waive makes keys optional that are required of other objects of the section.
func (o *object) waive(names ...string) { o.waived = append(o.waived, names...) }

// find is lookup for a getter of keys of these types. It notes that a required key is absent.
func (o *object) find(name string, types ...keyType) (value, *Key, bool) {
	k := o.sec.key(name)
	if !slices.Contains(types, k.Type) {
		panic(fmt.Sprintf("spec: %s of %s is read as %s and is %s", name, o.sec.Name, types[0], k.Type))
	}
	o.asked = append(o.asked, name)
	v, ok := o.lookup(name)
	if !ok && o.n != nil && k.Required && !contains(o.waived, name) {
		o.missing = append(o.missing, name)
	}
	return v, k, ok
}

// fill reads the keys that have a value, or are a list of choices, into the fields of *x of the same name in JSON: those that
// no getter asked for and that are not refused.
func (o *object) fill(x any) {
	s := reflect.ValueOf(x).Elem()
	for i := range s.NumField() {
		name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		k := o.sec.index[name]
		if k == nil || contains(o.asked, name) || contains(o.refused, name) {
			continue
		}
		switch f := s.Field(i); {
		case k.Type == typeInteger:
			f.SetInt(integer[int64](o, name))
		case k.Type == typeBoolean:
			f.SetBool(o.boolean(name))
		case k.Type == typeFilled:
			f.SetString(o.name(name))
		case k.Type == typeText:
			f.SetString(o.text(name))
		case k.Type == typeChoice:
			f.SetString(o.choice(name))
		case k.Type == typeList && k.Items == typeChoice:
			f.Set(reflect.ValueOf(o.choices(name)))
		}
	}
}

// end reports unknown and missing keys. A missing key that an unknown one was probably
// meant to be is not reported twice.
func (o *object) end() {
	if o.n == nil {
		return
	}
	var absent []string
	for _, f := range o.n.fields {
		if o.sec.index[f.name] != nil || contains(o.refused, f.name) {
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
			if contains(strings.Split(m, " or "), guess) {
				o.missing = append(o.missing[:i:i], o.missing[i+1:]...)
				break
			}
		}
	}
	for _, m := range o.missing {
		o.p.errorf(o.Source, "%s is required", m)
	}
}

// absent lists the keys that could stand here and don't.
func (o *object) absent() []string {
	list := []string{}
	for _, name := range o.sec.Names() {
		if o.n.field(name) == nil && !contains(o.refused, name) {
			list = append(list, name)
		}
	}
	return list
}

// child reads a key that holds a map; the object is not ok when there is none.
func (o *object) child(name string) *object {
	v, k, ok := o.find(name, typeMap)
	if !ok {
		return &object{p: o.p, Source: o.Key(name), sec: k.Map}
	}
	return o.p.object(v)
}

// list reads a key that holds a list. A key without a value is an empty list.
func (o *object) list(name string) []value {
	v, k, ok := o.find(name, typeList)
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

// empty reports whether a key was written with nothing in it.
func (o *object) empty(key string) bool {
	n := o.n.get(key)
	return n != nil && (n.kind == kindNull || n.kind == kindEmpty || n.kind == kindList && len(n.items) == 0)
}

// refuse reports keys that have no place here, if they were written.
func (o *object) refuse(why string, names ...string) {
	o.refused = append(o.refused, names...)
	for _, name := range names {
		if o.n != nil && o.n.field(name) != nil {
			o.p.errorf(o.Key(name), "%s", why)
		}
	}
}

// effectless warns when a key was written that does nothing.
func (o *object) effectless(name string) {
	if k := o.sec.key(name); o.Has(name) {
		o.p.warnf(o.Key(name), "%s", k.NoEffect)
	}
}
