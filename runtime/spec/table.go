package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// fromValue converts a decoded value (map[string]any, []any, string, bool, a number or nil, as converted from a Lua table) to a node. All nodes have
// the same position.
func (p *parser) fromValue(v any, at Source, depth int) *node {
	n := &node{kind: kindScalar, pos: at.Pos}
	if depth > maxDepth {
		p.errorf(at, "nested deeper than %d levels (a table that contains itself?)", maxDepth)
		n.kind = kindBroken
		return n
	}
	switch v := v.(type) {
	case nil:
		n.kind = kindNull
	case string:
		n.tag, n.text = "str", v
	case bool:
		n.tag, n.text = "bool", strconv.FormatBool(v)
	case int:
		n.tag, n.text = "int", strconv.Itoa(v)
	case int64:
		n.tag, n.text = "int", strconv.FormatInt(v, 10)
	case float64:
		n.tag, n.text = "float", strconv.FormatFloat(v, 'g', -1, 64)
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			n.tag, n.text = "int", strconv.FormatInt(int64(v), 10)
		}
	case []any:
		n.kind = kindList
		if len(v) == 0 {
			n.kind = kindEmpty
		}
		for i, it := range v {
			n.items = append(n.items, p.fromValue(it, Source{Pos: at.Pos, Path: at.index(i)}, depth+1))
		}
	case map[string]any:
		n.kind = kindTable
		if len(v) == 0 {
			n.kind = kindEmpty
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			n.add(field{k, at.Pos, p.fromValue(v[k], at.Key(k), depth+1)})
		}
	default:
		p.errorf(at, "a %s cannot be part of a configuration", typeName(v))
		n.kind = kindBroken
	}
	return n
}

func typeName(v any) string {
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", v)
}
