package repl

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// recordColumns is the maximum number of columns of a table of records.
const recordColumns = 10

// records formats a list of tables that have the same few plain fields as rows, each prefixed with its index.
func (f *formatter) records(t *lua.LTable, n, others int) (string, bool) {
	if n < 2 || others > 0 {
		return "", false
	}
	var names []string
	for i := 1; i <= n; i++ {
		row, ok := t.RawGetInt(i).(*lua.LTable)
		if !ok || row.Metatable != lua.LNil || row.Len() > 0 {
			return "", false
		}
		plain := true
		row.ForEach(func(k, v lua.LValue) {
			key, named := k.(lua.LString)
			plain = plain && named && isName(string(key)) && v.Type() != lua.LTTable && v.Type() != lua.LTFunction
			if named && !slices.Contains(names, string(key)) {
				names = append(names, string(key))
			}
		})
		if !plain || len(names) > recordColumns {
			return "", false
		}
	}
	if len(names) == 0 {
		return "", false
	}
	slices.Sort(names)
	return f.rows(t, n, names)
}

// rows formats the table, unless it is wider than a terminal.
func (f *formatter) rows(t *lua.LTable, n int, names []string) (string, bool) {
	cells := [][]string{append([]string{""}, names...)}
	for i := 1; i <= min(n, formatItems); i++ {
		row := []string{fmt.Sprint(i)}
		for _, name := range names {
			text := ""
			if v := t.RawGetInt(i).(*lua.LTable).RawGetString(name); v != lua.LNil {
				if text = f.node(v, formatDepth).text; v.Type() == lua.LTString {
					text = strings.Trim(text, `"`)
				}
			}
			row = append(row, text)
		}
		cells = append(cells, row)
	}
	wide, sum := make([]int, len(names)+1), 0
	for k := range wide {
		for _, row := range cells {
			wide[k] = max(wide[k], utf8.RuneCountInString(row[k]))
		}
		sum += wide[k] + 2
	}
	if sum > formatWidth {
		return "", false
	}
	var b strings.Builder
	for i, row := range cells {
		line := ""
		for k, cell := range row {
			pad := strings.Repeat(" ", wide[k]-utf8.RuneCountInString(cell))
			if k == 0 {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.TrimRight(line, " "))
	}
	if n > formatItems {
		fmt.Fprintf(&b, "\n… %d more", n-formatItems)
	}
	return b.String(), true
}
