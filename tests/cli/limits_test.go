package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// limitCases are pieces of Lua that would take more memory, or more of the processor's stack, than there is. Each raises
// an error that pcall catches.
var limitCases = []struct{ name, source, want string }{
	{"string.rep", `return ("x"):rep(1e11)`, `^case.lua:\d+: string too long: 93.13 GiB \(at most 1 GiB\)$`},
	{"concatenation", `local s = "x" while true do s = s .. s end`, notEnough},
	{"concatenation of many", `local s = ("x"):rep(2^27) while true do s = s .. s .. s .. s .. s .. s .. s .. s .. s end`, tooMuch},
	{"table.concat", `local t = {} for i = 1, 1e4 do t[i] = ("x"):rep(1e6) .. "" end return table.concat(t)`, tooMuch},
	{"table.concat of one string", `local s, t = ("x"):rep(1e6), {} for i = 1, 1e4 do t[i] = s end return table.concat(t)`, tooMuch},
	{"gsub that grows", `return (("x"):rep(4000):gsub("x", ("y"):rep(1e6)))`, notEnough},
	{"gsub of each byte", `local s = ("x"):rep(2^22) return error(select(2, s:gsub("x", "y")), 0)`, `^4194304$`},
	{"format", `local s = ("x"):rep(2^27) return ("%s%s%s%s%s%s%s%s%s"):format(s, s, s, s, s, s, s, s, s)`, tooMuch},
	{"format with a width", `return ("%1000000000d"):format(1)`, `unknown directive|invalid`},
	{"print", `local s = ("x"):rep(2^27) print(s, s, s, s, s, s, s, s, s)`, tooMuch},
	{"io.write", `local s = ("x"):rep(2^27) io.write(s, s, s, s, s, s, s, s, s)`, tooMuch},
	{"hex", `return require "daqiri".hex(("x"):rep(2^29 + 1))`, tooMuch},
	{"JSON", `local t = {} for i = 1, 60 do t = { t, t } end return require "daqiri".json(t)`, `its JSON is longer than 64 MiB`},
	{"JSON of a long string", `return require "daqiri".json(("x"):rep(2^27))`, `its JSON is longer than 64 MiB`},
	{"from_json", `return require "daqiri".from_json("[" .. ("1,"):rep(2^26) .. "1]")`, notEnough},
	{"a configuration", `local t = {} for i = 1, 60 do t = { t, t } end return require "daqiri".open(t)`, `more than \d+ values`},
	{"a message", `local t = {} for i = 1, 60 do t = { t, t } end return require "daqiri".task(function(t) end, t)`, `more than \d+ values`},
	{"os.date", `return os.date(("%c"):rep(2^26))`, tooMuch},
	{"file:read", `return io.open("/dev/zero"):read(2^40)`, tooMuch},
	{"file:read to the end", `return io.open("/dev/zero"):read("*a")`, tooMuch},
	{"file:read of a line", `return io.open("/dev/zero"):read("*l")`, tooMuch},
	{"io.lines", `for l in io.lines("/dev/zero") do end`, tooMuch},
	{"io.read", `io.input("/dev/zero") return io.read(2^40)`, tooMuch},
	{"captures", `return ("x"):find(("("):rep(1e7))`, `^case.lua:\d+: too many captures$`},
	{"pattern", `return ("x"):rep(1e6):find(("x?"):rep(1e6))`, `^case.lua:\d+: pattern too complex$`},
	{"pattern on a long string", `return error(#("x"):rep(2^22):match("^(.-)$"), 0)`, `^4194304$`},
	{"coroutine.wrap", `local function f() return coroutine.wrap(f)() end return f()`, overflow},
	{"coroutine.resume", `local function f() local _, e = coroutine.resume(coroutine.create(f)) error(e, 0) end return f()`, overflow},
	{"coroutine that resumes itself", `local co co = coroutine.create(function()
		local _, e = coroutine.resume(coroutine.create(function() local _, e = coroutine.resume(co) error(e, 0) end)) error(e, 0) end)
		local _, e = coroutine.resume(co) error(e, 0)`, `^cannot resume non-suspended coroutine$`},
	{"recursion in a coroutine", `local function f() return 1 + f() end local _, e = coroutine.resume(coroutine.create(f)) error(e, 0)`, overflow},
	{"pcall", `local function f() local _, e = pcall(f) error(e, 0) end return f()`, overflow},
	{"xpcall", `local function h(e) local _, e = xpcall(error, h) error(e, 0) end local _, e = xpcall(error, h) error(e or "none", 0)`, overflow + `|^none$|nil`},
	{"error in a handler", `local _, e = xpcall(error, function(e) error("again") end) error(e, 0)`, `again`},
	{"recursion and pcall", `local function f(n) if n == 0 then local _, e = pcall(f, 150) error(e, 0) end return 1 + f(n - 1) end return f(150)`, overflow},
	{"gsub in gsub", `local function f() return (("x"):gsub("x", f)) end return f()`, overflow},
	{"pcall and gsub", `local function f(n) if n == 0 then local _, e = pcall(f, 190) error(e, 0) end
		return (("x"):gsub("x", function() return f(n - 1) end)) end return f(190)`, overflow},
	{"__index", `local t = setmetatable({}, { __index = function(t, k) return t[k] end }) return t.x`, overflow},
	{"__tostring", `local t = setmetatable({}, { __tostring = function(t) return tostring(t) end }) return tostring(t)`, overflow},
	{"__concat", `local t = setmetatable({}, { __concat = function(a, b) return a .. b end }) return t .. t`, overflow},
	{"sort", `local function f() table.sort({ 3, 2, 1 }, f) return true end return f()`, overflow},
	{"a table", `local t = {} while true do t[#t + 1] = { 1 } end`, notEnough},
	{"strings in a table", `local t = {} while true do t[#t + 1] = ("x"):rep(1e5) .. #t end`, notEnough},
	{"coroutines", `local t = {} while true do local c = coroutine.wrap(coroutine.yield) c() t[#t + 1] = c end`, notEnough},
	{"functions", `local t = {} while true do local i = #t t[i + 1] = function() return i end end`, notEnough},
}

const (
	notEnough = `^case.lua:\d+: not enough memory: .*\(a quarter of what ulimit -v leaves\)$`
	tooMuch   = `not enough memory|^case.lua:\d+: string too long`
	overflow  = `^case.lua:\d+: stack overflow`
)

// limitHarness runs the case, shows how it ended, and does a session's work after that.
const limitHarness = `local function case() %s
end
local ok, err = pcall(case)
io.stderr:write("result ", tostring(ok), " ", tostring(err):sub(1, 300), "\n")
case = nil
local daqiri = require "daqiri"
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual" } } })
local tx = s:tx_queue("loop0")
s:pipe(s:rx_queue("loop0"), s:write_pcap{ name = "disk", policy = "wait" })
tx:transmit{ template = tx:template{ payload_bytes = 100 }, count = 1000 }
s:threshold("disk.written == 1000")
s:run{}
`

// TestLimits runs each case with 4 GB of addresses: it raises a Luan error, and what comes after runs as if nothing had been.
func TestLimits(t *testing.T) {
	harness.Need(t, "capinfos")
	program := harness.BuiltPlain(t)
	for _, c := range limitCases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "case.lua"), fmt.Appendf(nil, limitHarness, c.source), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", `ulimit -v 4000000; exec "$0" case.lua </dev/null >/dev/null`, program)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			result := regexp.MustCompile(`(?m)^result (true|false) (.*)$`).FindStringSubmatch(string(out))
			switch {
			case err != nil || !strings.Contains(string(out), "every packet is accounted for"):
				t.Errorf("%v", err)
			case result == nil || result[1] != "false" || !regexp.MustCompile(c.want).MatchString(result[2]):
				t.Errorf("%q, want %s", result, c.want)
			case harness.PacketsIn(t, filepath.Join(dir, "disk.pcap"), false) != 1000:
				t.Error("the file does not have 1000 packets")
			}
			if t.Failed() {
				t.Logf("%.3000s", out)
			}
		})
	}
}
