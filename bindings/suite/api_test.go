package suite

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/tests/require"
	lua "github.com/yuin/gopher-lua"
)

// apiFolder has the parts of daqiri.api, their README and their test scripts.
const apiFolder = "../../stdlib/api/"

// newStdlibState creates a state that, as in the host, also finds shipped modules, and the shared modules of the test scripts.
func newStdlibState(rt *bindings.Runtime) (*lua.LState, error) {
	L := lua.NewState()
	path := "testdata/?.lua;" + apiFolder + "testdata/?.lua"
	L.SetField(L.GetField(L.Get(lua.GlobalsIndex), "package"), "path", lua.LString(path))
	bindings.Register(L, rt)
	preload, ok := L.GetField(L.GetField(L.Get(lua.GlobalsIndex), "package"), "preload").(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("no package.preload")
	}
	for _, pattern := range []string{"../../stdlib/*.lua", "../../stdlib/formats/*.lua", apiFolder + "*.lua"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name := strings.TrimPrefix(file, "../../stdlib/")
			preload.RawSetString("daqiri."+strings.ReplaceAll(strings.TrimSuffix(name, ".lua"), "/", "."),
				L.NewFunction(func(L *lua.LState) int { return loadShipped(L, name) }))
		}
	}
	return L, nil
}

func loadShipped(L *lua.LState, name string) int {
	text, err := os.ReadFile("../../stdlib/" + name)
	if err != nil {
		L.RaiseError("%v", err)
	}
	fn, err := L.Load(strings.NewReader(string(text)), "stdlib/"+name)
	if err != nil {
		L.RaiseError("%v", err)
	}
	L.Push(fn)
	L.Call(0, 1)
	return 1
}

// TestAPINames compares the names and kinds of daqiri.api with DAQIRI's in both directions, including the values of every enum.
func TestAPINames(t *testing.T) {
	o := run(t, "names.lua", `
		for name, value in pairs(require "daqiri.api") do
			local values = {}
			if type(value) == "table" then
				for key in pairs(value) do values[#values + 1] = key end
				table.sort(values)
			end
			print(name, type(value), table.concat(values, " "))
		end`, func(rt *bindings.Runtime) { rt.NewState = newStdlibState })
	if o.err != nil {
		t.Fatal(o.err)
	}
	want := map[string]string{}
	for _, list := range []map[string]string{apiFunctions, ourFunctions} {
		for name := range list {
			want[name] = "function "
		}
	}
	for name, value := range apiConstants {
		want[name] = fmt.Sprintf("%T ", value)
	}
	for name, values := range apiEnums {
		words := strings.Fields(values)
		slices.Sort(words)
		want[name] = "table " + strings.Join(words, " ")
	}
	kinds := strings.NewReplacer("int ", "number ")
	for line := range strings.Lines(o.out) {
		name, kind, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		kind = strings.Replace(kind, "\t", " ", 1)
		if w, ok := want[name]; !ok {
			t.Errorf("%s (%s) is not in the list", name, kind)
		} else if kinds.Replace(w) != kind {
			t.Errorf("%s is %q, want %q", name, kind, kinds.Replace(w))
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is not there", name)
	}
}

// TestAPIValues checks constants and the fields of a burst.
func TestAPIValues(t *testing.T) {
	var script strings.Builder
	script.WriteString("local api = require 'daqiri.api'\nlocal burst = api.create_tx_burst_params()\napi.set_header(burst, 3, 1, 7, 2)\n")
	for name, value := range apiConstants {
		fmt.Fprintf(&script, "assert(api.%s == %#v, '%s')\n", name, value, name)
	}
	for _, fields := range []string{burstFields, headerFields, transportFields} {
		prefix, names, _ := strings.Cut(fields, ": ")
		for _, name := range strings.Fields(names) {
			fmt.Fprintf(&script, "local _ = %s.%s\n", prefix, name)
		}
	}
	script.WriteString("assert(burst.hdr.hdr.port_id == 3 and burst.transport_hdr.num_pkts == 7 and burst.hdr.hdr.num_segs == 2)\n")
	if o := run(t, "values.lua", script.String(), func(rt *bindings.Runtime) { rt.NewState = newStdlibState }); o.err != nil {
		t.Error(o.err)
	}
}

var apiRow = regexp.MustCompile("(?m)^\\| (`[^|]+) \\| ([^|]+) \\|$")

// TestAPIReadme compares the README's table with the list in both directions, including the entry of each name.
func TestAPIReadme(t *testing.T) {
	text, err := os.ReadFile(apiFolder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	_, table, _ := strings.Cut(string(text), "\n## Supported names\n")
	for _, row := range apiRow.FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if told[name[1]] != "" {
				t.Errorf("the README tells of %s twice", name[1])
			}
			told[name[1]] = strings.TrimSpace(row[2])
		}
	}
	want := map[string]string{}
	maps.Copy(want, apiFunctions)
	maps.Copy(want, ourFunctions)
	for name := range apiConstants {
		want[name] = "works"
	}
	for name := range apiEnums {
		want[name] = "works"
	}
	for name, state := range want {
		switch is := told[name]; {
		case is == "":
			t.Errorf("the README does not tell of %s", name)
		case !strings.HasPrefix(is, state):
			t.Errorf("the README says of %s: %q, want %q", name, is, state)
		}
		delete(told, name)
	}
	for name := range told {
		t.Errorf("the README tells of %s, which is not in the list", name)
	}
}

// asserted matches a script line that checks the effect of a function.
var asserted = regexp.MustCompile(`\b(ok|fails|assert|poll|t\.equal|t\.raises|alloc)\(`)

// TestAPICovered checks that the test scripts use and check every function that works, and check the error of every other function.
func TestAPICovered(t *testing.T) {
	files, err := filepath.Glob(apiFolder + "testdata/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	var lines []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if asserted.MatchString(line) {
				lines = append(lines, line)
			}
		}
	}
	all := strings.Join(lines, "")
	for name, state := range apiFunctions {
		used := regexp.MustCompile(`\bapi\.`+name+`\b`).MatchString(all) || slices.ContainsFunc(files, func(file string) bool {
			text, _ := os.ReadFile(file)
			return strings.Contains(string(text), `"`+name+`"`) // called by name in a loop
		})
		if state == "works" && !used {
			t.Errorf("no script checks what %s does", name)
		}
	}
}

// TestAPIAbsent checks that a missing function returns its status and an error that names the engine.
func TestAPIAbsent(t *testing.T) {
	var script strings.Builder
	script.WriteString("local api = require 'daqiri.api'\n")
	for name, state := range apiFunctions {
		if state != "works" {
			fmt.Fprintf(&script, "local r = { api.%s() }\nassert(r[1] == api.Status.NOT_SUPPORTED, '%s')\n"+
				"assert(r[table.maxn(r)]:find('not in this version'), '%s')\n", name, name, name)
		}
	}
	if o := run(t, "absent.lua", script.String(), func(rt *bindings.Runtime) { rt.NewState = newStdlibState }); o.err != nil {
		t.Error(o.err)
	}
}

// TestAPIScripts runs the test scripts of daqiri.api on the real clock and, if a script supports it, on the virtual clock.
func TestAPIScripts(t *testing.T) {
	for _, c := range []struct{ name, script, args string }{
		{"init", "init.lua", "--dir {{dir}}"},
		{"memory", "memory.lua", ""},
		{"loop", "loop.lua", "--clock real"},
		{"loop/virtual", "loop.lua", "--clock virtual"},
		{"dynamic flows", "dynflow.lua", "--clock real"},
		{"dynamic flows/virtual", "dynflow.lua", "--clock virtual"},
		{"resources", "resources.lua", "--clock real"},
		{"resources/virtual", "resources.lua", "--clock virtual"},
		{"endpoints", "endpoint.lua", ""},
		{"split", "split.lua", ""},
		{"managed bursts", "managed.lua", "--clock real"},
		{"managed bursts/virtual", "managed.lua", "--clock virtual"},
		{"reorder", "reorder.lua", ""},
		{"placed", "placed.lua", ""},
		{"files", "files.lua", "--dir {{dir}} --clock real"},
		{"files/virtual", "files.lua", "--dir {{dir}} --clock virtual"},
		{"s3, no store", "s3.lua", ""}, // tests/ covers uploads
		{"tasks", "tasks.lua", "--clock real"},
		{"tasks/virtual", "tasks.lua", "--clock virtual"},
		{"sockets", "sockets.lua", "--port {{tcp}} --udp {{udp}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(apiFolder + "testdata/" + c.script)
			if err != nil {
				t.Fatal(err)
			}
			args := strings.NewReplacer("{{dir}}", t.TempDir(), "{{tcp}}", require.Port(t), "{{udp}}", require.Port(t)).Replace(c.args)
			o := run(t, c.script, string(source), func(rt *bindings.Runtime) {
				rt.NewState = newStdlibState
				rt.ScriptArgs = strings.Fields(args)
				if c.name == "placed" {
					rt.Open.Engine = schema.EngineLoop // instead of a network card
				}
			})
			if o.err != nil {
				t.Fatalf("%v\nit printed:\n%s", o.err, o.out)
			}
			for _, s := range o.shared.Sessions() {
				for _, bad := range s.Ledger().Balance() {
					t.Errorf("session %s: %s", s.Name(), bad)
				}
			}
		})
	}
}

// TestAPIThreads runs the two-threaded benchmark of the README and compares its printed receive count with the ledger.
func TestAPIThreads(t *testing.T) {
	text, err := os.ReadFile(apiFolder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(text), "```lua\n")
	script, _, _ = strings.Cut(script, "```")
	config := filepath.Join(t.TempDir(), "bench.yaml")
	queue := "{name: q, id: 0, cpu_core: -1, batch_size: 50, memory_regions: [m]"
	yaml := "version: 1\nstream_type: raw\nmaster_core: 0\nloopback: {mode: sw}\n" +
		"memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 4096, buf_size: 2048}]\ninterfaces:\n" +
		"- {name: tx_port, address: loop0, tx: {queues: [" + queue + "}]}}\n" +
		"- {name: rx_port, address: loop1, rx: {queues: [" + queue + ", timeout_us: 100}]}}\n"
	if err := os.WriteFile(config, []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	o := run(t, "bench.lua", strings.Replace(script, "bench.yaml", config, 1), func(rt *bindings.Runtime) { rt.NewState = newStdlibState })
	if o.err != nil {
		t.Fatal(o.err)
	}
	l := o.shared.Sessions()[0].Ledger()
	var packets, bytes uint64
	for i := range l.Lines {
		if x := &l.Lines[i]; x.Kind == stats.Rx {
			packets += x.Out
			bytes += x.OutBytes
		}
	}
	if want := fmt.Sprintf("received %d packets, %d bytes\n", packets, bytes); o.out != want || packets == 0 || bytes != 64*packets {
		t.Errorf("it printed %q, want %q", o.out, want)
	}
	balanced(t, o)
}
