package bindings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// modules lists what require finds besides the host's modules.
var modules = []struct {
	name  string
	entry []entry
}{
	{"daqiri", daqiriModule},
	{"bit", bitModule},
}

// globalFunctions are the standard functions that are replaced, by library; "" is the global table.
var globalFunctions = []struct {
	library string
	entry   []entry
}{
	{"", []entry{{"getmetatable", globalGetmetatable}, {"pcall", globalPcall}, {"print", globalPrint}, {"xpcall", globalXpcall}}},
	{"math", []entry{{"random", mathRandom}, {"randomseed", mathRandomSeed}}},
	{"os", []entry{{"clock", osClock}, {"date", osDate}, {"exit", osExit}, {"time", osTime}}},
	{"string", []entry{{"format", stringFormat}}},
}

// preload makes the modules known to require, and bit global.
func (rt *Runtime) preload() {
	L := rt.root
	loaders, ok := L.GetField(L.GetField(L.Get(lua.EnvironIndex), "package"), "preload").(*lua.LTable)
	for _, m := range modules {
		table := rt.module(m.name, m.entry)
		if m.name == "bit" {
			rt.globals().RawSetString("bit", table)
		}
		if ok {
			loaders.RawSetString(m.name, L.NewFunction(func(L *lua.LState) int {
				L.Push(table)
				return 1
			}))
		}
	}
}

// module makes a table of functions in which a misspelt name raises.
func (rt *Runtime) module(name string, entries []entry) *lua.LTable {
	t := rt.root.NewTable()
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		t.RawSetString(e.name, rt.wrap(rt.root, e.name, 0, e.fn))
		names = append(names, e.name)
	}
	if name == "daqiri" {
		t.RawSetString("version", lua.LString(Version))
	}
	rt.strict(t, func(key string) string { return unknown("function", key, names) + " in module " + name })
	return t
}

// strict makes reading what a table lacks an error, with the text for that key; "" is no error.
func (rt *Runtime) strict(t *lua.LTable, text func(key string) string) {
	meta := rt.root.NewTable()
	meta.RawSetString("__index", rt.root.NewFunction(func(L *lua.LState) int {
		key, ok := L.Get(2).(lua.LString)
		if !ok {
			return 0
		}
		if why := text(string(key)); why != "" {
			raise(L, "%s", why)
		}
		return 0
	}))
	rt.root.SetMetatable(t, meta)
}

func (rt *Runtime) globals() *lua.LTable { return rt.root.Get(lua.GlobalsIndex).(*lua.LTable) }

func (rt *Runtime) replaceGlobals() {
	rt.random.seed(uint64(rt.Task.ID()))
	for _, lib := range globalFunctions {
		t := rt.globals()
		if lib.library != "" {
			var ok bool
			if t, ok = t.RawGetString(lib.library).(*lua.LTable); !ok {
				continue // the host left this library out
			}
		}
		for _, e := range lib.entry {
			t.RawSetString(e.name, rt.wrap(rt.root, e.name, 0, e.fn))
		}
	}
}

// strictGlobals makes reading an undefined global an error. One that was assigned, nil even, is defined;
// rawget(_G, name) still asks.
func (rt *Runtime) strictGlobals() {
	g := rt.globals()
	defined := map[string]bool{}
	rt.strict(g, func(key string) string {
		if defined[key] {
			return ""
		}
		for _, m := range modules {
			if m.name == key {
				return fmt.Sprintf("unknown global '%s': it is a module (local %s = require \"%s\")", key, key, key)
			}
		}
		if slices.ContainsFunc(daqiriModule, func(e entry) bool { return e.name == key }) {
			return fmt.Sprintf("unknown global '%s': it is a function of the module (daqiri.%[1]s)", key)
		}
		if key == "exit" || key == "quit" {
			return fmt.Sprintf("unknown global '%s': os.exit() ends the program, and Ctrl-D a prompt", key)
		}
		var known []string
		g.ForEach(func(k, _ lua.LValue) { known = append(known, k.String()) })
		return unknown("global", key, sortedStrings(known))
	})
	meta := g.Metatable.(*lua.LTable)
	meta.RawSetString("__newindex", rt.root.NewFunction(func(L *lua.LState) int {
		if key, ok := L.Get(2).(lua.LString); ok {
			defined[string(key)] = true
		}
		g.RawSet(L.Get(2), L.Get(3))
		return 0
	}))
}

func globalPrint(c *call) int {
	var b strings.Builder
	for n := 1; n <= c.count(); n++ {
		if n > 1 {
			b.WriteByte('\t')
		}
		text := c.rt.text(c.L, c.arg(n))
		reserve(c.L, uint64(b.Len()+len(text)))
		b.WriteString(text)
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(c.rt.Stdout, b.String()); err != nil {
		raiseError(c.L, err)
	}
	return 0
}

// osExit ends the process in order: sessions are finished and the summary is made.
func osExit(c *call) int {
	code := 0
	switch v := c.arg(1).(type) {
	case *lua.LNilType:
	case lua.LBool:
		if !v {
			code = 1
		}
	default:
		code = int(c.whole(1, "exit code", 0, 255))
	}
	c.rt.exit(c.L, code)
	return 0
}

// exit ends all tasks. The state's context is cancelled, so that not even pcall goes on.
func (rt *Runtime) exit(L *lua.LState, code int) {
	cause := &Exit{Code: code}
	rt.Shared.setExit(code)
	rt.Scheduler.CancelAll(cause)
	rt.Task.Cancel(cause)
	raiseError(L, cause)
}
