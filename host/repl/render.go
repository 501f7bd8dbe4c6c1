package repl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a value as text, or a table's entries.
type node struct {
	key   string // with its " = "; empty in an array
	text  string // when it is no table
	items []node
}

// write renders n at column col of a line that is indented by indent. What doesn't fit on that line gets a line for
// each entry; short elements of an array share lines.
func (n node) write(b *strings.Builder, indent, col int) {
	if n.items == nil {
		b.WriteString(n.text)
		return
	}
	if flat, ok := n.flat(formatWidth - col); ok {
		b.WriteString(flat)
		return
	}
	pad := strings.Repeat(" ", indent+2)
	b.WriteString("{")
	col = formatWidth // of the last element; the first begins a line
	for _, item := range n.items {
		width := utf8.RuneCountInString(item.text) + len(" ,")
		if item.short() && col+width <= formatWidth {
			b.WriteString(" " + item.text + ",")
			col += width
			continue
		}
		b.WriteString("\n" + pad + item.key)
		item.write(b, indent+2, indent+2+utf8.RuneCountInString(item.key)+1)
		b.WriteString(",")
		col = formatWidth
		if item.short() {
			col = indent + 1 + width
		}
	}
	b.WriteString("\n" + strings.Repeat(" ", indent) + "}")
}

// short says whether n is an element of an array that may share a line with others.
func (n node) short() bool { return n.key == "" && n.items == nil && len(n.text) < 20 }

// flat renders n on one line, if that takes no more than width columns.
func (n node) flat(width int) (string, bool) {
	if n.items == nil {
		return n.text, utf8.RuneCountInString(n.text) <= width && !strings.Contains(n.text, "\n")
	}
	var b strings.Builder
	b.WriteString("{")
	for i, item := range n.items {
		if i > 0 {
			b.WriteString(", ")
		}
		text, ok := item.flat(width)
		b.WriteString(item.key + text)
		if !ok || b.Len() > 4*width { // bytes bound runes: no need to render what can't fit
			return "", false
		}
	}
	b.WriteString("}")
	return b.String(), utf8.RuneCountInString(b.String()) <= width
}

// quote writes s as a Lua 5.1 string literal; readable text stays as it is. A long one is cut and its length told.
func quote(s string) string {
	total := len(s)
	if total > formatString {
		s = strings.ToValidUTF8(s[:formatString], "")
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == utf8.RuneError && w == 1 || !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+w]) {
				fmt.Fprintf(&b, `\%03d`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	if total > formatString {
		fmt.Fprintf(&b, "… (%d bytes)", total)
	}
	return b.String()
}
