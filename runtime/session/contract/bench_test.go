package contract

import (
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// BenchmarkRoundTrip sends and receives bursts of 32 packets on a direct queue without processing them: it measures the cost of the Go layers and the
// cgo calls per burst.
func BenchmarkRoundTrip(b *testing.B) {
	cfg, _, err := spec.ParseText("default.yaml", spec.Default(), spec.Options{})
	if err != nil {
		b.Fatal(err)
	}
	sched := task.NewScheduler()
	me, err := sched.NewTask("main")
	if err != nil {
		b.Fatal(err)
	}
	me.Start(func(me *task.Task) error {
		s, err := session.Open(cfg, session.Env{Scheduler: sched, Owner: me})
		if err != nil {
			return err
		}
		defer s.Close()
		i := s.Interfaces()[0]
		rx, tx := i.RxQueues()[0], i.TxQueues()[0]
		if _, err := rx.Tap(me, nil, session.TapOptions{}); err != nil {
			return err
		}
		if err := s.Start(me); err != nil {
			return err
		}
		l := session.NewLeases()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			x, err := tx.Alloc(l, 32)
			if err != nil {
				return err
			}
			if err := x.SetLen(0, -1, 64); err != nil {
				return err
			}
			if err := tx.Send(x); err != nil {
				return err
			}
			it, err := me.Wait(task.Never)
			if err != nil {
				return err
			}
			l.Take(it).EndHandler()
		}
		return nil
	})
	<-me.Done()
	if me.Err() != nil {
		b.Fatal(me.Err())
	}
}
