package repl

import (
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxIndexChain limits the __index tables followed, as a chain may have a loop.
const maxIndexChain = 10

var (
	chainEnd = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*(?:[.:][A-Za-z_][A-Za-z0-9_]*)*[.:]?$`)
	isWord   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// keywords are reserved words, which are not names.
var keywords = map[string]bool{"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true,
	"false": true, "for": true, "function": true, "goto": true, "if": true, "in": true, "local": true, "nil": true,
	"not": true, "or": true, "repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true}

func isName(s string) bool { return isWord.MatchString(s) && !keywords[s] }

// CompleteValue completes the dotted name that ends at pos (in runes) from the values in L: globals, fields of tables and of their __index
// tables, methods after a colon. For an object whose __index is a function, it uses __names of the metatable, a list or a function(object) that
// returns one, and reads no other property. It must run on the task that owns L, and has no side effects except those of __names.
func CompleteValue(L *lua.LState, line string, pos int) (head string, completions []string, tail string) {
	return completeIn(L, nil, nil, line, pos)
}

// completeIn also completes the fields of env, and names, which are readable through env.
func completeIn(L *lua.LState, env *lua.LTable, names []string, line string, pos int) (head string, completions []string, tail string) {
	runes := []rune(line)
	pos = min(max(pos, 0), len(runes))
	left, tail := string(runes[:pos]), string(runes[pos:])
	chain := chainEnd.FindString(left)
	head = left[:len(left)-len(chain)]
	if !startsName(head, chain) {
		return left, nil, tail
	}
	cut := strings.LastIndexAny(chain, ".:") + 1
	var value lua.LValue = L.Get(lua.GlobalsIndex)
	for i, part := range strings.FieldsFunc(chain[:cut], func(r rune) bool { return r == '.' || r == ':' }) {
		if i == 0 && env != nil && (env.RawGetString(part) != lua.LNil || slices.Contains(names, part)) {
			value = L.GetField(env, part)
			continue
		}
		value = member(L, value, part)
	}
	onlyMethods := cut > 0 && chain[cut-1] == ':'
	prefix := chain[cut:]
	all := members(L, value)
	if cut == 0 && env != nil {
		env.ForEach(func(k, v lua.LValue) { all[k.String()] = v })
		for _, name := range names {
			all[name] = nil
		}
	}
	for key, v := range all {
		switch {
		case !strings.HasPrefix(key, prefix), !isName(key):
		case strings.HasPrefix(key, "__") && !strings.HasPrefix(prefix, "_"):
		case onlyMethods && v != nil && !callable(L, v):
		default:
			completions = append(completions, key)
		}
	}
	slices.Sort(completions)
	return head + chain[:cut], completions, tail
}

// startsName reports whether a name can begin after head. It can't within a number, or after a field access of an expression that is not a plain
// name, as in f().x.
func startsName(head, chain string) bool {
	if head == "" || strings.HasSuffix(head, "..") {
		return true
	}
	last := head[len(head)-1]
	if chain == "" {
		return last != '.' && last != ':' && !strings.ContainsRune("0123456789)]}\"'", rune(last))
	}
	return last != '.' && last != ':' && (last < '0' || last > '9')
}

// member returns the named member of v, or nil. It reads a property through __index only if v lists the name.
func member(L *lua.LState, v lua.LValue, key string) lua.LValue {
	found, ok := members(L, v)[key]
	if !ok {
		return lua.LNil
	}
	if found != nil && found != lua.LNil {
		return found
	}
	out, err := call(L, L.NewFunction(func(L *lua.LState) int {
		L.Push(L.GetField(L.Get(1), key))
		return 1
	}), v)
	if err != nil {
		return lua.LNil
	}
	return out
}

// members returns the members of v by name. A member known only from __names has the value nil; if __fields also has it, its value is Lua's nil,
// as it is not a method.
func members(L *lua.LState, v lua.LValue) map[string]lua.LValue {
	all := map[string]lua.LValue{}
	holder := v
	for range maxIndexChain {
		if t, ok := holder.(*lua.LTable); ok {
			t.ForEach(func(k, member lua.LValue) { addMember(all, k, member) })
		}
		meta, ok := metatable(L, holder).(*lua.LTable)
		if !ok {
			return all
		}
		index, names := meta.RawGetString("__index"), meta.RawGetString("__names")
		if _, ok := index.(*lua.LFunction); ok || names != lua.LNil && holder == v {
			addNamed(L, all, names, v)
			if fields, ok := meta.RawGetString("__fields").(*lua.LTable); ok {
				fields.ForEach(func(_, name lua.LValue) { all[name.String()] = lua.LNil })
			}
			return all
		}
		holder = index
	}
	return all
}

// metatable returns v's actual metatable, ignoring __metatable.
func metatable(L *lua.LState, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LTable:
		return v.Metatable
	case *lua.LUserData:
		return v.Metatable
	}
	return L.GetMetatable(v)
}

// addMember adds a member unless a nearer one hides it.
func addMember(all map[string]lua.LValue, key, member lua.LValue) {
	k, ok := key.(lua.LString)
	if _, hidden := all[string(k)]; ok && !hidden {
		all[string(k)] = member
	}
}

// addNamed adds the names listed by __names.
func addNamed(L *lua.LState, all map[string]lua.LValue, names, v lua.LValue) {
	if fn, ok := names.(*lua.LFunction); ok {
		out, err := call(L, fn, v)
		if err != nil {
			return
		}
		names = out
	}
	if list, ok := names.(*lua.LTable); ok {
		list.ForEach(func(_, key lua.LValue) { addMember(all, key, nil) })
	}
}

func callable(L *lua.LState, v lua.LValue) bool {
	switch v.Type() {
	case lua.LTFunction:
		return true
	case lua.LTTable, lua.LTUserData:
		return L.GetMetaField(v, "__call") != lua.LNil
	}
	return false
}
