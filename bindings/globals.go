package bindings

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
)

// modules lists the modules of this package that require finds, besides the host's.
var modules = []struct {
	name, doc string
	entry     []entry
	constants []field
}{
	{"daqiri", `the module daqiri
		What 'require "daqiri"' returns: sessions, tasks, arguments, times, the log. Reading a name that it lacks raises.`, daqiriModule, []field{
		{"version", `-> string: as 'daqiri-run --version' has it
			The program's version.
			> print(daqiri.version)`},
	}},
	{"bit", `the module bit
		32 bits with signed results, as in LuaJIT; 64 bits where an operand is a u64. It is a global, too.`, bitModule, nil},
}

// globalsDoc introduces the replaced functions in the reference.
const globalsDoc = `Lua's own functions that differ
	Scripts have the libraries of Lua 5.1. These functions are replaced; what else differs is in [Lua](../lua.md). Reading a global that is not
	there raises where it is certain to be a mistake ([Lua](../lua.md#globals)).`

// globalFunctions are the replaced standard functions, by library; "" is the global table.
var globalFunctions = []struct {
	library string
	entry   []entry
}{
	{"", []entry{
		{"getmetatable", globalGetmetatable, `- v any: any value
			-> any: its metatable, its field '__metatable', or nil
			As Lua's. Of this program's objects it is the name of their type.
			> print(getmetatable(s))    -- session`},
		{"pcall", globalPcall, `- fn function: what is called
			- ... any: its arguments
			-> boolean: whether no error was raised
			-> ...any: the function's results, or the error
			As Lua's. A call that waits works inside.
			> local ok, why = pcall(function() return s:interface "absent" end)
			> print(ok, why)`},
		{"print", globalPrint, `- ... any: what is printed
			As Lua's, to the program's stdout.
			> print("packets", 5)`},
		{"xpcall", globalXpcall, `- fn function: what is called
			- handler fun(e: any): called with the error, where it was raised
			- ... any: arguments of fn
			-> boolean: whether no error was raised
			-> ...any: the function's results, or the handler's
			As Lua's, with arguments as in Lua 5.2.
			> print(xpcall(function(n) return n + 1 end, debug.traceback, 1))`},
	}},
	{"math", []entry{
		{"random", mathRandom, `- m? integer: the upper limit, or the lower one where n follows
			- n? integer: the upper limit
			-> number: in [0, 1) without arguments, else a whole number within the limits
			A random number of the task's own generator, seeded the same in every run.
			> print(math.random(6))`},
		{"randomseed", mathRandomSeed, `- n number: the same number, the same sequence
			Seeds the task's generator.
			> math.randomseed(42)`},
	}},
	{"os", []entry{
		{"clock", osClock, `-> number, s
			Seconds since the Lua state began, on the clock of the tasks.
			> print(os.clock())`},
		{"date", osDate, `- format? string = "%c": directives of C99's strftime, as in locale "C", and '%s'; or '"*t"'
			- time? number = os.time(), s: since the epoch
			-> string | table: a table with '"*t"': year, month, day, hour, min, sec, wday, yday, isdst
			A date as text, in UTC.
			> print(os.date("%F %T", 0))    -- 1970-01-01 00:00:00`},
		{"exit", osExit, `- code? integer | boolean = 0: 0 to 255; true is 0, false is 1
			Ends the program in order: sessions are finished, the summary is made.
			> os.exit(3)`},
		{"time", osTime, `- when? table: year, month, day, and maybe hour (12), min (0), sec (0), in UTC
			-> integer, s: since the epoch
			The time, on the clock of the tasks, or that of the table.
			> print(os.time{ year = 2026, month = 11, day = 20, hour = 0 })`},
	}},
	{"string", []entry{
		{"format", stringFormat, `- text string: with directives as of C's printf
			- ... any: a value for each directive
			-> string
			As Lua's. '%d', '%u', '%x', '%X', '%o' and '%s' also take a u64.
			> print(("%d packets, %x"):format(5, daqiri.u64(255)))`},
	}},
}

// preload registers the modules for require, and bit also as a global.
func (rt *Runtime) preload() {
	L := rt.root
	loaders, ok := L.GetField(L.GetField(L.Get(lua.EnvironIndex), "package"), "preload").(*lua.LTable)
	for _, m := range modules {
		table := rt.module(m.name, m.entry)
		if m.name == "bit" {
			rt.globals().RawSetString("bit", table)
		}
		if ok {
			loaders.RawSetString(m.name, L.NewFunction(func(L *lua.LState) int {
				L.Push(table)
				return 1
			}))
		}
	}
}

// module builds a table of functions; reading a misspelt name raises.
func (rt *Runtime) module(name string, entries []entry) *lua.LTable {
	t := rt.root.NewTable()
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		t.RawSetString(e.name, rt.wrap(rt.root, e, 0))
		names = append(names, e.name)
	}
	if name == "daqiri" {
		t.RawSetString("version", lua.LString(Version))
	}
	value.Strict(rt.root, t, func(_ *lua.LState, key string) string {
		return row.Unknown("function", key, names) + " in module " + name
	})
	return t
}

func (rt *Runtime) globals() *lua.LTable { return rt.root.Get(lua.GlobalsIndex).(*lua.LTable) }

func (rt *Runtime) replaceGlobals() {
	rt.random.seed(uint64(rt.Task.ID()))
	for _, lib := range globalFunctions {
		t := rt.globals()
		if lib.library != "" {
			var ok bool
			if t, ok = t.RawGetString(lib.library).(*lua.LTable); !ok {
				continue // library not opened by the host
			}
		}
		for _, e := range lib.entry {
			t.RawSetString(e.name, rt.wrap(rt.root, e, 0))
		}
	}
}

// strictGlobals makes reads of undefined globals raise where they must be mistakes. A global that was assigned, even to nil, is defined.
func (rt *Runtime) strictGlobals() {
	g := rt.globals()
	defined := map[string]bool{}
	value.Strict(rt.root, g, func(L *lua.LState, key string) string {
		if defined[key] {
			return ""
		}
		use := lua51.UseOf(L, lua.LString(key))
		if use == lua51.Tested {
			return ""
		}
		if lua51.SetSomewhere(L).RawGetString(key) == lua.LNil {
			return rt.unknownGlobal(key)
		}
		if use == lua51.Computed {
			return fmt.Sprintf("global '%s' is not set yet: write %[1]s or 0, or set it before", key)
		}
		return ""
	})
	meta := g.Metatable.(*lua.LTable)
	meta.RawSetString("__newindex", rt.root.NewFunction(func(L *lua.LState) int {
		if key, ok := L.Get(2).(lua.LString); ok {
			defined[string(key)] = true
		}
		g.RawSet(L.Get(2), L.Get(3))
		return 0
	}))
}

// unknownGlobal returns the error for a global that is never set, with a suggestion.
func (rt *Runtime) unknownGlobal(key string) string {
	for _, m := range modules {
		if m.name == key {
			return fmt.Sprintf("unknown global '%s': it is a module (local %s = require \"%s\")", key, key, key)
		}
	}
	if slices.ContainsFunc(daqiriModule, func(e entry) bool { return e.name == key }) {
		return fmt.Sprintf("unknown global '%s': it is a function of the module (daqiri.%[1]s)", key)
	}
	if key == "exit" || key == "quit" {
		return fmt.Sprintf("unknown global '%s': os.exit() ends the program, and Ctrl-D a prompt", key)
	}
	var known []string
	rt.globals().ForEach(func(k, _ lua.LValue) { known = append(known, k.String()) })
	slices.Sort(known)
	return row.Unknown("global", key, known)
}

// globalGetmetatable implements getmetatable.
func globalGetmetatable(c *call) int {
	if c.Count() == 0 {
		c.Wanted(1, "value")
	}
	return c.Push(c.rt.calls.Metatable(c.L, c.Arg(1)))
}

// globalPcall implements pcall.
func globalPcall(c *call) int {
	if c.Count() == 0 {
		c.Wanted(1, "function")
	}
	if f := c.Arg(1); !c.rt.calls.CanBeCalled(c.rt.root, f) {
		c.L.Push(lua.LFalse)
		c.L.Push(lua.LString("attempt to call a " + f.Type().String() + " value"))
		return 2
	}
	return c.rt.threads.Protected(c.L, 1, nil)
}

// globalXpcall implements xpcall: the handler runs where the error was raised, so that debug.traceback shows that position.
func globalXpcall(c *call) int {
	handler := c.Func(2, "function(error)")
	return c.rt.threads.Protected(c.L, 2, handler)
}

// globalPrint implements print.
func globalPrint(c *call) int {
	var b strings.Builder
	for n := 1; n <= c.Count(); n++ {
		if n > 1 {
			b.WriteByte('\t')
		}
		text := c.rt.text(c.L, c.Arg(n))
		lua51.Reserve(c.L, uint64(b.Len()+len(text)))
		b.WriteString(text)
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(c.rt.Stdout, b.String()); err != nil {
		row.RaiseError(c.L, err)
	}
	return 0
}

// stringFormat implements string.format.
func stringFormat(c *call) int { return c.Push(lua.LString(lua51.Format(c.L, &c.Call))) }

// osExit implements os.exit: it ends the process in order, so that sessions are finished and the summary is printed.
func osExit(c *call) int {
	code := 0
	switch v := c.Arg(1).(type) {
	case *lua.LNilType:
	case lua.LBool:
		if !v {
			code = 1
		}
	default:
		code = int(c.Whole(1, "exit code", 0, 255))
	}
	c.rt.exit(c.L, code)
	return 0
}

// exit ends all tasks. Cancelling the state's context also ends a script inside pcall.
func (rt *Runtime) exit(L *lua.LState, code int) {
	cause := &Exit{Code: code}
	rt.Shared.setExit(code)
	rt.Scheduler.CancelAll(cause)
	rt.Task.Cancel(cause)
	row.RaiseError(L, cause)
}

// CallApart calls fn on a thread of its own below L and returns all its results: an error does not close the upvalues of functions on L. A wait
// inside belongs to the task.
func (rt *Runtime) CallApart(L *lua.LState, fn *lua.LFunction, args ...lua.LValue) ([]lua.LValue, error) {
	return rt.threads.CallApart(L, fn, args...)
}

// osTime implements os.time on the scheduler's clock; a table argument is converted as UTC.
func osTime(c *call) int {
	if c.Arg(1) == lua.LNil {
		return c.Push(lua.LNumber(math.Floor(float64(c.rt.Scheduler.Now()) / 1e9)))
	}
	t := c.Table(1, "table")
	part := func(name string, missing int64) int {
		v := t.RawGetString(name)
		if v == lua.LNil && missing >= 0 {
			return int(missing)
		}
		f, ok := lua51.ToNumber(v)
		if !ok {
			c.ArgError(1, "field '%s': a number expected, got %s", name, row.Describe(v))
		}
		n, err := row.WholeNumber(lua.LNumber(math.Trunc(f)), -1<<31, 1<<31)
		if err != nil {
			c.ArgError(1, "field '%s': %v", name, err)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1),
		part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	return c.Push(lua.LNumber(at.Unix()))
}

// osClock implements os.clock: seconds since the state was created, on the scheduler's clock.
func osClock(c *call) int {
	return c.Push(lua.LNumber(float64(c.rt.Scheduler.Now()-c.rt.began) / 1e9))
}

// osDate implements os.date in UTC: a table for "*t", otherwise text formatted by strftime directives.
func osDate(c *call) int {
	format := "%c"
	if c.Arg(1) != lua.LNil {
		format = strings.TrimPrefix(c.Text(1, "format text"), "!")
	}
	seconds := c.rt.Scheduler.Now() / int64(time.Second)
	if c.Arg(2) != lua.LNil {
		seconds = c.truncated(2, "time")
	}
	at := time.Unix(seconds, 0).UTC()
	if strings.HasPrefix(format, "*t") {
		t := c.L.NewTable()
		for name, v := range map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(),
			"hour": at.Hour(), "min": at.Minute(), "sec": at.Second(), "wday": int(at.Weekday()) + 1,
			"yday": at.YearDay()} {
			t.RawSetString(name, lua.LNumber(v))
		}
		t.RawSetString("isdst", lua.LFalse)
		return c.Push(t)
	}
	text, err := lua51.Strftime(c.L, format, at)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(lua.LString(text))
}

// truncated returns argument n without its fraction, as Lua's own functions convert integers.
func (c *call) truncated(n int, what string) int64 {
	f, ok := lua51.ToNumber(c.Arg(n))
	if !ok {
		c.Wanted(n, what)
	}
	v, err := row.WholeNumber(lua.LNumber(math.Trunc(f)), -row.MaxInt, row.MaxInt)
	if err != nil {
		c.ArgError(n, "%s: %v", what, err)
	}
	return v
}

// random is a state's own generator: every task draws the same numbers in each run until the script seeds it.
type random struct{ r *rand.Rand }

func (g *random) seed(n uint64) { g.r = rand.New(rand.NewPCG(n, 0x9e3779b97f4a7c15)) }

// mathRandom implements math.random: a number in [0, 1), in 1..m, or in m..n.
func mathRandom(c *call) int {
	c.AtMost(2)
	lo, hi := int64(1), int64(0)
	switch c.Count() {
	case 0:
		return c.Push(lua.LNumber(c.rt.random.r.Float64()))
	case 1:
		hi = c.truncated(1, "upper limit")
	case 2:
		lo, hi = c.truncated(1, "lower limit"), c.truncated(2, "upper limit")
	}
	if lo > hi {
		c.ArgError(c.Count(), "interval is empty")
	}
	return c.Push(lua.LNumber(lo + c.rt.random.r.Int64N(hi-lo+1)))
}

func mathRandomSeed(c *call) int {
	c.rt.random.seed(math.Float64bits(lua51.FormatNumber(&c.Call, 1)))
	return 0
}
