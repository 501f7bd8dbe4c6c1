package bindings

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// usualFields are the default fields of b:show, as far as the queue's packets have them.
var usualFields = []string{"len", "eth_dst", "ipv4_src", "ipv4_dst", "udp_src", "udp_dst", "payload_len"}

// widestCell is the maximum number of characters of a table cell.
const widestCell = 32

// burstShow implements b:show{format, fields, n, csv}: the first packets as a table.
func burstShow(c *call) int {
	b := selfBurst(c)
	c.Check(b.b.Check())
	o := c.options(1)
	f := o.format()
	n := min(int(o.Whole("n", 10, 1, row.MaxInt)), b.b.N())
	names := o.textList("fields")
	if names == nil {
		names = usualFields
		if f != nil {
			names = f.Names()
		}
	}
	rows := c.shownRows(b, f, names, n)
	if o.Bool("csv", false) {
		c.Check(writeCSV(c.rt.Stdout, append([]string{"packet"}, names...), rows))
		return 0
	}
	text := tableText(append([]string{"packet"}, names...), rows)
	if more := b.b.N() - n; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	_, err := io.WriteString(c.rt.Stdout, text)
	c.Check(err)
	return 0
}

// textList reads a list of strings; nil if the option is absent.
func (o *options) textList(key string) (list []string) {
	t, ok := o.Get(key).(*lua.LTable)
	if !ok && o.Has(key) {
		o.Wrong(key, "a list of texts expected, got %s", row.Describe(o.Get(key)))
	}
	for i := 1; ok && i <= t.Len(); i++ {
		s, text := t.RawGetInt(i).(lua.LString)
		if !text {
			o.Wrong(key, "element %d: a text expected, got %s", i, row.Describe(t.RawGetInt(i)))
		}
		list = append(list, string(s))
	}
	return list
}

// shownRows returns the table rows of the first n packets: the fields read by column, and the decoded fields of the format.
func (c *call) shownRows(b *burst, f *luaformat.Format, names []string, n int) [][]string {
	rows := make([][]string, n)
	for i := range rows {
		rows[i] = append(make([]string, 0, len(names)+1), fmt.Sprint(i+1))
	}
	read := make([]map[string]format.Read, n)
	for _, name := range names {
		if f != nil && f.Declared != nil && slices.Contains(f.Declared.Names(), name) {
			for i := range rows {
				if read[i] == nil {
					read[i] = decodedPacket(b, f.Declared, i)
				}
				text := "-"
				if r, ok := read[i][name]; ok {
					text = luaformat.ReadText(r)
				}
				rows[i] = append(rows[i], text)
			}
			continue
		}
		values, has := make([]uint64, b.b.N()), make([]uint8, b.b.N())
		number, err := session.CompileNumber(name, f.Fields())
		if err == nil {
			_, err = b.b.Eval(number, values, has)
		}
		c.Check(err)
		for i := range rows {
			text := "-"
			if has[i] != 0 {
				text = luaformat.FieldText(name, values[i], number.Signed)
			}
			rows[i] = append(rows[i], text)
		}
	}
	return rows
}

// decodedPacket decodes packet i; a packet of another format has no fields.
func decodedPacket(b *burst, f *format.Format, i int) map[string]format.Read {
	out := map[string]format.Read{}
	data, err := b.b.Packet(0, i)
	if err != nil {
		return out
	}
	from, to, ok := session.LayerOf(data, b.b.Queue().Layer() == session.LayerFrame, f.Spec.Layer)
	if !ok {
		return out
	}
	read, err := f.Decode(data[from:to])
	if err != nil {
		return out
	}
	for _, r := range read {
		out[r.Name] = r
	}
	return out
}

func writeCSV(w io.Writer, head []string, rows [][]string) error {
	out := csv.NewWriter(w)
	err := out.Write(head)
	if err == nil {
		err = out.WriteAll(rows) // flushes
	}
	return err
}

// tableText formats rows with right-aligned columns.
func tableText(head []string, rows [][]string) string {
	all := append([][]string{head}, rows...)
	wide := make([]int, len(head))
	for _, cells := range all {
		for k, cell := range cells {
			cells[k] = row.Clip(cell, widestCell)
			wide[k] = max(wide[k], utf8.RuneCountInString(cells[k]))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for k, cell := range row {
			fmt.Fprintf(&line, "%s%s  ", strings.Repeat(" ", wide[k]-utf8.RuneCountInString(cell)), cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
