package script

import (
	"slices"
	"strings"
)

// node is a part of a generated program: text interleaved with child nodes. Its kind determines what can be omitted or replaced when a program is
// shrunk.
type node struct {
	kind nodeKind
	text []string // one more than kids; none for a block
	kids []*node
}

type nodeKind byte

const (
	isExpr  nodeKind = iota
	isStmt           // on separate lines
	isBlock          // children are statements
	isList           // children are expressions separated by commas
)

// put creates a node from a text in which each @ stands for the next child.
func put(kind nodeKind, text string, kids ...*node) *node {
	return &node{kind, strings.Split(text, "@"), kids}
}

func expr(text string, kids ...*node) *node { return put(isExpr, text, kids...) }
func stmt(text string, kids ...*node) *node { return put(isStmt, text, kids...) }
func list(kids ...*node) *node              { return &node{kind: isList, kids: kids} }

// source returns the program text.
func (n *node) source() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	for i, kid := range n.kids {
		switch {
		case n.kind == isList && i > 0:
			b.WriteString(", ")
		case n.kind == isExpr || n.kind == isStmt:
			b.WriteString(n.text[i])
		}
		kid.write(b)
	}
	if len(n.text) > 0 {
		b.WriteString(n.text[len(n.kids)])
	}
	if n.kind == isStmt {
		b.WriteByte('\n')
	}
}

// shrink reduces a program in place while interesting returns true: it omits statements and list elements, and replaces statements by their
// blocks and expressions by their operands.
func shrink(root *node, interesting func() bool) {
	for before := -1; before != len(root.source()); {
		before = len(root.source())
		var all []*node
		root.collect(&all)
		for _, n := range all {
			n.shrinkKids(interesting)
		}
	}
}

func (n *node) collect(all *[]*node) {
	*all = append(*all, n)
	for _, kid := range n.kids {
		kid.collect(all)
	}
}

func (n *node) shrinkKids(interesting func() bool) {
	if n.kind == isBlock || n.kind == isList {
		for size := len(n.kids); size > 0; size /= 2 {
			for at := 0; at+size <= len(n.kids); {
				if !n.try(append(slices.Clone(n.kids[:at]), n.kids[at+size:]...), interesting) {
					at += size
				}
			}
		}
	}
	for i := 0; i < len(n.kids); i++ {
		for _, other := range n.kids[i].substitutes() {
			if n.kind == isBlock && other.kind == isBlock {
				if n.try(slices.Concat(n.kids[:i], other.kids, n.kids[i+1:]), interesting) {
					break
				}
				continue
			}
			kids := slices.Clone(n.kids)
			kids[i] = other
			if n.try(kids, interesting) {
				break
			}
		}
	}
}

func (n *node) try(kids []*node, interesting func() bool) bool {
	was := n.kids
	n.kids = kids
	if interesting() {
		return true
	}
	n.kids = was
	return false
}

// substitutes returns smaller nodes that can replace n.
func (n *node) substitutes() []*node {
	var smaller []*node
	if n.kind == isExpr {
		if s := n.source(); len(s) > 3 {
			smaller = append(smaller, expr("nil"), expr("1"))
		}
	}
	var look func(m *node, depth int)
	look = func(m *node, depth int) {
		for _, kid := range m.kids {
			if n.kind == isExpr && kid.kind == isExpr || n.kind == isStmt && kid.kind == isBlock {
				smaller = append(smaller, kid)
			}
			if depth > 0 {
				look(kid, depth-1)
			}
		}
	}
	look(n, 1)
	return smaller
}
