package bindings

import (
	lua "github.com/yuin/gopher-lua"
)

// HelpName is what the reference calls a value: "queue" of a queue, "queue:alloc" of a method, "daqiri.open" of a function of a module;
// empty: it has no page.
func (rt *Runtime) HelpName(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LUserData:
		if object, ok := v.Value.(named); ok {
			return object.luaType()
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

// moduleName is the name of a module that is loaded, or of a function of one.
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
