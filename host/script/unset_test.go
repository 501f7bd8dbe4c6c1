package script

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// unsetIdioms use globals that were never set in ways that scripts do; the output is the same in Lua 5.1.
const unsetIdioms = `
local function show(...) local t = { ... } for i = 1, select("#", ...) do t[i] = tostring(t[i]) end write(table.concat(t, " ") .. "\n") end
for i = 1, 3 do seen = (seen or 0) + 1 end show(seen)
list = list or {} show(#list)
if not flag1 then show("not") end
if flag2 then show("wrong") else show("else") end
while flag3 do show("wrong") end
repeat show("once") until not flag4
show(flag5 == nil, flag6 ~= nil, nil == flag7, not flag8)
local a = flag9 and flag9.x show(a)
local b = flag10 or flag11 or "default" show(b)
local c = (flag12 and 1 or 2) + 3 show(c)
show(type(flag13), type(flag14) == "function")
if flag15 == nil and flag16 == nil then show("both") end
if _G.flag17 then show("wrong") end
show(_G.flag18 or "none", rawget(_G, "flag19"))
local function f() return flag20 or 5 end show(f())
for _, key in ipairs{ 1, 1, 2 } do if key == last then show("again", key) end last = key end
local old = hook hook = function() end show(old, hook ~= nil)
show(coroutine.wrap(function() return flag21 or "in a coroutine" end)())
local env = setmetatable({}, { __index = _G }) show(setfenv(function() return flag22 or 7 end, env)())
show(loadstring("counter = (counter or 0) + 1 return counter")())
if flag23 then flag23() end
if later1 then later1() end function later1() end
show(pcall(function() if flag24 and flag24 > 3 then return 1 end return "small" end))
`

func TestUnsetGlobalsInLua(t *testing.T) {
	sameInLua(t, unsetIdioms, unsetIdioms, strings.NewReplacer())
}

// TestUnsetGlobals reads globals that were never set where that must be a mistake.
func TestUnsetGlobals(t *testing.T) {
	L, end := fullState(t)
	defer end()
	for _, c := range []struct{ source, want string }{
		{"prnt('x')", "unknown global 'prnt' (did you mean 'print'?)"},
		{"local x = strng.rep", "unknown global 'strng' (did you mean 'string'?)"},
		{"local n = cuont + 1", "unknown global 'cuont'"},
		{"local n = 'a' .. cuont", "unknown global 'cuont'"},
		{"local n = #cuont", "unknown global 'cuont'"},
		{"print(cuont)", "unknown global 'cuont'"},
		{"local t = { size = cuont }", "unknown global 'cuont'"},
		{"if cuont > 1 then end", "unknown global 'cuont'"},
		{"if cuont == 1 then end", "unknown global 'cuont'"},
		{"return nothing or cuont", "unknown global 'cuont'"},
		{"for _ in pairs(cuont) do end", "unknown global 'cuont'"},
		{"return pcap", "unknown global 'pcap'"},
		{"return sleep", "unknown global 'sleep': it is a function of the module (daqiri.sleep)"},
		{"total = total + 1", "global 'total' is not set yet: write total or 0, or set it before"},
		{"text = 'a' .. text", "global 'text' is not set yet"},
		{"if highest < 5 then highest = 5 end", "global 'highest' is not set yet"},
		{"helper() function helper() end", "attempt to call 'helper', which is nil and no function"},
		{"return settings.x, function() settings = {} end", "attempt to read 'x' of settings, which is nil"},
	} {
		fn, err := lua51.Compile(L, "s.lua", c.source)
		if err != nil {
			t.Fatal(err)
		}
		L.Push(fn)
		if err = L.PCall(0, lua.MultRet, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.source, err, c.want)
		}
	}
}
