package value

import (
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// The ledger as shown by print and the prompt: the accounts as a table, and the significant figures below them.

// alwaysShown are the figures that are shown even if they are 0.
var alwaysShown = map[string]bool{"packets": true, "dropped": true}

// describeLedger sets __tostring and __brief of the ledger's tables: of root, which may have been extended to a summary, and of those below.
func describeLedger(L *lua.LState, l *stats.Ledger, seconds float64, root *lua.LTable, below map[string]*lua.LTable) {
	brief := L.NewFunction(func(L *lua.LState) int {
		L.Push(brief(L, L.CheckTable(1)))
		return 1
	})
	figures := L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(strings.Join(figureLines(L, L.CheckTable(1), ""), "\n")))
		return 1
	})
	for _, t := range below {
		t.Metatable.(*lua.LTable).RawSetString("__brief", brief)
		t.Metatable.(*lua.LTable).RawSetString("__tostring", figures)
	}
	root.Metatable.(*lua.LTable).RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		reason, _ := root.RawGetString("reason").(lua.LString)
		L.Push(lua.LString(ledgerText(l, seconds, string(reason))))
		return 1
	}))
}

// brief copies a table of figures, omitting zeros and tables without nonzero figures.
func brief(L *lua.LState, t *lua.LTable) *lua.LTable {
	out := L.NewTable()
	t.ForEach(func(k, v lua.LValue) {
		if inner, ok := v.(*lua.LTable); ok {
			if first, _ := brief(L, inner).Next(lua.LNil); first == lua.LNil {
				return
			}
		} else if v == lua.LNumber(0) && !alwaysShown[k.String()] {
			return
		}
		out.RawSet(k, v)
	})
	return out
}

// figureLines formats the figures of brief, one "name = value" per line, sorted; above prefixes the names.
func figureLines(L *lua.LState, t *lua.LTable, above string) (lines []string) {
	brief(L, t).ForEach(func(k, v lua.LValue) {
		if inner, ok := v.(*lua.LTable); ok {
			lines = append(lines, figureLines(L, inner, above+k.String()+".")...)
			return
		}
		lines = append(lines, above+k.String()+" = "+v.String())
	})
	slices.Sort(lines)
	return lines
}

// ledgerText formats the accounts line by line, and the drop reasons.
func ledgerText(l *stats.Ledger, seconds float64, reason string) string {
	rows := [][]string{{fmt.Sprintf("%.4g s", seconds), "in", "out", "held", "dropped"}}
	drops := ""
	for i := range l.Lines {
		x := &l.Lines[i]
		rows = append(rows, []string{x.Title(), fmt.Sprint(x.In), fmt.Sprint(x.Out), fmt.Sprint(x.Held), fmt.Sprint(x.Dropped.Sum())})
		for _, d := range x.Dropped {
			if d.N > 0 {
				drops += fmt.Sprintf("\ndropped %s.%s: %d", x.Title(), d.Name, d.N)
			}
		}
	}
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, cells := range rows {
		fmt.Fprintf(&b, "%-*s", widths[0], cells[0])
		for i, cell := range cells[1:] {
			fmt.Fprintf(&b, "  %*s", widths[i+1], cell)
		}
		b.WriteByte('\n')
	}
	text := strings.TrimSuffix(b.String(), "\n") + drops
	if reason != "" {
		text += "\nended: " + reason
	}
	return text
}
