package script

import (
	"os/exec"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/tests/require"
)

// standardCalls has the same output in Lua 5.1.
const standardCalls = `
local function show(...)
	local t = { pcall(...) }
	for i = 1, #t do t[i] = tostring(t[i]):gsub("\\n", "/"):gsub("^.*bad argument", "bad argument"):gsub(" to %S+ %(", " ("):gsub(" to main chunk %(", " (") end
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
for _, text in ipairs{ "ff", "0xff", "0XFF", " 0xff ", "0x", "x", "ff f", "z", "7", "8", "1.5", "", " ", "+5", "99999999999999999999", "1_0" } do
	for _, base in ipairs{ 2, 8, 10, 16, 36, "16", 1, 37 } do show(function() return ("%.14g"):format(tonumber(text, base) or -1) end) end
end
show(function() return tonumber(255, 16), tonumber("010"), tonumber("1e3"), tonumber("0x1p4"), tonumber("12", nil) end)
show(tonumber, {}, 16)
show(function() return table.maxn{ [1.5] = 1 }, table.maxn{ 1, 2, [7] = 1, [1e9] = 1 }, table.maxn{ [-1] = 1, x = 1 }, table.maxn{} end)
show(function() return select("#", table.remove{}), select("#", table.remove({ 1 }, 5)), table.remove({ 1, 2 }, "1") end)
show(function() local t = { 1, 2 } table.insert(t, "1", "a") table.insert(t, "2") return table.concat(t, ",") end)
show(function() table.insert({}, 1, 2, 3) end)
show(function() table.insert({}) end)
show(function() local t = { 3, 1, 2 } table.sort(t, nil) return table.concat(t, " ") end)
show(function() return math.mod(-1, 3), math.fmod(-1, 3), math.ldexp(1, "4"), math.floor("010"), math.max("2", 10), math.mod("7", "4") end)
show(function() return os.difftime(5), os.difftime(7.5, 2), os.difftime("0x10", "1e1") end)
show(function() return ("hello"):byte(2), ("hello"):byte("2"), ("hello"):byte(0), ("hello"):byte(-1), ("hello"):byte(9) end)
show(function() return ("hello"):byte(-10) end)
show(function() return ("hello"):byte(-3, -2) end)
show(function() return ("hello"):byte(0, -1) end)
show(function() return ("hello"):byte(4, 100) end)
show(function() return ("hello"):sub("2", "3"), ("hello"):rep("2"), ("hello"):find("l", "4"), string.char("65", "0x42"), select("2", 1, 5) end)
show(function() return unpack({ 1, 2, 3 }, "2", "3") end)
show(string.format, 12)
for _, f in ipairs{ "%d", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%i", "%u", "%+u", "%x", "%+x", "% x", "%#x", "%#X", "%#o", "%#010x", "%-#10x|", "%#10x|", "%.4x", "%#.4x", "%q", "%c", "%s", "%5s|", "%.1s", "%e", "%g" } do
	for _, v in ipairs{ 65, 0, -3.7, 2^40, "66", "010", "0x1f", " 7 " } do
		if f ~= "%c" or tonumber(v) > 0 and tonumber(v) < 256 then show(string.format, f, v) end
	end
end
for letter in ("aAbBcCdDeFgGhHIjmMnprRsStTuUVwWxXyYzZ%"):gmatch(".") do
	for _, at in ipairs{ 0, 1000000007, 1704067200, 1735603199, 951782400, 1230940800, 1483228799, 1609459199, 1.5, -1, "86400" } do show(os.date, "!%" .. letter, at) end
end
for year = 1970, 2037 do
	for _, day in ipairs{ 0, 3, 6, 9, 362, 364 } do show(os.date, "!%G %g %V %U %W %u %w %j", ((year - 1970) * 365.25 + day) * 86400) end
end
show(function() local t = os.date("!*t", 1000000007.9) return t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday, tostring(t.isdst) end)
show(function() return os.time{ year = "2026", month = "1", day = 1.9, hour = "0x5" }, os.time{ year = 2026, month = 13, day = -3, hour = 30, min = 70, sec = -5 } end)
for seed = 1, 3 do show(function() local n = math.random(1.9, 2.1) return n <= 2, math.random(1.9) == 1, math.random("1") == 1 end) end
show(setmetatable, 5, {})
show(setmetatable, "x", {})
show(setmetatable, print, {})
show(setmetatable, {}, 5)
`

// errorsAlike normalizes error messages that differ in wording.
var errorsAlike = strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "table expected, got number", "table", "table expected, got string", "table",
	"table expected, got function", "table", "nil or table expected, got number", "table", "nil or table expected", "table", "(command line):", "p:")

func TestStandardInLua(t *testing.T) {
	sameInLua(t, standardCalls, standardCalls, errorsAlike)
}

// sameInLua compares the output of Lua 5.1 and a script's state. alike normalizes permitted differences.
func sameInLua(t *testing.T, theirs, ours string, alike *strings.Replacer) {
	t.Helper()
	t.Setenv("TZ", "UTC")
	want, err := exec.Command(require.Lua51(t), "-e", "local function write(s) io.stderr:write(s) end "+theirs).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	L, end := fullState(t)
	defer end()
	var got strings.Builder
	L.SetGlobal("write", L.NewFunction(func(L *lua.LState) int { got.WriteString(L.CheckString(1)); return 0 }))
	fn, err := lua51.Compile(L, "p", ours)
	if err == nil {
		L.Push(fn)
		err = L.PCall(0, 0, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	mine, luas := strings.Split(alike.Replace(got.String()), "\n"), strings.Split(alike.Replace(string(want)), "\n")
	for i, line := range luas {
		if i >= len(mine) || mine[i] != line {
			t.Errorf("line %d: Lua 5.1 gives %q, daqiri-run %q", i+1, line, mine[min(i, len(mine)-1)])
		}
	}
}
