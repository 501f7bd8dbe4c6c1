package bindings

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

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
