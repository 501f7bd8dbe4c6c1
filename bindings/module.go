package bindings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/scriptargs"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// daqiriModule lists what require "daqiri" returns, except the version.
var daqiriModule = []entry{
	{"args", moduleArgs, `- declared table<string, any>: by name, a default value, or '{value, type, unit, help, choices, required}'
		-> table<string, any>: the arguments by name; another name raises
		Declares the script's arguments, reads them from the words behind the script ('--name value', '--name=value', 'name=value'; '-n value' for a
		name of one letter) and from '-e', and returns them. The type is that of the default, or given as 'type': 'string', 'number', 'boolean' or 'list' (texts with commas between them). The value of a
		declaration may also be its first element. '--help' behind the script prints them and ends the program.
		> local args = daqiri.args{ seconds = { 10, unit = "s", help = "how long" }, dir = "captures" }
		> print(args.seconds, args.dir)`},
	{"array", moduleArray, `. kind "host" | "host_pinned" | "device": in the host's memory, there and in reach of the GPU, or in the GPU's; where kernels run on the host
		  all three are the host's
		. type ` + row.OneOf(kernel.TypeNames()) + `: of the elements
		. shape integer | integer[]: how many elements, or how many in each of up to 8 dimensions
		. gpu integer | string = 0: the GPU's number, or its PCI address, '"8A:00.0"', as 'inspect' prints it
		. memory? string: '"host"': kernels run on the host; by default as the session that was opened last, and '--memory', say
		-> array
		Makes an [array](array.md) of zeros, for kernels and the script.
		> local out = daqiri.array{ kind = "device", memory = "host", type = "fp32", shape = { 4, 2 } }
		> out:set(4, 2, 0.5)
		> print(out:sum())`},
	{"control", moduleControl, `. unix? string: path of a unix socket, which the script makes
		. tcp? string: IP:PORT to listen at, with a token
		. mode string = "0600": of the unix socket's file
		. token? string: which the first message of a connection has to have
		-> control
		Opens a control channel: a socket on which other programs send commands to the script, a line of JSON each (see [control](control.md)). One of 'unix'
		and 'tcp' is needed. It ends with the script.
		> local ctl = daqiri.control{ tcp = "127.0.0.1:0", token = "open sesame" }
		> ctl:on("status", function(m) return { packets = s:stats().b.rx.packets } end)`},
	{"find_limit", moduleFindLimit, `. low rate: where the search begins; a trial there should pass
		. high rate: where it ends
		. precision? rate: how near the limit has to be; by default a hundredth of the range
		. trial function: called with a rate in bits/s; it returns whether that rate passed, or '"invalid"' where the sender itself fell short, which
		  counts as not passed
		-> number | nil, bit/s: the highest rate that passed; nil, where none did
		-> table[]: the trials in order: '{rate, verdict}'
		Searches the highest rate that passes by halving: the highest first, the lowest, then what lies between.
		> local limit, trials = daqiri.find_limit{ low = "1Mbit/s", high = "1Gbit/s", precision = "1Mbit/s",
		>   trial = function(rate) return rate < 3e8 end }
		> print(limit, #trials)`},
	{"format", moduleFormat, `- name format_name | table: the name of a format that the script declared or that is in the library; or a table that declares one, as
		  [formats](../formats.md) say; or fields with their places
		. items? table<string, integer>: of a format with a list of items: names for more of them, by their key
		-> format
		Names for the fields of an application's packets, for conditions, columns and templates: see [format](format.md). An error in the table raises with its
		field and line. Where the table has a name, the format is known by it from then on.
		> local f = daqiri.format{ name = "mine", sequence = "seq",
		>   { "seq", 32 }, { "chan", 12 }, { "gain", 4 },
		>   { "temperature", "i16", scale = 0.01 } }
		> local heaps = daqiri.format("spead-64-48", { items = { timestamp = 0x1600 } })
		> local text = daqiri.format{ struct = ">IHbx", "seq", "chan", "level" }
		> local seq = { at = "payload", bit_offset = 0, bit_width = 32 }
		> local place = daqiri.format{ seq = seq }`},
	{"from_json", moduleFromJSON, `- text string: JSON, one value
		-> any | failure
		The value of a JSON text. A whole number above 2^53 becomes a u64, null becomes nil; text that is not JSON gives nil, '"INVALID_PARAMETER"', text.
		> local t = daqiri.from_json('{"channels": [1, 2, 3]}')
		> print(#t.channels)`},
	{"hex", moduleHex, `- text string, bytes
		-> string: two digits a byte
		The bytes of a string as hexadecimal digits.
		> print(daqiri.hex("\1\255"))    -- 01ff`},
	{"json", moduleJSON, `- value any: nil, a boolean, number, string, u64, time, column or part of the configuration, or a table of these
		-> string
		A value as JSON on one line, with sorted keys. A table with the keys 1 to n is a list, an empty one is '{}'.
		> print(daqiri.json{ name = "a", list = { 1, 2 } })`},
	{"kernel", moduleKernel, `. src? string: CUDA source
		. file? string: a file with CUDA source, or with PTX where its name ends in '.ptx'; looked for here, then beside the script
		. ptx? string: PTX, which needs no compiler
		. library? ` + row.OneOf(kernel.MathNames()) + `: a product of matrices by cuBLAS, or Fourier transforms by cuFFT, on a GPU
		. shape? integer[]: of 'library': of "gemm" rows, columns and inner: 'out = a b', of rows x inner and inner x columns numbers, row by row. Of "fft" points of
		  a transform, and how many lie one behind the other: forward, of complex numbers (real, imaginary), not scaled
		. entry? string: the kernel's name in it, a '__global__' function; by default the only one
		. name? string: in errors and of its stages; by default the entry
		. grid? integer | integer[]: blocks, or a list of up to 3: x, y, z; needed, but with 'library'
		. block? integer | integer[]: threads of a block, or a list of up to 3; needed, but with 'library'
		. stream? stream: in which it runs; by default one of its own
		. gpu integer | string = 0: the GPU's number, or its PCI address, '"8A:00.0"', as 'inspect' prints it
		. memory? string: '"host"': the host runs it; by default as the session that was opened last, and '--memory', say
		. include? string[]: folders of the headers that 'file' includes with quotes, behind its own folder and the one above
		. persistent? boolean: it has rings and runs for long ('k:start')
		. rings? table: of a persistent kernel: 'tx', 'rx', 'semaphores': slots of each (256, 256, 64), powers of two; 'ops': what transmit rings take,
		  of "send" (the default), "put", "get", "add", "cas", "copy", "file", "wait"
		-> kernel
		Makes a [kernel](kernel.md): NVRTC compiles source for a GPU, the C++ or C compiler for the host, and what they made is kept in the user's cache folder.
		One of 'src', 'file', 'ptx' and 'library' is needed. A source that doesn't compile raises with the lines of the script. What kernels get, and what the
		host can run, is described in [kernels](../kernels.md).
		> local twice = daqiri.kernel{ memory = "host", grid = 1, block = 4, src = [[
		>   __global__ void twice(float *a) { a[threadIdx.x] *= 2; }
		> ]] }
		> twice:launch(array):wait()`},
	{"log", moduleLog, `- level "debug" | "info" | "warn" | "error": how much it matters
		- text any: what happened
		- value? any: shown behind the text; of a table its keys are fields
		Writes a line to the log.
		> daqiri.log("warn", "odd packets", { n = 5 })`},
	{"log_level", moduleLogLevel, `- level? "debug" | "info" | "warn" | "error" | "off": from which on lines are logged; without it nothing changes
		-> string: what it was
		Sets from which level on lines are logged. A configuration's 'log_level' does the same when its session opens, unless the command line
		has '--log-level'.
		> local was = daqiri.log_level("error")
		> daqiri.log_level(was)`},
	{"memory_requirements", moduleMemoryRequirements, `- configuration? string | table: as of 'daqiri.open'
		. set? table<string, any>: as of 'daqiri.open', like the options that follow
		. engine? string: which engine serves every interface
		. memory? string: which kind of memory regions have
		. bindings? table<string, any>: memory that is checked as 'daqiri.open' checks it
		-> table<string, table> | failure: by region: 'kind', 'slot_size', 'headroom' (bytes before each packet), 'num_bufs', 'capacity', 'alignment', in bytes
		Computes what memory a region can be bound to must have. It opens nothing and allocates no memory; nil, status, text where a binding does not fit.
		> local need = daqiri.memory_requirements().packets
		> print(need.capacity, need.slot_size * need.num_bufs)`},
	{"now", moduleNow, `-> time
		The time on the clock of the tasks: the system's, or the virtual one.
		> local began = daqiri.now()
		> print(daqiri.now() - began)    -- seconds`},
	{"on_message", moduleOnMessage, `- fn fun(v: any): called with each message
		In a task: has a function called with what the task above sends. A task with a handler continues when its function has returned.
		> local t = daqiri.task(function()
		>   local daqiri = require "daqiri"
		>   daqiri.on_message(function(v) daqiri.send(v * 2) end)
		> end)
		> t:on_message(print)
		> t:send(21)`},
	{"open", moduleOpen, `- configuration? string | table: a file's name, YAML with more than one line, or a table like the file; without it one looped interface
		. set? table<string, any>: values for keys of the configuration, by their paths ('"interfaces.0.address"')
		. engine? string: which engine serves every interface, in place of those in the configuration: '"loop"'
		. cores? string: '"auto"', or cores instead of those in the file: '"2,4-7"'
		. memory? string: which kind of memory regions have: '"host"'
		. name? string: what summary and log call the session: by default the file's name
		. bindings? table<string, any>: memory of the application for memory regions, by their names: an array, or a table with one of 'array', 'fd',
		  'file', 'shm' and 'cuda_ipc', and with 'offset' and 'bytes'. See [memory](../memory.md)
		-> session
		Opens a session: nothing moves before it starts. A file is looked for here, then beside the script. Options of the command line come
		before those of the call. A configuration with errors raises, with each error's line.
		> local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual" } } })
		> print(s.name)    -- default`},
	{"parse", moduleParse, `- configuration? string | table: as of 'daqiri.open'
		-> table: the configuration as it is written, as 'daqiri.open' takes it
		-> table: the same resolved, as 's.config'
		Reads and checks a configuration without opening anything.
		> local written, resolved = daqiri.parse()
		> print(written.daqiri.cfg.interfaces[1].name, resolved.interfaces[1].name)`},
	{"ptp_clock", modulePTPClock, `- index integer: of the device /dev/ptpINDEX
		-> table: 'name', as its driver reports it; 'offset', ns: its time minus that of the system's clock; 'uncertainty', ns: the bound of the offset's error
		Reads a hardware clock (PTP) and the system's clock together, by the most precise method of the clock's driver. Raises where there is none.
		> local found, clock = pcall(daqiri.ptp_clock, 0)
		> if found then print(clock.name, clock.offset, clock.uncertainty) end`},
	{"realtime", moduleRealtime, `- priority integer: from 1 to 99
		Gives the thread of the main chunk, or of the task, the scheduling policy SCHED_FIFO with that priority, and locks all memory of the process. Raises
		where the process may not do that. Threads that this one starts later have the policy too: call it after 's:start()'.
		> local function prepare() daqiri.realtime(50) end    -- before what is measured`},
	{"receive", moduleReceive, `. timeout? duration: how long it waits; by default without limit
		-> any | failure
		In a task: waits for the next message from the task above; nil, '"NOT_READY"', text at the timeout.
		> local t = daqiri.task(function()
		>   local daqiri = require "daqiri"
		>   local v = daqiri.receive{ timeout = "1s" }
		>   if v then daqiri.send("got " .. v) end
		> end)
		> t:send("it")`},
	{"send", moduleSend, `- v any: what 't:send' takes
		-> true | failure
		In a task: sends a copy of a value to the task above; nil, status, text when its inbox is full or it is over.
		> local t = daqiri.task(function() require("daqiri").send("ready") end)
		> t:on_message(print)`},
	{"sleep", moduleSleep, `- seconds duration: how long
		Waits. Handlers are called meanwhile, when it is the main chunk that sleeps.
		> daqiri.sleep("5ms")`},
	{"stream", moduleStream, `. gpu integer | string = 0: the GPU's number, or its PCI address, '"8A:00.0"', as 'inspect' prints it
		. memory? string: as of 'daqiri.kernel'
		-> stream
		Makes a [stream](stream.md): kernels that have it run one behind the other.
		> local stream = daqiri.stream{ memory = "host" }`},
	{"task", moduleTask, `- work function | string: a Lua function that uses no local from outside, or the name of a module
		- ... any: its arguments: what 't:send' takes, queues, which it then owns, and functions that use no local from outside
		-> task
		Starts a task: a Lua state with a thread of its own. The call returns when the task waits for the first time, at the latest after a second. A task
		whose function has returned continues as long as it has handlers. A module's chunk gets the arguments as '...'.
		> local t = daqiri.task(function(q)
		>   q:on_burst(function(b) return b.n end)
		> end, q)`},
	{"time", moduleTime, `- when instant: a text, a u64, or a time, which is returned unchanged
		-> time
		An absolute time. A text is a date with or without a time of day, in UTC unless it has a zone ('"2026-11-20T10:00:00.5Z"'), '"now"',
		'"now + 5s"', or seconds since the epoch ('"@1795168800.5"'). Times go from 1970 to 2262.
		> local start = daqiri.time "now + 100ms"`},
	{"u64", moduleU64, `- v integer | string | u64: from 0 on; a text may be decimal or begin with 0x, 0o or 0b
		-> u64
		A 64-bit unsigned integer, for what a number can't hold.
		> local big = daqiri.u64 "0xffffffffffffffff"
		> print(big)    -- 18446744073709551615`},
}

// openOptions reads what changes a configuration; options of the command line come first.
func (o *options) openOptions() spec.Options {
	opened := o.c.rt.Open
	return spec.Options{Engine: cmp.Or(opened.Engine, o.Str("engine", "")), Memory: cmp.Or(opened.Memory, o.Str("memory", "")),
		Set: append(o.overrides(), opened.Set...), Sources: opened.Sources}
}

// moduleOpen implements daqiri.open(file | YAML text | table | nil, {set, engine, cores, memory, bindings}). No packets move before the session starts.
func moduleOpen(c *call) int {
	c.AtMost(2)
	o := c.options(2)
	opts := o.openOptions()
	cores := o.Str("cores", "")
	if c.rt.Open.Cores != "" {
		cores = c.rt.Open.Cores
	}
	name, cfg, warnings, err := c.configuration(opts)
	name = o.Str("name", name)
	for _, w := range warnings {
		c.rt.Log("warn", w.Error(), nil)
	}
	c.Check(err)
	c.rt.logFrom(cfg)
	env := session.Env{Scheduler: c.rt.Scheduler, Owner: c.rt.Task, Program: session.Program{Version: Version, Script: c.rt.Script, Text: c.rt.shippedText(c.rt.Script)},
		Bindings: o.bindings("bindings")}
	env.Cores, err = preflight.ParseCores(cores)
	c.Check(err)
	s, err := session.Open(cfg, env)
	if err != nil {
		row.RaiseError(c.L, &OpenError{err})
	}
	opened := &RunningSession{name: name, s: s, owner: c.rt.Task, timers: map[*timer]bool{}}
	c.rt.Shared.add(opened)
	c.rt.opened = append(c.rt.opened, opened)
	c.rt.memory = opts.Memory
	for _, line := range s.Report() {
		c.rt.Log("debug", line, map[string]any{"session": name})
	}
	return c.Push(c.rt.newObject(&sessionHandle{o: opened}))
}

// configuration reads the configuration that argument 1 names.
func (c *call) configuration(opts spec.Options) (name string, cfg *spec.Config, warnings []spec.Issue, err error) {
	opts.Verbs = preflight.HasVerbs
	switch v := c.Arg(1).(type) {
	case *lua.LNilType:
	case lua.LString:
		switch text := string(v); {
		case strings.Contains(text, "\n"):
			cfg, warnings, err = spec.ParseText("text", text, opts)
			return "text", cfg, warnings, err
		case !c.rt.Open.DefaultConfig:
			path := c.rt.find(text)
			if _, gone := os.Stat(path); gone != nil && c.rt.shippedText(path) != "" {
				cfg, warnings, err = spec.ParseText(text, c.rt.shippedText(path), opts)
				return text, cfg, warnings, err
			}
			cfg, warnings, err = spec.ParseFile(path, opts)
			if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(text) {
				err = fmt.Errorf("%w: looked %s", err, c.rt.places())
			}
			return text, cfg, warnings, err
		}
	case *lua.LTable:
		table, err := value.Of(v, 0)
		if err != nil {
			c.ArgError(1, "%v", err)
		}
		cfg, warnings, err = spec.ParseTable(table, opts)
		return "table", cfg, warnings, err
	default:
		c.Wanted(1, "file name, YAML text, table or nothing")
	}
	cfg, warnings, err = spec.ParseText("default", spec.Default(), opts)
	return "default", cfg, warnings, err
}

// moduleParse implements daqiri.parse(file | YAML text | table | nil): it returns the checked configuration as written, as a table for
// daqiri.open, and resolved, like s.config. The command line's options apply.
func moduleParse(c *call) int {
	c.AtMost(1)
	_, cfg, _, err := c.configuration(spec.Options{Engine: c.rt.Open.Engine, Memory: c.rt.Open.Memory, Set: c.rt.Open.Set, Sources: c.rt.Open.Sources})
	c.Check(err)
	c.L.Push(c.rt.fromGo(cfg.Written()))
	c.L.Push(value.Configuration(c.rt.root, cfg, c.rt.integer))
	return 2
}

// find looks up a file in the current folder, then in the script's folder.
func (rt *Runtime) find(path string) string {
	if _, err := os.Stat(path); err == nil || filepath.IsAbs(path) || rt.Script == "" {
		return path
	}
	beside := filepath.Join(filepath.Dir(rt.Script), path)
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	return path
}

// shippedText returns a file's text for a script that is part of the program; "" if there is none.
func (rt *Runtime) shippedText(path string) string {
	if rt.Open.Shipped == nil {
		return ""
	}
	text, _ := fs.ReadFile(rt.Open.Shipped, path)
	return string(text)
}

// places describes where find searches, for errors.
func (rt *Runtime) places() string {
	here, err := os.Getwd()
	if err != nil {
		here = "this folder"
	}
	beside, err := filepath.Abs(filepath.Dir(rt.Script))
	if err != nil || rt.Script == "" || beside == here {
		return "in " + here
	}
	return "in " + here + " and beside the script, in " + beside
}

// overrides reads set = {path = value}, sorted by path.
func (o *options) overrides() []spec.Override {
	if !o.Has("set") {
		return nil
	}
	t, ok := o.Get("set").(*lua.LTable)
	if !ok {
		o.Wrong("set", "a table of paths expected, got %s", row.Describe(o.Get("set")))
	}
	var paths []string
	t.ForEach(func(k, _ lua.LValue) { paths = append(paths, k.String()) })
	var list []spec.Override
	slices.Sort(paths)
	for _, path := range paths {
		v, err := value.Of(t.RawGetString(path), 0)
		if err != nil {
			o.Wrong("set", "%s: %v", path, err)
		}
		list = append(list, spec.Override{Path: path, Value: v, Source: "set"})
	}
	return list
}

var logLevels = []string{"debug", "info", "warn", "error"}

// moduleLog implements daqiri.log(level, text, value).
func moduleLog(c *call) int {
	c.log(nil)
	return 0
}

// moduleLogLevel implements daqiri.log_level(level): it sets the minimum level, or "off", and returns the previous one.
func moduleLogLevel(c *call) int {
	c.AtMost(1)
	level := c.OptionalStr(1, "level", "")
	if level != "" && level != "off" && !slices.Contains(logLevels, level) {
		c.ArgError(1, "'%s' is not one of %s, off", level, strings.Join(logLevels, ", "))
	}
	return c.Push(lua.LString(c.rt.LogLevel(level)))
}

// logFrom applies a configuration's log level unless the command line set one. DAQIRI has one level below debug and one above error.
func (rt *Runtime) logFrom(cfg *spec.Config) {
	if rt.Open.KeepLogLevel || !cfg.Has("log_level") {
		return
	}
	level := cfg.LogLevel
	if nearest := map[string]string{"trace": "debug", "critical": "error"}[level]; nearest != "" {
		level = nearest
	}
	rt.LogLevel(level)
}

// log writes a log line from arguments 1 to 3: level, text, and a table of fields or a single value.
func (c *call) log(fields map[string]any) {
	level := c.Str(1, "level")
	if !slices.Contains(logLevels, level) {
		c.ArgError(1, "'%s' is not one of %s", level, strings.Join(logLevels, ", "))
	}
	text := c.rt.text(c.L, c.Arg(2))
	if fields == nil {
		fields = map[string]any{}
	}
	switch v := c.Arg(3).(type) {
	case *lua.LNilType:
	case *lua.LTable:
		v.ForEach(func(k, e lua.LValue) { fields[k.String()] = c.logged(e) })
	default:
		fields["value"] = c.logged(v)
	}
	c.rt.Log(level, text, fields)
}

// jsonText is JSON that is embedded in a JSON log and printed as text otherwise.
type jsonText string

// MarshalJSON returns the text unchanged.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

func (c *call) logged(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) { // not representable in JSON
			return f
		}
	case lua.LBool:
		return bool(v)
	case *lua.LTable:
		if text, err := value.AppendJSON(nil, v, 0); err == nil {
			return jsonText(text)
		}
	}
	return c.rt.text(c.L, v)
}

// moduleJSON implements daqiri.json: a value as JSON on one line, with sorted keys.
func moduleJSON(c *call) int {
	c.AtMost(1)
	text, err := value.AppendJSON(nil, c.Arg(1), 0)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(lua.LString(text))
}

// moduleFromJSON implements daqiri.from_json. Invalid JSON is an expected failure: nil, status, text.
func moduleFromJSON(c *call) int {
	text := c.Str(1, "JSON text")
	c.Check(lua51.Room(c.L, value.DecodedBytes*uint64(len(text))))
	v, err := value.ParseJSON(text)
	if err != nil {
		return c.notSuch("json: " + err.Error())
	}
	return c.Push(c.rt.fromGo(v))
}

// moduleArgs implements daqiri.args: it parses the declared script arguments and returns them by name. A declaration is a default value, or a
// table with value (or the first element), type, unit, help, choices and required.
func moduleArgs(c *call) int {
	t := c.Table(1, "table of arguments")
	declared := scriptargs.Declare(&c.Call, t)
	if c.rt.Main {
		c.rt.Shared.setUsage(scriptargs.Usage(c.rt.Script, declared))
	}
	given, help, err := scriptargs.Split(c.rt.ScriptArgs, declared)
	if err == nil {
		err = scriptargs.UnknownEnv(c.rt.Env, declared)
	}
	if err != nil {
		row.RaiseError(c.L, &ArgsError{fmt.Errorf("%w (--help behind the script lists its arguments)", err)})
	}
	if help {
		_, err := io.WriteString(c.rt.Stdout, c.rt.Shared.Usage())
		c.Check(err)
		c.rt.exit(c.L, 0)
	}
	out := c.L.NewTable()
	names := make([]string, len(declared))
	for i, a := range declared {
		names[i] = a.Name
		text, ok := given[a.Name]
		if !ok {
			text, ok = c.rt.Env[a.Name]
		}
		v := a.Default
		if ok {
			if v, err = scriptargs.Parse(c.L, a, text); err != nil {
				row.RaiseError(c.L, &ArgsError{fmt.Errorf("--%s: %w", a.Name, err)})
			}
		} else if a.Required {
			row.RaiseError(c.L, &ArgsError{fmt.Errorf("--%s is missing: %s", a.Name, a.Help)})
		}
		out.RawSetString(a.Name, v)
	}
	value.Strict(c.rt.root, out, func(_ *lua.LState, key string) string {
		for _, a := range declared {
			if a.Name == key {
				return "" // declared without a value
			}
		}
		return row.Unknown("argument", key, names)
	})
	return c.Push(out)
}
