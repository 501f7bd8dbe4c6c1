package spec

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Render returns the text of a configuration file in which values that exist are replaced; comments are kept, blank lines are not. A path is that
// of an Override, or a JSON pointer from the root of the document: /daqiri/cfg/interfaces/0/address.
//
// The result is checked as ParseText does it. A <placeholder> in a section beside daqiri, which ParseText accepts, is refused.
func Render(name, text string, set []Override) (string, error) {
	p := &parser{}
	if p.readYAML(name, []byte(text)); len(p.issues) > 0 {
		return "", &Errors{p.issues}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(blankDirective([]byte(text)), &doc); err != nil || len(doc.Content) == 0 {
		return "", errors.Join(err, fmt.Errorf("%s: the configuration is empty", name))
	}
	root := doc.Content[0]
	for _, o := range set {
		if err := replace(root, o); err != nil {
			return "", &SetError{o.Path, err}
		}
	}
	b := builder{p: p, file: name, left: maxNodes, open: map[*yaml.Node]bool{}}
	if _, _, err := p.run(name, b.build(root, "", 0)); err != nil {
		return "", err
	}
	if b.placeholders(root, ""); len(p.issues) > 0 {
		return "", &Errors{p.issues}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := enc.Encode(&doc)
	return out.String(), err
}

// SetError is the error of a path or a value that Render cannot set.
type SetError struct {
	Path string
	Err  error
}

// Error names the flag of the command line.
func (e *SetError) Error() string { return "--set " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SetError) Unwrap() error { return e.Err }

// replace sets the value at the path of o, which must exist.
func replace(root *yaml.Node, o Override) error {
	segs, err := renderPath(root, o.Path)
	if err != nil {
		return err
	}
	var value yaml.Node
	if err := yaml.Unmarshal([]byte(o.Text), &value); err != nil {
		return fmt.Errorf("the value %q: %w", o.Text, err)
	}
	n := root
	for _, s := range segs {
		if n, err = existing(n, s); err != nil {
			return err
		}
	}
	fresh := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle}
	if len(value.Content) > 0 {
		fresh = value.Content[0]
	}
	move(fresh, n.Line, n.Column)
	fresh.HeadComment, fresh.LineComment, fresh.FootComment, fresh.Anchor = n.HeadComment, n.LineComment, n.FootComment, n.Anchor
	*n = *fresh
	return nil
}

// renderPath splits a path of --set or a JSON pointer. Paths of --set begin in the configuration, or at another section of the document.
func renderPath(root *yaml.Node, path string) ([]segment, error) {
	if rest, ok := strings.CutPrefix(path, "/"); ok {
		var segs []segment
		for word := range strings.SplitSeq(rest, "/") {
			word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
			segs = append(segs, segment{word: word, index: true, pointer: true})
		}
		return segs, nil
	}
	segs, err := splitPath(strings.TrimPrefix(path, "daqiri.cfg."))
	if err == nil && schema.ConfigSection.Find(segs[0].word) != nil && member(root, "daqiri") != nil {
		segs = append([]segment{{word: "daqiri"}, {word: "cfg"}}, segs...)
	}
	return segs, err
}

// existing returns the part of n that s selects.
func existing(n *yaml.Node, s segment) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.MappingNode:
		if v := member(n, s.word); v != nil && (s.pointer || !s.index) {
			return v, nil
		}
		var names []string
		for k := 0; k < len(n.Content); k += 2 {
			names = append(names, n.Content[k].Value)
		}
		return nil, fmt.Errorf("no key %q%s", s.word, didYouMean(s.word, names))
	case yaml.SequenceNode:
		b := builder{p: &parser{}, left: maxNodes, open: map[*yaml.Node]bool{}}
		k, err := element(b.build(n, "", 0), s)
		if err == nil && k == len(n.Content) {
			err = fmt.Errorf("index %d is outside a list of %d", k, k)
		}
		if err != nil {
			return nil, err
		}
		return n.Content[k], nil
	case yaml.AliasNode:
		return nil, fmt.Errorf("%q is below the alias *%s: set the value where the anchor is", s.word, n.Value)
	}
	return nil, fmt.Errorf("%q: the value above it has no parts", s.word)
}

// member returns the value of a key of a map, or nil.
func member(n *yaml.Node, name string) *yaml.Node {
	for k := 0; n.Kind == yaml.MappingNode && k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == name {
			return n.Content[k+1]
		}
	}
	return nil
}

// move gives a value the position of the one that it replaces, which errors name.
func move(n *yaml.Node, line, column int) {
	n.Line, n.Column = line, column
	for _, c := range n.Content {
		move(c, line, column)
	}
}

// placeholders reports the texts that contain a <placeholder>.
func (b *builder) placeholders(n *yaml.Node, path string) {
	for k, c := range n.Content {
		if n.Kind == yaml.SequenceNode {
			b.placeholders(c, path+"["+strconv.Itoa(k)+"]")
		} else if k%2 == 1 {
			b.placeholders(c, joinPath(path, n.Content[k-1].Value))
		}
	}
	if fault := unfilled(n.Value); fault != "" && n.Kind == yaml.ScalarNode {
		b.report(n, path, fault)
	}
}
