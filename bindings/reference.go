package bindings

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// Reference describes everything that Lua can call or read, from the tables that register it.
func Reference() []row.Section {
	var all []row.Section
	for _, m := range modules {
		s := row.Section{Name: m.name, Kind: "module"}
		s.Describe(m.doc)
		s.Add(parsed(m.entry, m.constants))
		all = append(all, s)
	}
	for _, def := range typeDefs {
		s := row.Section{Name: def.name, Kind: "type", Self: def.self}
		s.Describe(def.doc)
		s.Add(parsed(def.methods, def.fields))
		for _, m := range def.meta {
			if m.doc != "" {
				s.Operators = append(s.Operators, row.MustParse(m.name, m.doc))
			}
		}
		all = append(all, s)
	}
	s := row.Section{Name: "globals", Kind: "globals"}
	s.Describe(globalsDoc)
	for _, lib := range globalFunctions {
		names := parsed(lib.entry, nil)
		for k := range names {
			if lib.library != "" {
				names[k].Name = lib.library + "." + names[k].Name
			}
		}
		s.Add(names)
	}
	return append(all, s)
}

// parsed returns the rows of functions and fields.
func parsed(entries []entry, fields []field) []row.Name {
	var names []row.Name
	for _, e := range entries {
		names = append(names, row.MustParse(e.name, e.doc))
	}
	for _, f := range fields {
		n := row.MustParse(f.name, f.doc)
		n.Field = true
		names = append(names, n)
	}
	return names
}

// HelpName returns the name of a value's reference page: "queue" for a queue, "queue:alloc" for a method, "daqiri.open" for a module's function;
// "" if there is no page.
func (rt *Runtime) HelpName(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LUserData:
		if object, ok := v.Value.(row.Object); ok {
			return object.LuaType()
		}
	case *lua.LFunction:
		for name, t := range rt.types {
			for method, fn := range t.methods {
				if fn == v {
					return name + ":" + method
				}
			}
		}
		return rt.moduleName(v)
	case *lua.LTable:
		return rt.moduleName(v)
	}
	return ""
}

// moduleName returns the name of a loaded module, or of a function of one.
func (rt *Runtime) moduleName(v lua.LValue) (name string) {
	loaded, ok := rt.root.GetField(rt.root.GetGlobal(lua.LoadLibName), "loaded").(*lua.LTable)
	if !ok {
		return ""
	}
	loaded.ForEach(func(k, module lua.LValue) {
		t, ok := module.(*lua.LTable)
		switch {
		case !ok || k.String() == "_G" || name != "":
		case t == v:
			name = k.String()
		default:
			t.ForEach(func(key, fn lua.LValue) {
				if fn == v {
					name = k.String() + "." + key.String()
				}
			})
		}
	})
	return name
}
