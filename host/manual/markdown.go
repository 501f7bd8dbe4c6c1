package manual

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Styles of a terminal, as parameters of the escape sequence SGR.
const (
	bold   = "1"
	italic = "3"
	cyan   = "36"
	faint  = "2"
)

// least is the narrowest column of a table.
const least = 12

// Terminal formats a Markdown document for a terminal with the given number of columns: headings, lists, code and tables without their marks. With
// color it uses bold, italic and colored text.
func Terminal(markdown string, columns int, color bool) string {
	source := []byte(markdown)
	p := &page{source: source, color: color}
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	return p.blocks(root, min(columns, width)) + "\n"
}

// page formats the nodes of one document.
type page struct {
	source []byte
	color  bool
}

// style marks each word of a text, so that a line or a cell can end between them.
func (p *page) style(style, s string) string {
	if !p.color {
		return s
	}
	return word.ReplaceAllString(s, "\x1b["+style+"m$0\x1b[0m")
}

var (
	word   = regexp.MustCompile(`\S+`)
	escape = regexp.MustCompile("\x1b\\[[0-9]*m")
)

// runes counts the characters of a text that take space on a terminal.
func runes(s string) int { return utf8.RuneCountInString(escape.ReplaceAllString(s, "")) }

// blocks formats the blocks within a node, with an empty line between two of them.
func (p *page) blocks(n ast.Node, room int) string {
	var all []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if s := p.block(c, room); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}

// block formats one block, without a newline at its end; HTML is left out.
func (p *page) block(n ast.Node, room int) string {
	switch n := n.(type) {
	case *ast.Heading:
		title := p.style(bold, fold(p.inline(n), room, ""))
		if n.Level == 1 {
			title += "\n" + strings.Repeat("═", min(runes(title), room))
		}
		return title
	case *ast.Paragraph, *ast.TextBlock:
		return fold(p.inline(n), room, "")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		lines := strings.TrimRight(string(n.Lines().Value(p.source)), "\n")
		return indent(p.style(cyan, strings.ReplaceAll(lines, "\t", "    ")), "    ")
	case *ast.List:
		return p.list(n, room)
	case *ast.Blockquote:
		return indent(p.blocks(n, room-2), "│ ")
	case *ast.ThematicBreak:
		return strings.Repeat("─", room)
	case *tables.Table:
		return p.table(n, room)
	}
	return ""
}

// indent puts a text before each line.
func indent(s, before string) string { return before + strings.ReplaceAll(s, "\n", "\n"+before) }

// list formats the items of a list, each behind a dot or its number.
func (p *page) list(n *ast.List, room int) string {
	var all []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		wide := utf8.RuneCountInString(mark)
		separator := "\n\n"
		if n.IsTight {
			separator = "\n"
		}
		var parts []string
		for c := item.FirstChild(); c != nil; c = c.NextSibling() {
			parts = append(parts, p.block(c, room-wide))
		}
		all = append(all, mark+strings.TrimLeft(indent(strings.Join(parts, separator), strings.Repeat(" ", wide)), " "))
	}
	if n.IsTight {
		return strings.Join(all, "\n")
	}
	return strings.Join(all, "\n\n")
}

// inline formats the text within a block as one line.
func (p *page) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(p.source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.CodeSpan:
			b.WriteString(p.style(cyan, p.inline(c)))
		case *ast.Emphasis:
			b.WriteString(p.style(map[int]string{1: italic, 2: bold}[c.Level], p.inline(c)))
		case *ast.Link:
			b.WriteString(p.inline(c))
			if to := string(c.Destination); strings.Contains(to, "://") {
				b.WriteString(p.style(faint, " ("+to+")"))
			}
		case *ast.AutoLink:
			b.Write(c.URL(p.source))
		case *ast.Image:
			b.WriteString(p.style(faint, "[picture: "+p.inline(c)+"]"))
		}
	}
	return b.String()
}

// fold breaks a text into lines of at most most characters; lines after the first begin with before.
func fold(s string, most int, before string) string {
	var b strings.Builder
	room := most
	for i, word := range strings.Fields(s) {
		n := runes(word)
		switch {
		case i == 0:
			room = most - n
		case n+1 > room:
			b.WriteString("\n" + before)
			room = most - n
		default:
			b.WriteString(" ")
			room -= n + 1
		}
		b.WriteString(word)
	}
	return b.String()
}

// table formats a table: a line below the names of the columns, and cells of several lines where the text is wider than the terminal.
func (p *page) table(n *tables.Table, room int) string {
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cell := p.inline(c)
			if row.Kind() == tables.KindTableHeader {
				cell = p.style(bold, cell)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	wide := columnWidths(rows, room)
	var lines []string
	for i, cells := range rows {
		lines = append(lines, tableRow(cells, wide)...)
		if i == 0 {
			rule := ""
			for _, w := range wide {
				rule += strings.Repeat("─", w) + "  "
			}
			lines = append(lines, strings.TrimRight(rule, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// tableRow formats one row, each cell within its column.
func tableRow(cells []string, wide []int) (lines []string) {
	most, folded := 1, make([][]string, len(cells))
	for k, cell := range cells {
		folded[k] = strings.Split(fold(cell, wide[k], ""), "\n")
		most = max(most, len(folded[k]))
	}
	for i := range most {
		line := ""
		for k, cell := range folded {
			part := ""
			if i < len(cell) {
				part = cell[i]
			}
			line += part + strings.Repeat(" ", max(0, wide[k]-runes(part))+2)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// columnWidths returns the width of each column. Where the cells need more than there is, the widest columns get narrower, down to their longest
// word.
func columnWidths(rows [][]string, room int) []int {
	wide := make([]int, len(rows[0]))
	narrowest := make([]int, len(rows[0]))
	sum := 2 * (len(wide) - 1)
	for k := range wide {
		narrowest[k] = least
		for _, cells := range rows {
			wide[k] = max(wide[k], runes(cells[k]))
			for _, w := range strings.Fields(cells[k]) {
				narrowest[k] = max(narrowest[k], runes(w))
			}
		}
		sum += wide[k]
	}
	for sum > room {
		widest := -1
		for k := range wide {
			if wide[k] > narrowest[k] && (widest < 0 || wide[k] > wide[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			break // words are never cut
		}
		wide[widest]--
		sum--
	}
	return wide
}
