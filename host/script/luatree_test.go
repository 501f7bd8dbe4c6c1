package script

import (
	"slices"
	"strings"
)

// node is a piece of a generated program: text with other nodes in between. What may be left out or replaced when a
// program is shrunk depends on its kind.
type node struct {
	kind nodeKind
	text []string // one more than kids; a block has none
	kids []*node
}

type nodeKind byte

const (
	isExpr  nodeKind = iota
	isStmt           // on lines of its own
	isBlock          // its kids are statements
	isList           // its kids are expressions between commas
)

// put makes a node of a text in which each @ stands for the next kid.
func put(kind nodeKind, text string, kids ...*node) *node {
	return &node{kind, strings.Split(text, "@"), kids}
}

func expr(text string, kids ...*node) *node { return put(isExpr, text, kids...) }
func stmt(text string, kids ...*node) *node { return put(isStmt, text, kids...) }
func list(kids ...*node) *node              { return &node{kind: isList, kids: kids} }

// source is the program's text.
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

// shrink makes a program smaller, in place, as long as it stays interesting: it leaves statements and list elements
// out, puts blocks in the place of statements and operands in the place of expressions.
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

// substitutes are smaller nodes that may stand where n stands.
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
