package lua51

import lua "github.com/yuin/gopher-lua"

// tableInsert implements table.insert with Lua's argument checks.
func tableInsert(L *lua.LState) int {
	t := L.CheckTable(1)
	switch L.GetTop() {
	case 2:
		t.Append(L.Get(2))
	case 3:
		t.Insert(L.CheckInt(2), L.Get(3))
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

// tableMaxn implements table.maxn: the largest numeric key, integer or not; 0 if none is positive.
func tableMaxn(L *lua.LState) int {
	largest := lua.LNumber(0)
	L.CheckTable(1).ForEach(func(k, _ lua.LValue) {
		if n, ok := k.(lua.LNumber); ok {
			largest = max(largest, n)
		}
	})
	L.Push(largest)
	return 1
}

// tableRemove implements table.remove: without an index it removes the last item, also of a list constructed with trailing nil. It returns
// nothing if there is no item at the index.
func tableRemove(L *lua.LState) int {
	t := L.CheckTable(1)
	last := t.Len()
	at := L.OptInt(2, last)
	if at < 1 || at > last {
		return 0
	}
	L.Push(t.Remove(at))
	return 1
}

// tableSort is gopher-lua's table.sort, except that it rejects nil as the comparison function.
func tableSort(L *lua.LState) lua.LGFunction {
	sort := L.GetField(L.GetGlobal(lua.TabLibName), "sort").(*lua.LFunction).GFunction
	return func(L *lua.LState) int {
		if L.GetTop() > 1 && L.Get(2) == lua.LNil {
			L.SetTop(1)
		}
		return sort(L)
	}
}
