package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/tests/require"
)

// newScriptState creates a state that also finds the modules in testdata.
func newScriptState(rt *bindings.Runtime) (*lua.LState, error) {
	L := lua.NewState()
	L.SetField(L.GetField(L.Get(lua.GlobalsIndex), "package"), "path", lua.LString("testdata/?.lua"))
	bindings.Register(L, rt)
	L.PreloadModule("printed", func(L *lua.LState) int {
		L.Push(L.NewFunction(func(L *lua.LState) int { return printed(L, rt) }))
		return 1
	})
	return L, nil
}

// printed calls a function and returns what it wrote to stdout.
func printed(L *lua.LState, rt *bindings.Runtime) int {
	var b strings.Builder
	stdout := rt.Stdout
	defer func() { rt.Stdout = stdout }()
	rt.Stdout = &b
	L.Push(L.CheckFunction(1))
	L.Call(0, 0)
	L.Push(lua.LString(b.String()))
	return 1
}

// virtual selects the virtual clock for every session of a script.
var virtual = spec.Override{Path: "loopback", Value: map[string]any{"mode": "sw", "clock": "virtual", "seed": 1}}

// TestScripts runs each script of testdata on the real clock and, except for sockets and persistent kernels, on the virtual clock. The scripts
// contain assertions.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "check.lua" || name == "worker.lua" {
			continue
		}
		source := readScript(t, file)
		for _, clock := range []string{"real", "virtual"} {
			if clock == "virtual" && slices.Contains([]string{"sockets.lua", "remote.lua", "persistent.lua", "dispatch.lua", "kernel_arguments.lua"}, name) {
				continue
			}
			t.Run(strings.TrimSuffix(name, ".lua")+"/"+clock, func(t *testing.T) {
				t.Parallel()
				o := run(t, name, source, func(rt *bindings.Runtime) { prepare(t, rt, name, clock) })
				if code, asked := o.shared.Exit(); asked != (name == "exit.lua") || asked && code != 7 {
					t.Errorf("exit: %v, code %d", asked, code)
				} else if o.err != nil && !asked {
					t.Errorf("%v\nit printed:\n%s", o.err, o.out)
				}
				balanced(t, o)
			})
		}
	}
}

func readScript(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

func prepare(t *testing.T, rt *bindings.Runtime, name, clock string) {
	rt.NewState = newScriptState
	rt.LoadModule = func(L *lua.LState, name string) (*lua.LFunction, error) {
		return L.LoadFile("testdata/" + name + ".lua")
	}
	if clock == "virtual" {
		rt.Open.Set = []spec.Override{virtual}
	}
	switch name {
	case "args.lua":
		rt.ScriptArgs = strings.Fields("--count 7 name=x --flag --ratio=0.5 --hosts a,b")
		rt.Env = map[string]string{"role": "tx"}
	case "mistakes.lua", "ops.lua", "ownership.lua", "persistent.lua", "reorder.lua", "replay.lua", "rewrite.lua", "rotation.lua", "transmit.lua", "writers.lua":
		rt.ScriptArgs = []string{"--dir", t.TempDir()}
	case "flows.lua":
		rt.ScriptArgs = []string{"--clock", clock}
	case "sockets.lua", "remote.lua":
		rt.ScriptArgs = []string{"--port", require.Port(t)}
	}
}
