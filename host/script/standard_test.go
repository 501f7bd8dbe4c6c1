package script

import (
	"os/exec"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// standardCalls print the same in Lua 5.1.
const standardCalls = `
local function show(...)
	local t = { pcall(...) }
	for i = 1, #t do t[i] = tostring(t[i]):gsub("^.*bad argument", "bad argument"):gsub(" to %S+ %(", " ("):gsub(" to main chunk %(", " (") end
	write(table.concat(t, " ") .. "\n")
end
show(function() local kib = collectgarbage("count") return kib > 1 and kib < 1e9 end)
show(collectgarbage)
show(collectgarbage, "stop")
show(collectgarbage, "restart")
show(collectgarbage, "bad")
show(string.char)
show(string.char, 0, 65, 255)
show(string.char, 256)
show(string.char, 1, -1)
show(math.modf, math.huge)
show(function() local whole, part = math.modf(-math.huge) return whole, 1 / part end)
show(math.modf, -1.5)
show(coroutine.running)
show(function() return "010" + 5, "1e3" + 1, -"010", "7" * "3" end)
show(function() return type(coroutine.wrap(function() return coroutine.running() end)()) end)
show(function() local m = {} return getmetatable(setmetatable({}, m)) == m end)
show(function() return getmetatable(setmetatable(setmetatable({}, {}), nil)) end)
show(function() setmetatable(setmetatable({}, { __metatable = 1 }), {}) end)
show(function() local t = { "i", nil } return table.remove(t), #t end)
show(function() local t = { 1, 2, 3 } return table.remove(t, 1), table.remove(t), #t end)
show(function() local t = { 1, 2, 3 } return tostring(table.remove(t, 0)), tostring(table.remove(t, -1)), #t end)
show(setmetatable, 5, {})
show(setmetatable, "x", {})
show(setmetatable, print, {})
show(setmetatable, {}, 5)
`

// errorsAlike leaves out of errors what differs in wording.
var errorsAlike = strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "table expected, got number", "table", "table expected, got string", "table",
	"table expected, got function", "table", "nil or table expected, got number", "table", "nil or table expected", "table", "(command line):", "p:")

func TestStandardInLua(t *testing.T) {
	want, err := exec.Command(lua51(t), "-e", "local function write(s) io.write(s) end"+standardCalls).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	L, end := fullState(t)
	defer end()
	var got strings.Builder
	L.SetGlobal("write", L.NewFunction(func(L *lua.LState) int { got.WriteString(L.CheckString(1)); return 0 }))
	fn, err := compile(L, "p", standardCalls)
	if err == nil {
		L.Push(fn)
		err = L.PCall(0, 0, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := strings.Split(errorsAlike.Replace(got.String()), "\n"), strings.Split(errorsAlike.Replace(string(want)), "\n")
	for i, line := range theirs {
		if i >= len(ours) || ours[i] != line {
			t.Errorf("line %d: Lua 5.1 gives %q, daqiri-run %q", i+1, line, ours[min(i, len(ours)-1)])
		}
	}
}
