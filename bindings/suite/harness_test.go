package suite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// library is stdlib, independent of a test's current folder.
var library = func() fs.FS {
	dir, err := filepath.Abs("../../stdlib")
	if err != nil {
		panic(err)
	}
	return os.DirFS(dir)
}()

// outcome is the result of running a script.
type outcome struct {
	out, log string
	err      error // of the main chunk
	shared   *bindings.Process
}

// message is the error's first line, without the stack.
func (o *outcome) message() string {
	if o.err == nil {
		return ""
	}
	var raised *lua.ApiError
	if errors.As(o.err, &raised) {
		return raised.Object.String()
	}
	return o.err.Error()
}

// buffer is a writer that several tasks may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newTestState creates a state like the host's, with only the standard libraries.
func newTestState(rt *bindings.Runtime) (*lua.LState, error) {
	L := lua.NewState()
	bindings.Register(L, rt)
	return L, nil
}

// run executes a script with a Process of its own until it has ended in order.
func run(t *testing.T, name, source string, change func(*bindings.Runtime)) *outcome {
	t.Helper()
	sched := task.NewScheduler()
	var out, log buffer
	o := &outcome{shared: bindings.NewProcess()}
	rt := &bindings.Runtime{Scheduler: sched, Main: true, Stdout: &out, Script: name, Shared: o.shared, NewState: newTestState,
		Log:      func(level, text string, fields map[string]any) { fmt.Fprintf(&log, "%s: %s %v\n", level, text, fields) },
		LogLevel: levelOf("info")}
	o.shared.Library = library
	if change != nil {
		change(rt)
	}
	var err error
	if rt.Task, err = sched.NewTask("main"); err != nil {
		t.Fatal(err)
	}
	rt.Task.Start(func(*task.Task) error {
		L, err := rt.NewState(rt)
		if err != nil {
			return err
		}
		defer L.Close()
		fn, err := L.Load(strings.NewReader(source), name)
		if err == nil {
			L.Push(fn)
			err = L.PCall(0, 0, nil)
		}
		o.err = err
		rt.End(L)
		sched.StopAll("the script ended")
		return nil
	})
	select {
	case <-rt.Task.Done():
	case <-time.After(3 * time.Minute):
		t.Fatal("the script did not end")
	}
	if err := rt.Task.Err(); err != nil {
		t.Fatal(err)
	}
	if late := sched.JoinAll(10 * time.Second); len(late) > 0 {
		t.Fatalf("task %s did not end", late[0].Name())
	}
	if err := o.shared.Finish(); err != nil {
		t.Log(err)
	}
	o.out, o.log = out.String(), log.String()
	o.shared.Close()
	sched.Close()
	return o
}

// onMain calls fn with a state on the main task of a new Process.
func onMain(tb testing.TB, fn func(L *lua.LState, rt *bindings.Runtime) error) *bindings.Runtime {
	tb.Helper()
	sched := task.NewScheduler()
	main, err := sched.NewTask("main")
	if err != nil {
		tb.Fatal(err)
	}
	rt := &bindings.Runtime{Task: main, Scheduler: sched, Main: true, Stdout: &buffer{}, Shared: bindings.NewProcess(), NewState: newTestState,
		Log: func(string, string, map[string]any) {}, LogLevel: levelOf("info")}
	rt.Shared.Library = library
	main.Start(func(*task.Task) error {
		L, err := rt.NewState(rt)
		if err != nil {
			return err
		}
		defer L.Close()
		defer rt.End(L)
		return fn(L, rt)
	})
	<-main.Done()
	if err := main.Err(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		rt.Shared.Close()
		sched.Close()
	})
	return rt
}

// levelOf stores a log level, like the host.
func levelOf(level string) func(string) string {
	return func(set string) string {
		was := level
		if set != "" {
			level = set
		}
		return was
	}
}
