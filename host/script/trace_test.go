package script

import (
	"context"
	"errors"
	"fmt"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// raised returns a Lua error that wraps a Go error.
func raised(text string, cause error) *lua.ApiError {
	return &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(text), StackTrace: "stack traceback:\n\ts.lua:1: in main chunk\n\t[G]: ?",
		Cause: cause}
}

func TestTrace(t *testing.T) {
	const stack = "\nstack traceback:\n  s.lua:1: in main chunk"
	inner := errors.New("no such device")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a Go error", inner, "no such device"},
		{"Lua", raised("s.lua:1: boom", nil), "s.lua:1: boom" + stack},
		{"a cause that the message says", raised("s.lua:1: port p: no such device", fmt.Errorf("port p: %w", inner)),
			"s.lua:1: port p: no such device" + stack},
		{"a cause that it does not", raised("s.lua:1: port p is gone", inner), "s.lua:1: port p is gone" + stack + "\ncaused by: no such device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Trace(nil, c.err); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	table := &lua.ApiError{Object: &lua.LTable{}}
	if got := Trace(nil, table); got[:6] != "table:" {
		t.Errorf("an error that is a table, without a state: %q", got)
	}
}

func TestJudge(t *testing.T) {
	over, cancel := context.WithCancelCause(context.Background())
	cancel(ErrCancelled)
	running := context.Background()
	panicked := raised("nil map", nil)
	panicked.Type = lua.ApiErrorPanic
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want Cause // 0: no failure
	}{
		{"none", running, nil, 0},
		{"script", running, raised("s.lua:1: boom", nil), CauseScript},
		{"misuse", running, raised("s.lua:1: burst already sent", errors.New("burst already sent")), CauseScript},
		{"configuration", running, raised("s.lua:1: bad", &spec.Errors{Issues: []spec.Issue{{Text: "bad"}}}), CauseConfig},
		{"device", running, raised("s.lua:1: port in use", &bindings.OpenError{Err: errors.New("port in use")}), CauseDevice},
		{"panic", running, panicked, CauseInternal},
		{"os.exit", running, raised("exit", &bindings.Exit{Code: 3}), 0},
		{"stop", running, raised("stopped: Ctrl-C", fmt.Errorf("stopped: %w", task.ErrStopped)), 0},
		{"cancelled", over, raised("s.lua:1: context canceled", nil), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Cause(0)
			if f := judge(nil, c.ctx, c.err); f != nil {
				got = f.Cause
			}
			if got != c.want {
				t.Errorf("cause %d, want %d", got, c.want)
			}
		})
	}
}

// TestGlobals checks that Globals equals the globals of a script's state; otherwise check would report errors in valid scripts.
func TestGlobals(t *testing.T) {
	known := map[string]bool{}
	for _, name := range Globals() {
		known[name] = true
	}
	p, err := New(Options{Stdout: nil, Stderr: nil})
	if err != nil {
		t.Fatal(err)
	}
	main, err := p.sched.NewTask("main")
	if err != nil {
		t.Fatal(err)
	}
	L, err := p.newState(&bindings.Runtime{Task: main, Scheduler: p.sched, Main: true, Shared: p.shared})
	if err != nil {
		t.Fatal(err)
	}
	defer L.Close()
	delete(known, "arg") // set when the script is started
	L.Get(lua.GlobalsIndex).(*lua.LTable).ForEach(func(k, _ lua.LValue) {
		if !known[k.String()] {
			t.Errorf("check does not know the global %s", k)
		}
		delete(known, k.String())
	})
	for name := range known {
		t.Errorf("check knows a global %s, which is none", name)
	}
}
