package value

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	luar "layeh.com/gopher-luar"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Configuration builds s.config: the resolved plan, read-only, through gopher-luar under the names of the YAML, and the sections of the file that
// daqiri-run does not define as tables. Cold.
func Configuration(L *lua.LState, cfg *spec.Config, integer func(uint64) lua.LValue) lua.LValue {
	luar.GetConfig(L).FieldNames = yamlNames
	luar.GetConfig(L).MethodNames = func(reflect.Type, reflect.Method) []string { return nil }
	plan := spec.Inspect(cfg)
	lock(L, reflect.TypeOf(plan), map[reflect.Type]bool{})
	sections := map[string]lua.LValue{}
	for name, v := range cfg.Extra {
		sections[name] = FromGo(L, v, integer)
	}
	view := luar.New(L, plan)
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		if v, ok := sections[L.Get(2).String()]; ok {
			L.Push(v)
		} else {
			L.Push(L.GetTable(view, L.Get(2)))
		}
		return 1
	}))
	meta.RawSetString("__newindex", L.NewFunction(readOnly))
	meta.RawSetString("__tostring", L.NewFunction(configText))
	names := yamlKeys(reflect.TypeOf(plan).Elem())
	for name := range sections {
		names = append(names, name)
	}
	meta.RawSetString("__names", List(L, slices.Sorted(slices.Values(names))))
	shown := L.NewTable() // in place of the metatable, so that scripts can't change it
	shown.RawSetString("__names", List(L, slices.Sorted(slices.Values(names))))
	meta.RawSetString("__metatable", shown)
	return &lua.LUserData{Value: plan, Metatable: meta}
}

// configText formats a part of the configuration as JSON, like the inspect command.
func configText(L *lua.LState) int {
	text, err := json.MarshalIndent(L.CheckUserData(1).Value, "", "  ")
	if err != nil {
		row.RaiseError(L, err)
	}
	L.Push(lua.LString(text))
	return 1
}

// noOperator replaces gopher-luar's operators, some of which modify their operand: p ^ v sets the target of a pointer, and list + v may write
// past the end of the list.
func noOperator(L *lua.LState) int {
	lua51.Raise(L, "the configuration can't be changed, and has no operators")
	return 0
}

var operators = []string{"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__concat"}

func readOnly(L *lua.LState) int {
	lua51.Raise(L, "the configuration can't be changed (tried '%s'): it is settled when the session opens", L.Get(2))
	return 0
}

// yamlNames returns the Lua name of a field: its key in the YAML file.
func yamlNames(_ reflect.Type, f reflect.StructField) []string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || name == "" && !f.Anonymous {
		return nil
	}
	return []string{name}
}

// lock makes gopher-luar's view of a type read-only, and misspelt keys raise.
func lock(L *lua.LState, t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		lock(L, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				lock(L, f.Type, seen)
			}
		}
		lock(L, reflect.PointerTo(t), seen)
	default:
		return
	}
	meta := luar.MT(L, reflect.Zero(t).Interface())
	for _, name := range operators {
		if name == "__unm" && t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
			continue // -p reads an optional number
		}
		meta.RawSetString(name, L.NewFunction(noOperator))
	}
	meta.RawSetString("__newindex", L.NewFunction(readOnly))
	meta.RawSetString("__tostring", L.NewFunction(configText))
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		lockKeys(L, meta, t)
	}
}

func lockKeys(L *lua.LState, meta *luar.Metatable, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	known := yamlKeys(t)
	meta.RawSetString("__names", List(L, known))
	index := meta.RawGetString("__index")
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		if key := L.Get(2).String(); !slices.Contains(known, key) {
			lua51.Raise(L, "%s", row.Unknown("key", key, known))
		}
		L.Push(index)
		L.Push(L.Get(1))
		L.Push(L.Get(2))
		L.Call(2, 1)
		return 1
	}))
}

// yamlKeys lists the YAML keys of a struct and its embedded structs.
func yamlKeys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Pointer {
			keys = append(keys, yamlKeys(f.Type.Elem())...)
			continue
		}
		keys = append(keys, yamlNames(t, f)...)
	}
	return keys
}
