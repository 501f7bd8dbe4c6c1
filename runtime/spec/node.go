package spec

import (
	"math"
	"strconv"
	"strings"
)

// kind is the shape of a node.
type kind int

const (
	kindNull   kind = iota
	kindScalar      // text
	kindList
	kindTable
	kindEmpty  // an empty Lua table, list or map
	kindBroken // already reported
)

// node is a decoded document with positions. YAML, Lua tables and overrides are all converted to nodes for the same parser.
type node struct {
	kind   kind
	tag    string // of a scalar: str, int, float or bool
	quoted bool   // a scalar in quotes in YAML: text, whatever it contains
	text   string
	pos    Pos
	fields []field
	index  map[string]int // index into fields, if there are many
	items  []*node
}

// manyFields is the number of fields from which an index is faster than a linear search.
const manyFields = 16

// field is one key of a table.
type field struct {
	name string
	pos  Pos // of the key
	val  *node
}

func (n *node) field(name string) *field {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return &n.fields[i]
		}
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// add adds a key that does not exist yet.
func (n *node) add(f field) {
	n.fields = append(n.fields, f)
	switch {
	case n.index != nil:
		n.index[f.name] = len(n.fields) - 1
	case len(n.fields) == manyFields:
		n.index = make(map[string]int, 2*manyFields)
		for i := range n.fields {
			n.index[n.fields[i].name] = i
		}
	}
}

// get returns the value of a key, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	if f := n.field(name); f != nil {
		return f.val
	}
	return nil
}

// source returns the Source of the entity described by this node.
func (n *node) source(pos Pos, path string) Source {
	s := Source{Pos: pos, Path: path, keys: make(map[string]Pos, len(n.fields))}
	for _, f := range n.fields {
		s.keys[f.name] = f.pos
	}
	return s
}

// describe returns a description of the node for error messages.
func (n *node) describe() string {
	switch n.kind {
	case kindScalar:
		if n.tag == "str" {
			return strconv.Quote(n.text)
		}
		return n.text
	case kindList:
		return "a list"
	case kindTable:
		return "a map"
	case kindEmpty:
		return "an empty table"
	}
	return "empty"
}

// value converts the node to plain Go values, for unknown sections.
func (n *node) value() any {
	switch n.kind {
	case kindScalar:
		return n.scalar()
	case kindList:
		list := make([]any, len(n.items))
		for i, it := range n.items {
			list[i] = it.value()
		}
		return list
	case kindTable, kindEmpty:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			m[f.name] = f.val.value()
		}
		return m
	}
	return nil
}

func (n *node) scalar() any {
	switch n.tag {
	case "bool":
		b, _ := parseBool(n.text)
		return b
	case "int":
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 0, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil {
			return f
		}
	case "float":
		if f, ok := parseFloat(n.text); ok {
			return f
		}
	}
	return n.text
}

// parseFloat parses a YAML float, including .inf and .nan.
func parseFloat(text string) (float64, bool) {
	switch strings.TrimLeft(strings.ToLower(text), "+-") {
	case ".inf":
		if text[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case ".nan":
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return f, err == nil
}

func parseBool(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}
