package bindings

import (
	"runtime"
	"testing"
	"weak"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// TestClosedSessionIsLetGo opens, runs and closes a session and drops the script's handle: the session must then be collectable, while its record
// for the summary remains.
func TestClosedSessionIsLetGo(t *testing.T) {
	var s weak.Pointer[session.Session]
	rt := onMain(t, func(L *lua.LState, rt *Runtime) error {
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
	rt := onMain(t, func(L *lua.LState, _ *Runtime) error {
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

func TestJoinTellsHowManyHadNoPlace(t *testing.T) {
	var list []string
	for range 3 {
		list = join(list, make([]string, 60))
	}
	if len(list) != keptLines || list[keptLines-1] != "and 81 more" {
		t.Errorf("%d lines, the last %q", len(list), list[len(list)-1])
	}
}
