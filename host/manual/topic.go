// Package manual is the user reference, as text for `daqiri-run help TOPIC` and as Markdown in docs/, both generated from the program's own
// tables.
package manual

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Topic is one page of the manual.
type Topic struct {
	Name  string        // name in help, and of the document in docs/ unless File is set: "exit-codes", "api/queue"
	File  string        // name of the document, if different
	Short string        // one line for the list of topics
	Parts func() []Part // called when the page is read
}

// A Part is an element of a topic: a heading in words or code, a paragraph, verbatim lines, Lua, or a table.
type Part struct {
	Head  string
	Code  string
	Words string
	Lines string
	Lua   string
	Table *Table
}

// A Table has a name for each column; the last column is for sentences.
type Table struct {
	Columns []string
	Rows    [][]string
}

// width is the maximum line length on a terminal.
const width = 100

// Text formats the topic for a terminal.
func (t Topic) Text() string {
	var b strings.Builder
	for _, p := range t.Parts() {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		switch {
		case p.Head != "":
			fmt.Fprintf(&b, "%s\n", heading(p.Head))
		case p.Code != "":
			fmt.Fprintf(&b, "%s\n", p.Code)
		case p.Lines+p.Lua != "":
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(p.Lines+p.Lua, "\n", "\n  "))
		case p.Table != nil:
			p.Table.text(&b)
		default:
			fmt.Fprintf(&b, "%s\n", fold(plain(p.Words), width, ""))
		}
	}
	return b.String()
}

// heading formats a heading for a terminal: in capitals, except for names.
func heading(s string) string {
	if strings.Contains(s, "`") {
		return plain(s)
	}
	return strings.ToUpper(s)
}

// Part returns the part of a topic under the given heading as a topic.
func (t Topic) Part(head string) (Topic, bool) {
	parts := t.Parts()
	first := slices.IndexFunc(parts, func(p Part) bool { return p.Head == head })
	if first < 0 {
		return Topic{}, false
	}
	end := first + 1
	for end < len(parts) && parts[end].Head == "" {
		end++
	}
	return Topic{Name: head, Short: head, Parts: func() []Part { return parts[first:end] }}, true
}

// Document returns the file name of the topic in docs/.
func (t Topic) Document() string { return cmp.Or(t.File, t.Name) + ".md" }

// longest is the maximum length of a cell that shares a line with others.
const longest = 40

// widest is the maximum total length of the cells on a line, without the last.
const widest = 48

// text aligns the columns. From the first column with sentences on, or if a row would exceed widest, each cell is on separate lines.
func (t *Table) text(b *strings.Builder) {
	wide, aligned := make([]int, len(t.Columns)), len(t.Columns)-1
	for k := len(t.Columns) - 1; k >= 0; k-- {
		for _, row := range t.Rows {
			wide[k] = max(wide[k], utf8.RuneCountInString(plain(row[k])))
		}
		if wide[k] > longest {
			aligned = k
		}
	}
	for k, sum := 0, 0; k < aligned; k++ {
		if sum += wide[k]; sum > widest {
			aligned = k
		}
	}
	for _, row := range t.Rows {
		line := " "
		for k, cell := range row[:aligned] {
			line += fmt.Sprintf(" %-*s ", wide[k], plain(cell))
		}
		indent := strings.Repeat(" ", utf8.RuneCountInString(line)+1)
		for k, cell := range row[aligned:] {
			if k > 0 {
				line = indent[1:]
			}
			fmt.Fprintf(b, "%s %s\n", line, fold(plain(cell), width-len(indent), indent))
		}
	}
}

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)

// plain removes code marks and link targets.
func plain(s string) string { return strings.ReplaceAll(link.ReplaceAllString(s, "$1"), "`", "") }

// Help returns the topic's name in the command help: the last part of its name, or the folder of a README.
func (t Topic) Help() string { return path.Base(strings.TrimSuffix(t.Name, "/README")) }

// Markdown formats the topic as a document.
func (t Topic) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n*Made from the program's tables by `make docs`; `daqiri-run help %s` prints the same.*\n", title(t.Short), t.Help())
	for _, p := range t.Parts() {
		b.WriteString("\n")
		switch {
		case p.Head != "":
			fmt.Fprintf(&b, "## %s\n", title(p.Head))
		case p.Code != "":
			fmt.Fprintf(&b, "## `%s`\n", p.Code)
		case p.Lines != "":
			fmt.Fprintf(&b, "```\n%s\n```\n", p.Lines)
		case p.Lua != "":
			fmt.Fprintf(&b, "```lua\n%s\n```\n", p.Lua)
		case p.Table != nil:
			p.Table.markdown(&b)
		default:
			fmt.Fprintf(&b, "%s\n", fold(p.Words, 120, ""))
		}
	}
	return b.String()
}

func (t *Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
	for _, row := range t.Rows {
		for _, cell := range row {
			fmt.Fprintf(b, "| %s ", strings.ReplaceAll(cell, "|", `\|`))
		}
		b.WriteString("|\n")
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
