package bindings

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
)

// entry is a function of a module or type under its Lua name. Its row (row.go) is its reference.
type entry struct {
	name string
	fn   function
	doc  string
}

// field is a field of a type or a constant of a module, with its row.
type field struct{ name, doc string }

// typeDef describes a type of Lua values.
type typeDef struct {
	name    string
	self    string // name of an object in examples
	doc     string // title, then a row with words and the elements
	methods []entry
	fields  []field // keys that get handles by name
	// is returns the object's kinds, as in rows beginning with "Of": "a transmit queue"; nil: all names apply to all objects.
	is func(self any) []string
	// get reads a field or an element; it returns nil if there is none of that name.
	get  func(rt *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue
	meta []entry // metamethods except __index and __newindex; operands count from 1. Operators have a row: operand and result
}

// typeDefs lists every type, as modules lists every module.
var typeDefs = []*typeDef{
	sessionType, interfaceType, connectionType, queueType, stageType, burstType, packetType, columnType, samplesType, templateType,
	timerType, taskType, timeType, u64Type, opType, presenceType, formatType, leaseType, kernelType, semaphoreType, arrayType, streamType, controlType,
}

// liveType is a type registered in one Lua state.
type liveType struct {
	def     *typeDef
	meta    *lua.LTable
	methods map[string]*lua.LFunction
}

// newObject wraps a value as userdata.
func (rt *Runtime) newObject(value row.Object) *lua.LUserData {
	return &lua.LUserData{Value: value, Metatable: rt.live(value.LuaType()).meta}
}

// newLasting wraps a value that scripts use once per burst: its methods are found without a call into Go, at the cost of a table per object.
func (rt *Runtime) newLasting(value row.Object) *lua.LUserData {
	t := rt.live(value.LuaType())
	object := &lua.LUserData{Value: value}
	own, methods, others := rt.root.NewTable(), rt.root.NewTable(), rt.root.NewTable()
	t.meta.ForEach(own.RawSet)
	for name, fn := range t.methods {
		methods.RawSetString(name, fn)
	}
	others.RawSetString("__index", rt.root.NewFunction(func(L *lua.LState) int { // reached through methods: self must be the object
		L.Replace(1, object)
		return rt.index(L, t)
	}))
	methods.Metatable = others
	own.RawSetString("__index", methods)
	object.Metatable = own
	return object
}

// live returns a type's metatable, building it on first use.
func (rt *Runtime) live(name string) *liveType {
	if t := rt.types[name]; t != nil {
		return t
	}
	L, def := rt.root, rt.defs[name]
	t := &liveType{def: def, meta: L.NewTable(), methods: map[string]*lua.LFunction{}}
	for _, m := range def.methods {
		t.methods[m.name] = rt.wrap(L, m, 1)
	}
	for _, m := range def.meta {
		t.meta.RawSetString(m.name, rt.wrap(L, m, 0))
	}
	t.meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int { return rt.index(L, t) }))
	if t.meta.RawGetString("__newindex") == lua.LNil {
		t.meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
			lua51.Raise(L, "a %s has no field that can be set (tried '%s')", def.name, L.Get(2))
			return 0
		}))
	}
	if t.meta.RawGetString("__tostring") == lua.LNil {
		t.meta.RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
			L.Push(lua.LString(def.name))
			return 1
		}))
	}
	if t.meta.RawGetString("__call") == lua.LNil {
		t.meta.RawSetString("__call", rt.calls.NoCall)
	}
	t.meta.RawSetString("__names", L.NewFunction(func(L *lua.LState) int {
		var self any
		if ud, ok := L.Get(1).(*lua.LUserData); ok {
			self = ud.Value
		}
		L.Push(value.List(rt.root, def.namesOf(self)))
		return 1
	}))
	t.meta.RawSetString("__fields", value.List(rt.root, def.fieldNames()))
	t.meta.RawSetString("__metatable", lua.LString(def.name))
	rt.types[name] = t
	return t
}

// names lists methods and fields in sorted order.
func (def *typeDef) names() []string {
	names := def.fieldNames()
	for _, m := range def.methods {
		names = append(names, m.name)
	}
	sort.Strings(names)
	return names
}

// namesOf lists the names that apply to an object: a row that begins with "Of a transmit queue:" only applies to such queues.
func (def *typeDef) namesOf(self any) []string {
	if def.is == nil || self == nil {
		return def.names()
	}
	names, is := def.fieldNames(), def.is(self)
	for _, m := range def.methods {
		words := row.MustParse(m.name, m.doc).Words
		kind, _, of := strings.Cut(strings.TrimPrefix(words, "Of "), ":")
		if !strings.HasPrefix(words, "Of ") || !of || slices.Contains(is, kind) {
			names = append(names, m.name)
		}
	}
	sort.Strings(names)
	return names
}

func (def *typeDef) fieldNames() []string {
	names := make([]string, len(def.fields))
	for i, f := range def.fields {
		names[i] = f.name
	}
	return names
}

// index implements __index: a method, a field or an element; other keys raise.
func (rt *Runtime) index(L *lua.LState, t *liveType) int {
	ud, ok := L.Get(1).(*lua.LUserData)
	if !ok {
		lua51.Raise(L, "%s expected, got %s", t.def.name, row.Describe(L.Get(1)))
	}
	key := L.Get(2)
	name, isName := key.(lua.LString)
	if m := t.methods[string(name)]; isName && m != nil {
		L.Push(m)
		return 1
	}
	if t.def.get != nil {
		if v := t.def.get(rt, L, ud.Value, key); v != nil {
			L.Push(v)
			return 1
		}
	}
	if !isName {
		lua51.Raise(L, "a %s has no element %s", t.def.name, key)
	}
	lua51.Raise(L, "%s of %s", row.Unknown("field or method", string(name), t.def.names()), t.def.name)
	return 0
}

// shown makes print and the prompt show a list with one item per line.
func (rt *Runtime) shown(t *lua.LTable) *lua.LTable {
	meta := rt.root.NewTable()
	meta.RawSetString("__tostring", rt.root.NewFunction(func(L *lua.LState) int {
		var items []string
		list := L.CheckTable(1)
		for i := 1; i <= list.Len(); i++ {
			items = append(items, rt.itemText(L, list.RawGetInt(i)))
		}
		L.Push(lua.LString(strings.Join(items, "\n")))
		return 1
	}))
	t.Metatable = meta
	return t
}

// itemText formats a list item: as JSON if it is a table of plain values.
func (rt *Runtime) itemText(L *lua.LState, v lua.LValue) string {
	if t, ok := v.(*lua.LTable); ok {
		if text, err := value.AppendJSON(nil, t, 0); err == nil {
			return string(text)
		}
	}
	return rt.text(L, v)
}

// text returns tostring(v).
func (rt *Runtime) text(L *lua.LState, v lua.LValue) string { return L.ToStringMeta(v).String() }

// fromGo converts decoded JSON or YAML to a Lua value.
func (rt *Runtime) fromGo(v any) lua.LValue { return value.FromGo(rt.root, v, rt.integer) }

// function is a Go function callable from Lua; it returns the number of results pushed.
type function func(c *call) int

// call is a function call from Lua, with the state's Runtime.
type call struct {
	row.Call
	rt *Runtime
}

// wrap returns e as a Lua function. self is 1 for a method, otherwise 0.
func (rt *Runtime) wrap(L *lua.LState, e entry, self int) *lua.LFunction {
	keys := &row.Keys{Row: e.doc}
	return L.NewFunction(func(L *lua.LState) int {
		return e.fn(&call{Call: row.Call{L: L, Name: e.name, Self: self, Keys: keys}, rt: rt})
	})
}

// receiver returns self as a T; what names the type in the error.
func receiver[T any](c *call, what string) T { return row.SelfOf[T](&c.Call, what) }

// options are the named options of a call.
type options struct {
	row.Options
	c *call
}

// options reads argument n as a table with only the keys of the function's row and those of more; an absent argument is an empty table.
func (c *call) options(n int, more ...string) *options { return &options{c.Options(n, more...), c} }

// newOptions returns the options in a table that is argument n or an element of it.
func newOptions(c *call, n int, t *lua.LTable) *options { return &options{c.OptionsOf(n, t), c} }

// fieldCalled returns the error for a call of a field of an object of the API that is not a function: what describes its value.
func (rt *Runtime) fieldCalled(self lua.LValue, name, what string) string {
	object, ok := row.Userdata[row.Object](self)
	if !ok || !slices.Contains(rt.defs[object.LuaType()].fieldNames(), name) {
		return ""
	}
	def := rt.defs[object.LuaType()]
	return fmt.Sprintf("'%s' of a %s is %s, not a function: write .%s without (); a %s has %s", name, def.name, what, name, def.name, def.listed())
}

// listed returns fields and methods, the latter with ().
func (def *typeDef) listed() string {
	names := slices.Sorted(slices.Values(def.fieldNames()))
	for _, m := range def.methods {
		names = append(names, m.name+"()")
	}
	return strings.Join(names, ", ")
}
