package suite

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

const openLoop = `local daqiri = require "daqiri"
local s = daqiri.open()
local rx, tx = s:rx_queue("loop0"), s:tx_queue("loop0")
`

// TestLife checks how scripts end: the error and the stop reason, and that in each case files are closed and all packets are accounted for.
func TestLife(t *testing.T) {
	flood := `tx:pace{ pps = 1e5 } tx:transmit{ template = tx:template{ payload_bytes = 64 } }
`
	for _, c := range []struct {
		name, script string
		change       func(*bindings.Runtime)
		err          string // of the main chunk, "" for none
		task         string // of a task
		reason       string // of the session
		out          string // part of what was printed
		failed       int    // thresholds
	}{
		{name: "script ends without stop", script: openLoop + flood + `s:start() daqiri.sleep(0.01)`, reason: "the script ended"},
		{name: "handler error", script: openLoop + flood + `rx:on_burst(function(b) error("boom") end) s:run{ seconds = 5 }`,
			err: "test.lua:5: boom", reason: "an error in the script: test.lua:5: boom"},
		{name: "handler error caught", script: openLoop + flood + `rx:on_burst(function(b) error("boom") end)
			print(pcall(s.run, s, { seconds = 5 })) print(s:stats().loop0.rx.packets > 0)`,
			out: "false\ttest.lua:5: boom\ntrue\n", reason: "an error in the script: test.lua:5: boom"},
		{name: "timer error", script: openLoop + `s:after(0.001, function() local x = nil + 1 end) s:run{ seconds = 5 }`,
			err: "cannot perform add operation", reason: "an error in the script"},
		{name: "error in a task", script: openLoop + `daqiri.task(function() require("daqiri").sleep(0.001) error("in the task") end)
			print(s:run{ seconds = 5 }.reason)`, task: "test.lua:4: in the task", reason: "an error in task test.lua:4",
			out: "an error in task test.lua:4\n"},
		{name: "task without a script", script: `require("daqiri").task("nowhere")`, task: "modules can't be loaded here"},
		{name: "exit in a task", script: openLoop + `daqiri.task(function() os.exit(3) end) s:run{ seconds = 5 }`, err: "context canceled"},
		{name: "usage", script: `require("daqiri").args{ count = { 3, help = "how many", unit = "packets" }, dir = { type = "string", required = true } }`,
			change: func(rt *bindings.Runtime) { rt.ScriptArgs = []string{"--help"} }, err: "exit with code 0",
			out: "usage: daqiri-run test.lua [--name VALUE | name=VALUE]...\n  --count NUMBER           how many; in packets; default 3\n  --dir STRING             required\n"},
		{name: "argument missing", script: `require("daqiri").args{ dir = { type = "string", help = "where to", required = true } }`,
			err: "test.lua:1: --dir is missing: where to"},
		{name: "threshold aborts", script: openLoop + flood + `s:threshold("loop0.rx.packets < 10", { abort = true }) rx:on_burst(function() end)
			s:run{ seconds = 5 }`, reason: "threshold loop0.rx.packets < 10: violated", failed: 1},
		{name: "threshold at the end", script: openLoop + `s:threshold("loop0.rx.packets > 0") s:run{ seconds = 0.001 }`,
			reason: "time is up", failed: 1},
		{name: "bytes", script: openLoop + flood + `rx:on_burst(function() end) assert(s:run{ bytes = "1KiB", seconds = 5 }.loop0.rx.bytes >= 1024)`,
			reason: "1024 bytes were received"},
		{name: "from and to", script: openLoop + `local from = daqiri.now() + 0.005
			local sum = s:run{ from = from, to = from + 0.005 } assert(sum.seconds < 1 and daqiri.now() >= from + 0.005)`, reason: "time is up"},
		{name: "idle", script: openLoop + `rx:on_burst(function() end) s:run{}`, change: onVirtualClock, reason: "nothing more can happen"},
		{name: "idle get_burst", script: openLoop + `s:start() rx:get_burst{}`, change: onVirtualClock, err: "nothing can happen any more"},
		{name: "idle count", script: openLoop + `tx:transmit{ template = tx:template{ payload_bytes = 1 }, count = 5 } rx:on_burst(function() end)
			s:run{ packets = 10 }`, change: onVirtualClock, reason: "nothing more was received"},
		{name: "count of a transmission begun before", script: openLoop + flood + `rx:on_burst(function() end) print(s:run{ packets = 100 }.seconds)`,
			change: onVirtualClock, reason: "100 packets were received", out: "0.00"},
		{name: "stop", script: openLoop + `s:after(0.002, function() s:stop("enough") end) s:run{}`, reason: "enough"},
		{name: "stop sends what is queued", script: openLoop + `tx:pace{ pps = 1000 } s:start() rx:on_burst(function() end)
			for i = 1, 10 do tx:send(tx:alloc(20):fill(tx:template{ payload_bytes = 1 })) end
			s:threshold("loop0.rx.dropped + loop0.tx.dropped == 0")
			local l = s:stop("queued") print(l.loop0.tx.packets, l.loop0.rx.packets, l.seconds >= 0.199 and l.seconds < 0.3)`,
			change: onVirtualClock, reason: "queued", out: "200\t200\ttrue\n"},
		{name: "stop leaves what takes too long", script: openLoop + `tx:pace{ pps = 10.3 } s:start() rx:on_burst(function() end)
			for i = 1, 5 do tx:send(tx:alloc(10):fill(tx:template{ payload_bytes = 1 })) end
			s:threshold("loop0.rx.dropped == 0") s:threshold("loop0.tx.dropped == 0")
			local l = s:stop("queued") print(l.loop0.tx.packets + l.loop0.tx.dropped, l.loop0.tx.packets >= 20, l.seconds >= 1.9 and l.seconds < 2.1)`,
			change: onVirtualClock, reason: "queued", failed: 1, out: "50\ttrue\ttrue\n"},
		{name: "stop from outside", script: openLoop + `print(s:run{}.reason) daqiri.sleep(10)`, change: stopSoon,
			out: "interrupted\n", err: "stopped: interrupted", reason: "interrupted"},
		{name: "stop in sleep", script: openLoop + `daqiri.sleep(10)`, change: stopSoon, err: "stopped: interrupted"},
		{name: "stop in get_burst", script: openLoop + `s:start() rx:get_burst{}`, change: stopSoon, err: "stopped: interrupted", reason: "the script ended"},
		{name: "endless loop", script: openLoop + `s:start() while true do end`, change: cancelSoon, err: "context canceled", reason: "the script ended"},
		{name: "endless loop in pcall", script: openLoop + `s:start() while true do pcall(function() while true do end end) end`, change: cancelSoon,
			err: "context canceled", reason: "the script ended"},
		{name: "run in a handler", script: openLoop + `s:after(0.001, function() s:run{} end) s:run{ seconds = 5 }`,
			err: "belongs to the main chunk", reason: "an error in the script"},
		{name: "sleep in a handler", script: openLoop + `local n = 0 s:every(0.001, function() n = n + 1 daqiri.sleep(0.005) if n == 3 then s:stop("slept") end end)
			s:run{ seconds = 60 } assert(n >= 3)`, reason: "slept"},
		{name: "broken configuration", script: `require("daqiri").open("daqiri:\n  cfg: {version: 1, stream_typ: raw}\n")`,
			err: `stream_typ: unknown key; did you mean "stream_type"?`},
		{name: "default configuration", script: `print(require("daqiri").open("nowhere.yaml").name)`,
			change: func(rt *bindings.Runtime) { rt.Open.DefaultConfig = true }, out: "default\n"},
		{name: "core out of range", script: `require("daqiri").open(nil, { cores = "x" })`, err: `"x" is not a core`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := run(t, "test.lua", c.script, c.change)
			if (o.err == nil) != (c.err == "") || !strings.Contains(o.message(), c.err) {
				t.Errorf("error %q, want %q", o.message(), c.err)
			}
			var failures []string
			for _, err := range o.shared.Errors() {
				failures = append(failures, err.Error())
			}
			if got := strings.Join(failures, "; "); (got == "") != (c.task == "") || !strings.Contains(got, c.task) {
				t.Errorf("errors of tasks %q, want %q", got, c.task)
			}
			if !strings.Contains(o.out, c.out) {
				t.Errorf("printed %q, want %q", o.out, c.out)
			}
			for _, s := range o.shared.Sessions() {
				if c.reason != "" && !strings.HasPrefix(s.Reason(), c.reason) {
					t.Errorf("session ended because of %q, want %q", s.Reason(), c.reason)
				}
				if s.Started() && !s.Finished() {
					t.Error("session was not finished")
				}
				if n := len(s.Failed()); n != c.failed {
					t.Errorf("%d thresholds failed, want %d: %q", n, c.failed, s.Failed())
				}
				for _, bad := range s.Ledger().Balance() {
					t.Error(bad)
				}
			}
		})
	}
}

func onVirtualClock(rt *bindings.Runtime) { rt.Open.Set = []spec.Override{virtual} }

// stopSoon stops all tasks after a delay, like Ctrl-C.
func stopSoon(rt *bindings.Runtime) {
	time.AfterFunc(30*time.Millisecond, func() { rt.Scheduler.StopAll("interrupted") })
}

// cancelSoon cancels Lua some time after the session has started, as the host does with a script that does not return.
func cancelSoon(rt *bindings.Runtime) {
	go func() {
		started := func(o *bindings.RunningSession) bool { return o.Started() }
		for end := time.Now().Add(time.Minute); !slices.ContainsFunc(rt.Shared.Sessions(), started) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		rt.Scheduler.CancelAll(errors.New("it does not come back"))
	}()
}

// TestErrorCause checks that the Go error wrapped in a Lua error can be found.
func TestErrorCause(t *testing.T) {
	var raised *lua.ApiError
	var faults *spec.Errors
	o := run(t, "test.lua", `require("daqiri").open("daqiri:\n  cfg: {version: 1}\n")`, nil)
	if !errors.As(o.err, &raised) || !errors.As(raised.Cause, &faults) {
		t.Errorf("no *spec.Errors below %v", o.err)
	}
	var open *bindings.OpenError
	o = run(t, "test.lua", `require("daqiri").open(nil, { set = { ["interfaces.loop0.rx.queues.rx0.poll_mode"] = "indirect",
		["interfaces.loop0.rx.queues.rx0.cpu_core"] = 500, ["interfaces.loop0.rx.queues.rx0.batch_size"] = 8 } })`, nil)
	if !errors.As(o.err, &raised) || !errors.As(raised.Cause, &open) {
		t.Errorf("no *OpenError below %v", o.err)
	}
}

// TestServe serves handlers between chunks, like the prompt.
func TestServe(t *testing.T) {
	rt := onMain(t, func(L *lua.LState, rt *bindings.Runtime) error {
		if err := L.DoString(openLoop + `s:after(0.001, function() print("timer") error("once") end) s:start()`); err != nil {
			return err
		}
		if err := rt.Serve(L, task.Never, nil); err == nil || !strings.Contains(err.Error(), "once") {
			t.Errorf("Serve returned %v, want the handler's error", err)
		}
		called := false
		if err := rt.Task.Post(func() { called = true }); err != nil {
			return err
		}
		if err := rt.Serve(L, task.Never, func() bool { return called }); err != nil {
			t.Errorf("Serve returned %v after an error", err)
		}
		if err := rt.Serve(L, rt.Task.Now(), nil); err != nil {
			t.Errorf("Serve returned %v at its deadline", err)
		}
		rt.Task.Stop("over")
		if err := rt.Serve(L, task.Never, nil); !errors.Is(err, task.ErrStopped) {
			t.Errorf("Serve returned %v, want a stop", err)
		}
		return nil
	})
	if out := rt.Stdout.(*buffer).String(); out != "timer\n" {
		t.Errorf("printed %q", out)
	}
}
