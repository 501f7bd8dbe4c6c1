package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// Columns are the column titles of Table.
var Columns = []string{"field", "bits", "at bit", "what it is"}

// Table returns a row of Columns per field, with names and expressions as code.
func (f *Format) Table() [][]string {
	var rows [][]string
	lists := f.Lists
	for i, x := range f.Fields {
		for len(lists) > 0 && lists[0].order == i {
			rows, lists = append(rows, f.listRows(lists[0])...), lists[1:]
		}
		name := "`" + x.Name + "`"
		if x.Reserved {
			name = "reserved"
		}
		rows = append(rows, []string{name, fmt.Sprint(x.Bits), x.column(x.At), about(x.typeText(), x.words(), x.when)})
	}
	for _, l := range lists {
		rows = append(rows, f.listRows(l)...)
	}
	return rows
}

func (f *Format) listRows(l *List) [][]string {
	rows := [][]string{{"`" + l.List + "`", fmt.Sprintf("%d each", l.itemBits), l.column(l.At), about("list of `"+l.Count+"`", l.Doc, l.when)}}
	for _, r := range l.Rows {
		rows = append(rows, []string{"`" + l.List + "." + r.Name + "`", fmt.Sprint(r.Bits), "in an item", about(r.typeText(), r.words(), nil)})
	}
	for _, i := range l.Items {
		rows = append(rows, []string{"`" + i.Name + "`", fmt.Sprint(l.Rows[len(l.Rows)-1].Bits), "in an item",
			fmt.Sprintf("number; the item with `%s` 0x%x", l.Key, i.Number)})
	}
	return rows
}

// next is the position of a row that follows optional ones; Head explains it.
const next = "next"

// column returns the position of a row for a table: next where it depends on which rows above are there, unless it is declared.
func (p place) column(declared string) string {
	if declared == "" && slices.ContainsFunc(p.terms, func(t expr.Term) bool { return len(t.When) > 0 }) {
		return next
	}
	return p.at()
}

// at returns the description of a position: a number, or an expression as code.
func (p place) at() string {
	text := ""
	if p.bit != 0 || len(p.terms) == 0 {
		text = fmt.Sprint(p.bit)
	}
	for _, t := range p.terms {
		if text != "" {
			text += " + "
		}
		switch {
		case t.Count != nil && t.Bits == 1:
			text += t.Count.String()
		case t.Count != nil:
			text += fmt.Sprintf("%d * %s", t.Bits, t.Count)
		case len(t.When) > 0:
			text += fmt.Sprintf("%d if %s", t.Bits, t.When[len(t.When)-1])
		}
	}
	if len(p.terms) > 0 {
		text = "`" + text + "`"
	}
	return text
}

func (r Row) typeText() string {
	text := r.Kind.words()
	text = strings.TrimPrefix(strings.TrimPrefix(text, "a "), "an ")
	if r.Little {
		text += ", little endian"
	}
	return text
}

// about joins the description of a row: its type, text and conditions.
func about(kind, words string, when []*expr.Expr) string {
	parts := []string{kind}
	if words != "" {
		parts = append(parts, words)
	}
	for _, w := range when {
		parts = append(parts, "where `"+w.String()+"`")
	}
	return strings.Join(parts, "; ")
}

// words returns the field's doc and a description of its values.
func (r Row) words() string {
	var parts []string
	if r.Doc != "" {
		parts = append(parts, r.Doc)
	}
	if r.Const != nil {
		parts = append(parts, "always "+shown(*r.Const, r))
	}
	if r.Scale != 0 || r.Offset != 0 || r.Unit != "" {
		scale := r.Scale
		if scale == 0 {
			scale = 1
		}
		text := strings.TrimSpace(fmt.Sprintf("shown times %g %s", scale, r.Unit))
		if r.Offset != 0 {
			text += fmt.Sprintf(", plus %g", r.Offset)
		}
		if scale == 1 && r.Offset == 0 {
			text = "in " + r.Unit
		}
		parts = append(parts, text)
	}
	if r.Hex {
		parts = append(parts, "shown in hexadecimal")
	}
	if r.Is != "" {
		parts = append(parts, "by default `"+r.Is+"`")
	}
	var values []string
	for _, v := range r.Values {
		values = append(values, fmt.Sprintf("%s %s", shown(v.Number, r), v.Name))
	}
	if len(values) > 0 {
		parts = append(parts, strings.Join(values, ", "))
	}
	return strings.Join(parts, "; ")
}

// Head returns a description of the whole format, as sentences.
func (f *Format) Head() []string {
	s := f.Spec
	begins := map[string]string{"frame": "the frame's start", "network": "the network header's start", "transport": "the transport header's start",
		"payload": "the innermost payload's start"}[s.Layer]
	text := []string{fmt.Sprintf("Bits count from %s.", begins)}
	if n, _ := f.Fixed(); !f.Moves() {
		text = append(text, fmt.Sprintf("The header has %d bytes.", n))
	}
	if slices.ContainsFunc(f.Table(), func(row []string) bool { return row[2] == next }) {
		text = append(text, "Fields at *next* follow the last field above that the packet has.")
	}
	if s.Where != "" {
		text = append(text, "Packets are those where `"+s.Where+"`.")
	}
	if s.Payload != "" {
		text = append(text, "The payload behind the header has `"+s.Payload+"` bytes.")
	}
	if s.Data != "" {
		text = append(text, "Packets carry data where `"+s.Data+"`.")
	}
	text = append(text, s.Samples.sentences()...)
	if len(s.Per) > 0 {
		text = append(text, fmt.Sprintf("`%s` begins again for each `%s`.", s.Sequence, strings.Join(s.Per, "`, `")))
	} else if s.Sequence != "" {
		text = append(text, "`"+s.Sequence+"` counts packets.")
	}
	if s.Place != "" {
		text = append(text, "`s:reorder` places them, for example, with `"+s.Place+"`.")
	}
	if s.Document != "" {
		text = append(text, "Taken from: "+s.Document+".")
	}
	return text
}

// Page returns a description of the format in Markdown.
func (f *Format) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", f.label())
	if f.Spec.Title != "" {
		fmt.Fprintf(&b, "%s. ", f.Spec.Title)
	}
	b.WriteString(strings.Join(f.Head(), " ") + "\n\n")
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(Columns, " | "), strings.Repeat("---|", len(Columns)))
	for _, row := range f.Table() {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", "\\|")
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}
