package spec

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	maxNodes = 200_000 // values of a document after expansion of aliases
	maxDepth = 64
)

// readYAML converts a YAML document to nodes, and reports syntax errors, duplicate keys, and recursive aliases.
func (p *parser) readYAML(name string, text []byte) *node {
	text = blankDirective(text)
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			at := Source{Pos: Pos{name, more.Content[0].Line, more.Content[0].Column}}
			p.errorf(at, "more than one document in the file")
			return &node{kind: kindBroken}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		line, column := locate(text, err)
		p.errorf(Source{Pos: Pos{name, line, column}}, "%s", syntaxText(err, text, line))
		return &node{kind: kindBroken}
	}
	if len(doc.Content) == 0 {
		return &node{kind: kindNull, pos: Pos{name, 1, 1}}
	}
	b := builder{p: p, file: name, left: maxNodes, open: map[*yaml.Node]bool{}}
	return b.build(doc.Content[0], "", 0)
}

// blankDirective overwrites the %YAML line before a document with spaces, because yaml.v3 rejects versions other than 1.1. Line numbers are
// preserved.
func blankDirective(text []byte) []byte {
	rest := bytes.TrimPrefix(text, []byte("\ufeff"))
	for len(rest) > 0 {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i]
		}
		trimmed := bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("%YAML")) {
			at := len(text) - len(rest)
			out := bytes.Clone(text)
			copy(out[at:], bytes.Repeat([]byte(" "), len(trimmed)))
			return out
		}
		if len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
			break
		}
		rest = rest[min(len(line)+1, len(rest)):]
	}
	return text
}

// builder converts yaml.v3's tree.
type builder struct {
	p    *parser
	file string
	left int
	open map[*yaml.Node]bool // anchors being expanded
}

func (b *builder) pos(y *yaml.Node) Pos { return Pos{b.file, y.Line, y.Column} }

// report removes daqiri.cfg from the path: paths are relative to the configuration.
func (b *builder) report(y *yaml.Node, path, text string) {
	path = strings.TrimPrefix(path, "daqiri.cfg.")
	b.p.issues = append(b.p.issues, Issue{Pos: b.pos(y), Path: path, Text: text})
}

func (b *builder) broken(y *yaml.Node, path, text string) *node {
	b.report(y, path, text)
	return &node{kind: kindBroken, pos: b.pos(y)}
}

func (b *builder) build(y *yaml.Node, path string, depth int) *node {
	if b.left--; b.left == 0 {
		return b.broken(y, path, "more than "+strconv.Itoa(maxNodes)+" values once aliases are expanded")
	}
	if b.left < 0 {
		return &node{kind: kindBroken, pos: b.pos(y)}
	}
	if depth > maxDepth {
		return b.broken(y, path, "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
	}
	n := &node{pos: b.pos(y)}
	switch y.Kind {
	case yaml.AliasNode:
		if b.open[y.Alias] {
			return b.broken(y, path, "the alias *"+y.Value+" contains itself")
		}
		b.open[y.Alias] = true
		defer delete(b.open, y.Alias)
		return b.build(y.Alias, path, depth+1)
	case yaml.ScalarNode:
		return b.scalar(y, path)
	case yaml.SequenceNode:
		n.kind = kindList
		for i, c := range y.Content {
			n.items = append(n.items, b.build(c, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
	case yaml.MappingNode:
		n.kind = kindTable
		b.table(n, y, path, depth)
	}
	return n
}

func (b *builder) scalar(y *yaml.Node, path string) *node {
	n := &node{kind: kindScalar, text: y.Value, pos: b.pos(y), quoted: y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0}
	switch tag := y.ShortTag(); tag {
	case "!!null":
		n.kind = kindNull
	case "!!str", "!!int", "!!float", "!!bool":
		n.tag = tag[2:]
	case "!!timestamp", "!!merge":
		n.tag = "str"
	default:
		return b.broken(y, path, "unknown tag "+tag)
	}
	return n
}

func (b *builder) table(n *node, y *yaml.Node, path string, depth int) {
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			b.report(k, path, "a key must be a plain word")
			continue
		}
		at := joinPath(path, k.Value)
		if k.ShortTag() == "!!merge" {
			merged = append(merged, b.mergeSources(v, path, depth)...)
			continue
		}
		val := b.build(v, at, depth+1)
		if first := n.field(k.Value); first != nil {
			b.report(k, at, "duplicate key (first at line "+strconv.Itoa(first.pos.Line)+")")
			continue
		}
		n.add(field{k.Value, b.pos(k), val})
	}
	for _, m := range merged {
		for _, f := range m.fields {
			if n.field(f.name) == nil {
				n.add(f)
			}
		}
	}
}

// mergeSources resolves the value of a merge key: a map or a list of maps, in order of precedence.
func (b *builder) mergeSources(v *yaml.Node, path string, depth int) []*node {
	m := b.build(v, path, depth+1)
	list := []*node{m}
	if m.kind == kindList {
		list = m.items
	}
	for _, it := range list {
		if it.kind != kindTable && it.kind != kindBroken {
			b.report(v, path, "<< takes a map or a list of maps")
			return nil
		}
	}
	return list
}

// unfilled returns the error text of a value with a <...> that the user of a template must replace, or "".
func unfilled(text string) string {
	i := strings.IndexByte(text, '<')
	if i < 0 {
		return ""
	}
	if j := strings.IndexByte(text[i:], '>'); j > 0 {
		return "placeholder not filled: " + text[i:i+j+1]
	}
	return ""
}
