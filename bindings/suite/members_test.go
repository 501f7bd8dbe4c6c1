package suite

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/tests/require"
	lua "github.com/yuin/gopher-lua"
)

// worldKinds are the sessions of testdata/api/stand.lua. On the virtual clock objects are tested in every state of testdata/api/walk.lua; on the
// real clock, or with a lossy wire, only in states related to threads and receivers.
var (
	worldKinds    = []string{"faulty", "virtual", "direct", "loop", "tcp", "udp"}
	virtualStates = []string{"child_sent", "child_written", "closed", "fresh", "freed", "handed_over", "other", "other_closed", "parent_freed",
		"parent_truncated", "partly_freed", "sent", "stopped", "truncated", "written", "written_and_freed"}
	threadStates = []string{"child_sent", "closed", "fresh", "handed_over", "sent", "stopped", "written_and_freed"}
)

// onStand runs a script of testdata/api with the given globals.
func onStand(t *testing.T, name, source string, globals map[string]lua.LValue) *outcome {
	dir, number := memoryDir(t), 0
	return run(t, name, source, func(rt *bindings.Runtime) {
		rt.NewState = func(rt *bindings.Runtime) (*lua.LState, error) {
			L, err := newScriptState(rt)
			for key, v := range globals {
				L.SetGlobal(key, v)
			}
			L.SetGlobal("members", memberTable(L))
			L.SetGlobal("work_dir", lua.LString(dir))
			L.SetGlobal("next_number", L.NewFunction(func(L *lua.LState) int {
				number++
				L.Push(lua.LString(strconv.Itoa(number)))
				return 1
			}))
			L.SetGlobal("free_port", L.NewFunction(func(L *lua.LState) int {
				L.Push(lua.LString(require.Port(t)))
				return 1
			}))
			return L, err
		}
	})
}

// memoryDir returns a temporary folder, in a memory file system if there is one, as thousands of files are created.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "members")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// memberTable returns the types as a table of {methods, fields}.
func memberTable(L *lua.LState) *lua.LTable {
	list := func(names []string) *lua.LTable {
		t := L.NewTable()
		for _, name := range names {
			t.Append(lua.LString(name))
		}
		return t
	}
	all := L.NewTable()
	for _, s := range bindings.Reference() {
		if s.Kind != "type" {
			continue
		}
		var methods, fields []string
		for _, n := range s.Names {
			if n.Field {
				fields = append(fields, n.Name)
			} else {
				methods = append(methods, n.Name)
			}
		}
		t := L.NewTable()
		t.RawSetString("methods", list(methods))
		t.RawSetString("fields", list(fields))
		all.RawSetString(s.Name, t)
	}
	return all
}

// TestMembers uses every member of every type on objects in every state. With the address sanitizer (go test -asan) it also detects accesses
// outside an object's memory.
func TestMembers(t *testing.T) {
	source := readScript(t, "testdata/api/walk.lua")
	for _, kind := range worldKinds {
		states := threadStates
		if kind == "virtual" {
			states = virtualStates
		}
		for _, state := range states {
			t.Run(kind+"/"+state, func(t *testing.T) {
				t.Parallel()
				o := onStand(t, "walk.lua", source, map[string]lua.LValue{"walk_kind": lua.LString(kind), "walk_state": lua.LString(state)})
				if o.err != nil {
					t.Fatal(o.err)
				}
				calls, refused, least := 0, 0, 300
				if strings.HasPrefix(state, "child_") || strings.HasPrefix(state, "parent_") { // few objects have a parent or child
					least = 60
				}
				if kind != "virtual" { // it makes each call in two of five kinds
					least = least * 2 / 5
				}
				if _, err := fmt.Sscan(lastLine(o.out), &calls, &refused); err != nil || calls < least || refused == 0 || refused == calls {
					t.Errorf("%d calls, %d of them refused: %v", calls, refused, err)
				}
				balanced(t, o)
			})
		}
	}
}

// lastLine returns the last printed line, as some members print too.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// balanced checks that the ledgers of all sessions balance.
func balanced(t *testing.T, o *outcome) {
	t.Helper()
	for _, err := range o.shared.Errors() {
		t.Errorf("task: %v", err)
	}
	for _, s := range o.shared.Sessions() {
		for _, bad := range s.Ledger().Balance() {
			t.Errorf("session %s: %s", s.Name(), bad)
		}
	}
}
