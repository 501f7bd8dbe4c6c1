package spec

import (
	"fmt"
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

// object reads the keys of one map. A key that a getter asks for is known; end reports
// all others, and the required ones that were absent.
type object struct {
	Source
	p       *parser
	n       *node
	known   []string
	missing []string
}

// value is a node and the place where its faults are reported: its key in a map, itself
// in a list.
type value struct {
	Source
	n *node
}

// object starts to read a map. What is no map is reported once and read as if every key
// were absent.
func (p *parser) object(v value) *object {
	switch v.n.kind {
	case kindTable, kindEmpty:
		return &object{Source: v.n.source(v.Pos, v.Path), p: p, n: v.n}
	case kindBroken:
	default:
		p.errorf(v.Source, "%s where a map is expected", v.n.describe())
	}
	return &object{Source: v.Source, p: p}
}

// ok is false when there was no map to read.
func (o *object) ok() bool { return o.n != nil }

// lookup returns a key's value. A key without a value counts as absent for maps and lists
// only, so the caller decides.
func (o *object) lookup(key string) (value, bool) {
	o.known = append(o.known, key)
	if o.n == nil {
		return value{}, false
	}
	f := o.n.field(key)
	if f == nil {
		return value{}, false
	}
	return value{Source: Source{Pos: f.pos, Path: joinPath(o.Path, key)}, n: f.val}, true
}

// required is lookup for a key that must be there.
func (o *object) required(key string) (value, bool) {
	v, ok := o.lookup(key)
	if !ok && o.n != nil {
		o.missing = append(o.missing, key)
	}
	return v, ok
}

// find is required when no default is given and lookup otherwise.
func (o *object) find(key string, optional bool) (value, bool) {
	if optional {
		return o.lookup(key)
	}
	return o.required(key)
}

// end reports unknown and missing keys. A missing key that an unknown one was probably
// meant to be is not reported twice.
func (o *object) end() {
	if o.n == nil {
		return
	}
	var absent []string
	for _, k := range o.known {
		if o.n.field(k) == nil {
			absent = append(absent, k)
		}
	}
	for _, f := range o.n.fields {
		if contains(o.known, f.name) {
			continue
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

// child reads a key that holds a map; the object is not ok when there is none.
func (o *object) child(key string, optional bool) *object {
	v, ok := o.find(key, optional)
	if !ok {
		return &object{p: o.p, Source: o.Key(key)}
	}
	return o.p.object(v)
}

// list reads a key that holds a list. A key without a value is an empty list.
func (o *object) list(key string, optional bool) []value {
	v, ok := o.find(key, optional)
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
		items[i] = value{Source{Pos: n.pos, Path: v.index(i)}, n}
	}
	return items
}

// empty reports whether a key was written with nothing in it.
func (o *object) empty(key string) bool {
	n := o.n.get(key)
	return n != nil && (n.kind == kindNull || n.kind == kindEmpty || n.kind == kindList && len(n.items) == 0)
}

// refuse reports a key that has no place here, if it was written.
func (o *object) refuse(key, why string) {
	if o.n != nil && o.n.field(key) != nil {
		o.known = append(o.known, key)
		o.p.errorf(o.Key(key), "%s", why)
	}
}

// effectless warns when a key was written that does nothing.
func (o *object) effectless(key, why string) {
	if o.Has(key) {
		o.p.warnf(o.Key(key), "has no effect%s", why)
	}
}
