package task

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// Wait returns the next thing that the task has to deal with: a stop, then timers that are
// due, messages and calls, and events from taps and connections. At the time until (of the
// task's clock) it returns nil; a time that has passed makes it look once and not block.
// Where items come faster than they are dealt with, calls with the same time end all the
// same: after it they return what one last look finds, then nil. After Cancel it returns
// the cause, and ErrIdle when nothing can ever happen. A handler of one item may wait in turn.
func (t *Task) Wait(until int64) (*Item, error) {
	t.Look()
	return t.WaitAgain(until)
}

// WaitAgain is Wait for a loop that has called Look since it dealt with the last item.
func (t *Task) WaitAgain(until int64) (*Item, error) {
	last := t.look == until && until != Never
	if !last && !t.sched.Virtual() && t.seen >= until { // virtual time stands still until all is dealt with
		t.postpone()
		if err := t.pull(until); err != nil {
			return nil, err
		}
		t.seen = t.Now()
		t.look, t.lookedAt, last = until, t.seen, true
	}
	for looked := last; ; looked = true {
		if t.ctx.Err() != nil {
			return nil, context.Cause(t.ctx)
		}
		if t.stop.Load() != nil {
			t.item = Item{Kind: Stop, Reason: *t.stop.Swap(nil)}
			return &t.item, nil
		}
		if t.next(last) {
			return &t.item, nil
		}
		if looked && t.seen >= until {
			t.look = Never
			return nil, nil
		}
		if err := t.pull(min(until, t.alarms.next())); err != nil {
			return nil, err
		}
		t.seen = t.Now()
	}
}

// WaitFor is Wait for the items that want accepts. All others are kept for later waits, and
// a stop that comes meanwhile ends it with ErrStopped and is kept too.
func (t *Task) WaitFor(until int64, want func(*Item) bool) (*Item, error) {
	for looked := false; ; looked = true {
		if t.ctx.Err() != nil {
			return nil, context.Cause(t.ctx)
		}
		t.postpone()
		for i := range t.deferred {
			if want(&t.deferred[i]) {
				t.deliver(i)
				return &t.item, nil
			}
		}
		if t.stop.Load() != nil {
			return nil, ErrStopped
		}
		if t.seen = t.Now(); looked && t.seen >= until {
			return nil, nil
		}
		if err := t.pull(until); err != nil {
			return nil, err
		}
	}
}

// next finds the next item that is there already; looked: that was there at the last look.
func (t *Task) next(looked bool) bool {
	if due := t.alarms.next(); due != Never && !(looked && due > t.lookedAt) {
		if due <= t.seen {
			t.item = t.alarms.fire(t.seen)
			return true
		}
	}
	if !looked {
		t.deferred = t.inbox.take(t.deferred)
	}
	if len(t.deferred) > 0 {
		t.deliver(0)
		return true
	}
	for len(t.batch) > 0 && t.batch[0].Kind != native.EventDisconnect {
		e := &t.batch[0]
		t.batch = t.batch[1:]
		if it, ok := t.event(e); ok {
			t.item = it
			return true
		}
		t.giveBack(e)
	}
	if len(t.batch) == 0 {
		return false
	}
	t.settle()
	t.deliver(0)
	return true
}

// settleRounds bounds how long bursts are let past a disconnect: each round empties every
// tap's ring by some bursts, and a ring has room for 64 of them unless its tap says otherwise.
const settleRounds = 256

// settle puts what has come from connections that ended before the news of their end: bursts
// and events come through rings of their own, filled in this order.
func (t *Task) settle() {
	t.gate.enter()
	defer t.gate.leave()
	for range settleRounds {
		t.postpone()
		if t.batch, _ = t.waiter.Wait(0); len(t.batch) == 0 {
			break
		}
	}
	t.postpone()
	slices.SortStableFunc(t.deferred, func(a, b Item) int { return ended(a) - ended(b) })
}

func ended(it Item) int {
	if it.Kind == Disconnect {
		return 1
	}
	return 0
}

// giveBack frees what an event holds that nobody wants any more.
func (t *Task) giveBack(e *native.Event) {
	if drop := t.targets[e.Tag-1].drop; drop != nil {
		drop(e)
	}
}

// deliver makes deferred item i the current one.
func (t *Task) deliver(i int) {
	t.item = t.deferred[i]
	t.deferred = slices.Delete(t.deferred, i, i+1)
	if t.item.Kind == Message || t.item.Kind == Call {
		t.inbox.delivered()
	}
}

// A Router is a target that stands for several, one a connection.
type Router interface {
	// Route is the target and the source of what comes from a connection; not ok: nobody's.
	Route(conn uint32) (to, source any, ok bool)
}

// event makes an item of an event; false: nobody wants it any more.
func (t *Task) event(e *native.Event) (Item, bool) {
	who := &t.targets[e.Tag-1]
	it := Item{Kind: Burst, Target: who.to, Source: who.source, Event: e}
	if who.router != nil {
		var ok bool
		if it.Target, it.Source, ok = who.router.Route(e.Conn); !ok {
			return it, false
		}
	}
	switch e.Kind {
	case native.EventConnect:
		it.Kind = Connect
	case native.EventDisconnect:
		it.Kind = Disconnect
	case native.EventOp:
		it.Kind, it.Event = Done, nil
		*who = target{}
		t.free = append(t.free, e.Tag)
	}
	return it, true
}

// postpone moves all that is there to the deferred items. They stay bounded: the inbox
// counts them, and bursts are as many as their queues have descriptors.
func (t *Task) postpone() {
	t.deferred = t.inbox.take(t.deferred)
	for i := range t.batch {
		e := t.batch[i]
		if it, ok := t.event(&e); ok {
			t.deferred = append(t.deferred, it)
		} else {
			t.giveBack(&e)
		}
	}
	t.batch = nil
}

const (
	yieldEvery = int64(5 * time.Millisecond)
	busyPulls  = 64 // in that time
)

// yield lets a busy task's goroutine be scheduled anew from time to time. Go's monitor thread looks every 20 µs, for a tenth
// of a core, at a processor whose goroutine has run for 10 ms, and takes it away whenever it is in C; at others it looks 100
// times a second.
func (t *Task) yield() {
	t.pulls++
	if t.seen-t.yielded < yieldEvery {
		return
	}
	if t.pulls >= busyPulls {
		runtime.Gosched()
	}
	t.pulls, t.yielded = 0, t.seen
}

// pull waits until something is there, or until the time or a wake-up. The caller has just set t.seen.
func (t *Task) pull(until int64) error {
	if t.sched.Virtual() {
		return t.sched.await(t, until)
	}
	timeout := int64(0)
	if until == Never {
		timeout = -1
	} else if until > t.seen {
		timeout = until - t.seen
	}
	timeout = t.shorten(timeout)
	t.yield()
	t.gate.enter()
	defer t.gate.leave()
	if t.sched.Virtual() {
		return nil
	}
	var err error
	t.batch, err = t.waiter.Wait(timeout)
	return err
}

// pending reports whether something other than an event waits for t. Under the scheduler's
// lock, while t waits for the baton.
func (t *Task) pending() bool {
	return t.inbox.some.Load() || t.stop.Load() != nil || t.ctx.Err() != nil
}

// poll takes events that are there. Called like pending.
func (t *Task) poll() bool {
	if len(t.batch) == 0 {
		t.batch, _ = t.waiter.Wait(0)
	}
	return len(t.batch) > 0
}

// Forget gives back the events of some sources that the task was not told of yet.
func (t *Task) Forget(gone func(source any) bool) {
	t.postpone()
	t.deferred = slices.DeleteFunc(t.deferred, func(it Item) bool {
		if it.Event == nil || !gone(it.Source) {
			return false
		}
		t.giveBack(it.Event)
		return true
	})
}

// drop gives back everything that the task was not told of.
func (t *Task) drop() {
	for {
		t.Forget(func(any) bool { return true })
		t.deferred = nil
		if t.batch, _ = t.waiter.Wait(0); len(t.batch) == 0 {
			return
		}
	}
}
