package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Override replaces one value before the check, as --set PATH=VALUE does. A path selects list elements by name, by id or by index:
// interfaces.rx_port.rx.queues.0.batch_size or interfaces[0].rx.queues[0].batch_size. Brackets contain an index; a bare word is tried as a name, then
// as an id, then as an index. Missing keys are created.
type Override struct {
	Path   string
	Text   string // the value as YAML text
	Value  any    // the value itself, instead of Text; nil: none
	Source string // name in errors; "--set" if empty
}

// ParseOverride parses PATH=VALUE.
func ParseOverride(arg string) (Override, error) {
	path, text, ok := strings.Cut(arg, "=")
	if !ok || path == "" {
		return Override{}, fmt.Errorf("%q is not PATH=VALUE", arg)
	}
	return Override{Path: path, Text: text}, nil
}

// segment is one step of a path.
type segment struct {
	word    string
	index   bool // an element of a list by its place: written in brackets, or in a JSON pointer
	pointer bool // of a JSON pointer: also a key of a map
}

func splitPath(path string) ([]segment, error) {
	var segs []segment
	for i, part := range strings.Split(path, ".") {
		word, rest, _ := strings.Cut(part, "[")
		if word != "" {
			segs = append(segs, segment{word: word})
		} else if rest == "" || i == 0 {
			return nil, fmt.Errorf("an empty step in the path")
		}
		for rest != "" {
			in, tail, ok := strings.Cut(rest, "]")
			if _, err := strconv.ParseUint(in, 10, 31); err != nil || !ok || tail != "" && tail[0] != '[' {
				return nil, fmt.Errorf("brackets hold an index, as in queues[0]")
			}
			segs = append(segs, segment{word: in, index: true})
			rest = strings.TrimPrefix(tail, "[")
		}
	}
	return segs, nil
}

// override applies one override to the document. cfg is the configuration inside root.
func (p *parser) override(root, cfg *node, o Override) {
	name := o.Source
	if name == "" {
		name = "--set"
	}
	at := Source{Pos: Pos{File: name + " " + o.Path}}
	segs, err := splitPath(strings.TrimPrefix(o.Path, "daqiri.cfg."))
	if err != nil {
		p.errorf(at, "%v", err)
		return
	}
	val := p.overrideValue(o, at)
	if val.kind == kindBroken {
		return
	}
	n := cfg
	if first := segs[0].word; schema.ConfigSection.Find(first) == nil && root != cfg && root.get(first) != nil {
		n = root // an unknown section
	}
	for i, s := range segs {
		var fresh *node
		if i == len(segs)-1 {
			fresh = val
		} else {
			fresh = &node{kind: kindTable, pos: at.Pos}
			if segs[i+1].index {
				fresh.kind = kindList
			}
		}
		next, err := step(n, s, fresh, i == len(segs)-1)
		if err != nil {
			p.errorf(at, "%v", err)
			return
		}
		n = next
	}
}

func (p *parser) overrideValue(o Override, at Source) *node {
	if o.Value != nil {
		return p.fromValue(o.Value, at, 0)
	}
	if strings.TrimSpace(o.Text) == "" {
		return &node{kind: kindScalar, tag: "str", pos: at.Pos}
	}
	sub := &parser{}
	n := sub.readYAML("", []byte(o.Text))
	for _, is := range sub.issues {
		p.errorf(at, "the value %q: %s", o.Text, is.Text)
	}
	if len(sub.issues) > 0 {
		return &node{kind: kindBroken}
	}
	n.moveTo(at.Pos)
	return n
}

func (n *node) moveTo(pos Pos) {
	n.pos = pos
	for i := range n.fields {
		n.fields[i].pos = pos
		n.fields[i].val.moveTo(pos)
	}
	for _, it := range n.items {
		it.moveTo(pos)
	}
}

// step returns the child of a node selected by s. The last step replaces it with fresh; other steps create it if it is missing.
func step(n *node, s segment, fresh *node, last bool) (*node, error) {
	switch n.kind {
	case kindNull, kindEmpty:
		n.kind = kindTable
		if s.index {
			n.kind = kindList
		}
		return step(n, s, fresh, last)
	case kindTable:
		if s.index {
			return nil, fmt.Errorf("[%s]: this is a map, not a list", s.word)
		}
		f := n.field(s.word)
		if f == nil {
			n.add(field{s.word, fresh.pos, fresh})
			return fresh, nil
		}
		if last {
			f.pos, f.val = fresh.pos, fresh
		}
		return f.val, nil
	case kindList:
		i, err := element(n, s)
		if err != nil {
			return nil, err
		}
		if i == len(n.items) {
			n.items = append(n.items, fresh)
		} else if last {
			n.items[i] = fresh
		}
		return n.items[i], nil
	}
	return nil, fmt.Errorf("%q: the value above it is %s, which has no parts", s.word, n.describe())
}

// element finds a list element by name, id or index. The index after the last element selects a new one.
func element(n *node, s segment) (int, error) {
	var names []string
	for _, key := range []string{"name", "id"} {
		for i, it := range n.items {
			v := it.get(key)
			if v == nil || s.index {
				continue
			}
			if v.text == s.word {
				return i, nil
			}
			if key == "name" {
				names = append(names, v.text)
			}
		}
	}
	i, err := strconv.Atoi(s.word)
	switch {
	case err != nil:
		return 0, fmt.Errorf("no element is called %q%s", s.word, didYouMean(s.word, names))
	case i < 0 || i > len(n.items):
		return 0, fmt.Errorf("index %d is outside a list of %d", i, len(n.items))
	}
	return i, nil
}
