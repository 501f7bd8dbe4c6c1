package bindings

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/control"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// TestReadme checks that the READMEs here and below name each file.
func TestReadme(t *testing.T) {
	readmes, err := filepath.Glob("*/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatal("no packages", err)
	}
	for _, readme := range append(readmes, "README.md") {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Dir(readme) + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			tested := strings.HasSuffix(name, "_test.go") && filepath.Dir(readme) != "suite"
			if !tested && name != "doc.go" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s does not name %s", readme, name)
			}
		}
	}
}

// TestClosedSessionIsLetGo opens, runs and closes a session and drops the script's handle: the session must then be collectable, while its record
// for the summary remains.
func TestClosedSessionIsLetGo(t *testing.T) {
	var s weak.Pointer[session.Session]
	rt := withState(t, func(L *lua.LState, rt *Runtime) error {
		L.PreloadModule("seen", func(L *lua.LState) int {
			s = weak.Make(rt.Shared.Sessions()[0].s)
			return 0
		})
		return L.DoString(`
for _ = 1, 2 do -- the first leaves no trace on the state's stack
  local s = require("daqiri").open()
  s:rx_queue("loop0"):on_burst(function() end)
  s:every(1, function() end)
  s:filter{ name = "f", where = "len > 60" }
  require "seen"
  s:start()
  s:stop("enough")
  s:close()
end`)
	})
	if s == (weak.Pointer[session.Session]{}) {
		t.Fatal("the script did not get there")
	}
	for range 10 {
		if runtime.GC(); s.Value() == nil {
			break
		}
	}
	if s.Value() != nil {
		t.Error("a closed session is still in memory")
	}
	o := rt.Shared.Sessions()[0]
	if len(o.Ledger().Lines) != 5 || o.Reason() != "enough" || len(o.Notes()) == 0 || !o.Started() || !o.Finished() || o.RunTime() <= 0 {
		t.Errorf("its record lacks something: %d lines, reason %q, notes %q, %v s", len(o.Ledger().Lines), o.Reason(), o.Notes(), o.RunTime())
	}
}

// TestClosedSessionsAddUp opens and closes more sessions than keptRecords: the oldest are merged without losing packets, failed thresholds or
// files.
func TestClosedSessionsAddUp(t *testing.T) {
	const extra = 7
	rt := withState(t, func(L *lua.LState, _ *Runtime) error {
		L.SetGlobal("cycles", lua.LNumber(keptRecords+extra))
		return L.DoString(`
for k = 1, cycles do
  local s = require("daqiri").open()
  s:rx_queue("loop0"):on_burst(function() end)
  local tx = s:tx_queue("loop0")
  tx:transmit{ template = tx:template{ payload_bytes = 64 }, count = k }
  s:threshold("loop0.rx.packets > 3")
  s:run{ packets = k }
  s:close()
end`)
	})
	all := rt.Shared.Sessions()
	if len(all) != keptRecords+1 {
		t.Fatalf("%d records, want %d and their sum", len(all), keptRecords)
	}
	sum := all[0]
	if want := "7 earlier sessions"; sum.Name() != want {
		t.Errorf("the sum is called %q, want %q", sum.Name(), want)
	}
	if n, _ := sum.Ledger().Lookup("loop0.rx.packets"); n != 1+2+3+4+5+6+7 {
		t.Errorf("the sum has %v packets", n)
	}
	if len(sum.Failed()) != 3 || !sum.Started() || !sum.Finished() || sum.RunTime() <= 0 {
		t.Errorf("the sum: failed %q, started %v, finished %v, %v s", sum.Failed(), sum.Started(), sum.Finished(), sum.RunTime())
	}
	if n, _ := all[1].Ledger().Lookup("loop0.rx.packets"); n != extra+1 {
		t.Errorf("the oldest record of its own has %v packets, want %d", n, extra+1)
	}
}

func TestJoinCountsOmitted(t *testing.T) {
	var list []string
	for range 3 {
		list = join(list, make([]string, 60))
	}
	if len(list) != keptLines || list[keptLines-1] != "and 81 more" {
		t.Errorf("%d lines, the last %q", len(list), list[len(list)-1])
	}
}

// TestRefusals checks that many refused lines produce one log line per second, which counts the others.
func TestRefusals(t *testing.T) {
	var noted []map[string]any
	rt := &Runtime{Log: func(_, _ string, fields map[string]any) { noted = append(noted, fields) }}
	var r refusals
	for range 1000 {
		r.note(rt, &control.Peer{Name: "127.0.0.1:1"}, errors.New("no"))
	}
	before := len(noted)
	r.next = time.Time{} // as if a second had passed
	r.note(rt, &control.Peer{Name: "127.0.0.1:2"}, errors.New("no"))
	total := len(noted)
	for _, fields := range noted {
		if left, ok := fields["refused_before"].(int); ok {
			total += left
		}
	}
	if before > 100 || len(noted) != before+1 || noted[before]["peer"] != "127.0.0.1:2" || total != 1001 {
		t.Errorf("%d lines, then %v; %d in all", before, noted[len(noted)-1], total)
	}
}

// FuzzControl checks that each line of a peer is answered by one line of JSON, and that no line without the token is executed.
func FuzzControl(f *testing.F) {
	for _, line := range []string{`rate 500`, `{"verb":"rate","mbit":500,"id":[1]}`, `{"verb":"help","token":"open sesame"}`, `token open sesame`, `{"verb":"rate","token":"open sesame","n":1e400}`,
		`{"verb":"rate"} x`, `{"id":{"a":{"b":[]}}}`, "\x1b[2J", `{"token":null,"verb":"token"}`} {
		f.Add(line, `rate 1`)
	}
	scheduler := task.NewScheduler()
	main, err := scheduler.NewTask("main")
	if err != nil {
		f.Fatal(err)
	}

	rt := &Runtime{Scheduler: scheduler, Task: main, Main: true, Shared: NewProcess(), NewState: newState, Log: func(string, string, map[string]any) {}}
	L, err := newState(rt)
	if err != nil {
		f.Fatal(err)
	}
	defer L.Close()
	if err := L.DoString(`return function(m) called = true return m end`); err != nil {
		f.Fatal(err)
	}
	h := &controlHandle{token: "open sesame", verbs: map[string]*lua.LFunction{"rate": L.CheckFunction(-1)}}
	f.Fuzz(func(t *testing.T, first, second string) {
		peer := &control.Peer{Name: "fuzz"}
		for _, line := range []string{first, second} {
			L.SetGlobal("called", lua.LFalse)
			known := peer.Known
			message, err := controlMessage([]byte(line))
			if err == nil {
				err = h.admit(peer, message)
			}
			answer := refusal(message["id"], errors.New("refused"))
			if err == nil {
				answer = rt.answerMessage(h, peer, message)
			}
			var reply struct{ OK bool }
			if strings.ContainsAny(string(answer), "\n\x1b") || json.Unmarshal(answer, &reply) != nil {
				t.Fatalf("%q is answered %q", line, answer)
			}
			obeyed := L.GetGlobal("called") == lua.LTrue
			if (obeyed || reply.OK) && !known && !strings.Contains(line, "open") {
				t.Fatalf("%q is obeyed: %q", line, answer)
			}
		}
	})
}

// newState creates a state with the API and the standard libraries.
func newState(rt *Runtime) (*lua.LState, error) {
	L := lua.NewState()
	Register(L, rt)
	return L, nil
}

// withState calls fn with a state on the main task of a new Process. The tests of whole scripts are in suite.
func withState(t *testing.T, fn func(L *lua.LState, rt *Runtime) error) *Runtime {
	t.Helper()
	scheduler := task.NewScheduler()
	main, err := scheduler.NewTask("main")
	if err != nil {
		t.Fatal(err)
	}
	rt := &Runtime{Task: main, Scheduler: scheduler, Main: true, Shared: NewProcess(), NewState: newState, Log: func(string, string, map[string]any) {},
		LogLevel: func(string) string { return "info" }}
	main.Start(func(*task.Task) error {
		L, err := newState(rt)
		if err != nil {
			return err
		}
		defer L.Close()
		defer rt.End(L)
		return fn(L, rt)
	})
	<-main.Done()
	if err := main.Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		rt.Shared.Close()
		scheduler.Close()
	})
	return rt
}
