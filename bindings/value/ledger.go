package value

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Ledger converts a ledger to nested tables: l.rx_port.rx.dropped, l.disk.written. If a name is both a figure and a prefix of other figures, as
// metrics may be, the latter are under name_by. Reading a misspelt name raises. seconds is the duration that the ledger covers.
func Ledger(L *lua.LState, l *stats.Ledger, seconds float64) *lua.LTable {
	names := l.Names()
	figures := map[string]bool{}
	for _, name := range names {
		figures[name] = true
	}
	root := L.NewTable()
	tables := map[string]*lua.LTable{"": root}
	for _, name := range names {
		v, _ := l.Lookup(name)
		parts := strings.Split(name, ".")
		t, path := root, ""
		for i, part := range parts[:len(parts)-1] {
			if figures[strings.Join(parts[:i+1], ".")] {
				part += "_by"
			}
			path += "." + part
			if tables[path] == nil {
				tables[path] = L.NewTable()
				t.RawSet(ledgerKey(part), tables[path])
			}
			t = tables[path]
		}
		t.RawSet(ledgerKey(parts[len(parts)-1]), lua.LNumber(v))
	}
	if root.RawGetString("seconds") == lua.LNil {
		root.RawSetString("seconds", lua.LNumber(seconds))
	}
	for path, t := range tables {
		strictLedger(L, t, strings.TrimPrefix(path, "."))
	}
	delete(tables, "")
	describeLedger(L, l, seconds, root, tables)
	return root
}

// ledgerKey converts a queue id to a number and keeps other names as strings.
func ledgerKey(part string) lua.LValue {
	if len(part) > 0 && strings.Trim(part, "0123456789") == "" {
		return lua.LNumber(lua.LVAsNumber(lua.LString(part)))
	}
	return lua.LString(part)
}

func strictLedger(L *lua.LState, t *lua.LTable, path string) {
	Strict(L, t, func(_ *lua.LState, key string) string {
		if path == "" && key == "error" {
			return "" // a summary without an error
		}
		var known []string
		t.ForEach(func(k, _ lua.LValue) { known = append(known, k.String()) })
		text := row.Unknown("figure", key, slices.Sorted(slices.Values(known)))
		if path != "" {
			text += " of " + path
		}
		return text
	})
}
