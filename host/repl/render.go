package repl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is the text of a value, or the entries of a table.
type node struct {
	key   string // with " = "; empty in an array
	text  string // for values other than tables
	items []node
}

// write renders n at column col of a line indented by indent. A table that does not fit on the line gets a line per entry; short array elements
// share lines.
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
	col = formatWidth // of the last element; the first starts a line
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

// short reports whether n is an array element that may share a line.
func (n node) short() bool { return n.key == "" && n.items == nil && len(n.text) < 20 }

// flat renders n on one line if it fits width columns.
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
		if !ok || b.Len() > 4*width { // bytes bound runes: it can't fit
			return "", false
		}
	}
	b.WriteString("}")
	return b.String(), utf8.RuneCountInString(b.String()) <= width
}

// quote formats s as a Lua 5.1 string literal; printable text is unchanged. A long string is truncated, with its length.
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
