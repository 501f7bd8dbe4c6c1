package bindings

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// daqiriModule is what require "daqiri" returns, beside the version.
var daqiriModule = []entry{
	{"args", moduleArgs},
	{"format", moduleFormat},
	{"from_json", moduleFromJSON},
	{"hex", moduleHex},
	{"json", moduleJSON},
	{"log", moduleLog},
	{"log_level", moduleLogLevel},
	{"now", moduleNow},
	{"on_message", moduleOnMessage},
	{"open", moduleOpen},
	{"parse", moduleParse},
	{"receive", moduleReceive},
	{"send", moduleSend},
	{"sleep", moduleSleep},
	{"task", moduleTask},
	{"time", moduleTime},
	{"u64", moduleU64},
}

// moduleOpen is daqiri.open(file | YAML text | table | nil, {set, engine, cores, memory}). Nothing
// moves before the session starts.
func moduleOpen(c *call) int {
	c.atMost(2)
	o := c.options(2, "cores", "engine", "memory", "set")
	opts := spec.Options{Engine: o.str("engine", ""), Memory: o.str("memory", ""),
		Set: append(o.overrides(), c.rt.Open.Set...), Sources: c.rt.Open.Sources}
	if c.rt.Open.Engine != "" {
		opts.Engine = c.rt.Open.Engine
	}
	if c.rt.Open.Memory != "" {
		opts.Memory = c.rt.Open.Memory
	}
	cores := o.str("cores", "")
	if c.rt.Open.Cores != "" {
		cores = c.rt.Open.Cores
	}
	name, cfg, warnings, err := c.configuration(opts)
	for _, w := range warnings {
		c.rt.Log("warn", w.Error(), nil)
	}
	c.check(err)
	c.rt.logFrom(cfg)
	env := session.Env{Scheduler: c.rt.Scheduler, Owner: c.rt.Task, Program: session.Program{Version: Version, Script: c.rt.Script}}
	env.Cores, err = session.ParseCores(cores)
	c.check(err)
	s, err := session.Open(cfg, env)
	if err != nil {
		raiseError(c.L, &OpenError{err})
	}
	opened := &Opened{name: name, s: s, owner: c.rt.Task, timers: map[*timer]bool{}}
	c.rt.Shared.add(opened)
	c.rt.opened = append(c.rt.opened, opened)
	for _, line := range s.Report() {
		c.rt.Log("debug", line, map[string]any{"session": name})
	}
	return c.push(c.rt.newObject(&sessionHandle{o: opened}))
}

// configuration reads what argument 1 names.
func (c *call) configuration(opts spec.Options) (name string, cfg *spec.Config, warnings []spec.Issue, err error) {
	switch v := c.arg(1).(type) {
	case *lua.LNilType:
	case lua.LString:
		switch text := string(v); {
		case strings.Contains(text, "\n"):
			cfg, warnings, err = spec.ParseText("text", text, opts)
			return "text", cfg, warnings, err
		case !c.rt.Open.DefaultConfig:
			cfg, warnings, err = spec.ParseFile(c.rt.find(text), opts)
			if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(text) {
				err = fmt.Errorf("%w: looked %s", err, c.rt.places())
			}
			return text, cfg, warnings, err
		}
	case *lua.LTable:
		table, err := plainValue(v, 0)
		if err != nil {
			c.argError(1, "%v", err)
		}
		cfg, warnings, err = spec.ParseTable(table, opts)
		return "table", cfg, warnings, err
	default:
		c.wanted(1, "file name, YAML text, table or nothing")
	}
	cfg, warnings, err = spec.ParseText("default", spec.Default(), opts)
	return "default", cfg, warnings, err
}

// moduleParse is daqiri.parse(file | YAML text | table | nil): the configuration as it is written, checked, as a table
// that daqiri.open takes, and resolved, as s.config. The command line's options count.
func moduleParse(c *call) int {
	c.atMost(1)
	_, cfg, _, err := c.configuration(spec.Options{Engine: c.rt.Open.Engine, Memory: c.rt.Open.Memory, Set: c.rt.Open.Set, Sources: c.rt.Open.Sources})
	c.check(err)
	c.L.Push(c.rt.fromGo(cfg.Written()))
	c.L.Push(c.rt.configuration(cfg))
	return 2
}

// find looks for a file here, then beside the script.
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

// places says where find looks.
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

// overrides reads set = {path = value}, in order of the paths.
func (o *options) overrides() []spec.Override {
	if !o.has("set") {
		return nil
	}
	t, ok := o.get("set").(*lua.LTable)
	if !ok {
		o.wrong("set", "a table of paths expected, got %s", describe(o.get("set")))
	}
	var paths []string
	t.ForEach(func(k, _ lua.LValue) { paths = append(paths, k.String()) })
	var list []spec.Override
	for _, path := range sortedStrings(paths) {
		v, err := plainValue(t.RawGetString(path), 0)
		if err != nil {
			o.wrong("set", "%s: %v", path, err)
		}
		list = append(list, spec.Override{Path: path, Value: v, Source: "set"})
	}
	return list
}

var logLevels = []string{"debug", "info", "warn", "error"}

// moduleLog is daqiri.log(level, text, value).
func moduleLog(c *call) int {
	c.log(nil)
	return 0
}

// moduleLogLevel is daqiri.log_level(level): lines are logged from this level on, none if "off"; what it was.
func moduleLogLevel(c *call) int {
	c.atMost(1)
	level := c.optStr(1, "level", "")
	if level != "" && level != "off" && !slices.Contains(logLevels, level) {
		c.argError(1, "'%s' is not one of %s, off", level, strings.Join(logLevels, ", "))
	}
	return c.push(lua.LString(c.rt.LogLevel(level)))
}

// logFrom sets the level that a configuration asks for, unless the command line did: the reference has one below debug
// and one above error.
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

// log logs arguments 1 to 3: level, text, and a table of fields or a single value.
func (c *call) log(fields map[string]any) {
	level := c.str(1, "level")
	if !slices.Contains(logLevels, level) {
		c.argError(1, "'%s' is not one of %s", level, strings.Join(logLevels, ", "))
	}
	text := c.rt.text(c.L, c.arg(2))
	if fields == nil {
		fields = map[string]any{}
	}
	switch v := c.arg(3).(type) {
	case *lua.LNilType:
	case *lua.LTable:
		v.ForEach(func(k, e lua.LValue) { fields[k.String()] = c.logged(e) })
	default:
		fields["value"] = c.logged(v)
	}
	c.rt.Log(level, text, fields)
}

// jsonText is JSON that a log in JSON takes as it is, and one in text shows.
type jsonText string

// MarshalJSON is the text.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

func (c *call) logged(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) { // those have no form in a JSON log
			return f
		}
	case lua.LBool:
		return bool(v)
	case *lua.LTable:
		if text, err := appendJSON(nil, v, 0); err == nil {
			return jsonText(text)
		}
	}
	return c.rt.text(c.L, v)
}
