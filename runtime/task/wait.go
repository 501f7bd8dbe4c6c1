package task

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// Wait returns the next item for the task: a stop, then expired timers, messages and calls, and events of taps and connections. It returns nil at the
// time until of the task's clock; a time in the past makes it check once without blocking. If items arrive faster than they are handled, repeated
// calls with the same time still end: after that time they return what one last check finds, then nil. It returns the cause after Cancel, and ErrIdle
// if no event is possible. A handler of an item may wait as well.
func (t *Task) Wait(until int64) (*Item, error) {
	t.Look()
	return t.WaitAgain(until)
}

// WaitAgain is Wait for a loop that has called Look since it handled the last item.
func (t *Task) WaitAgain(until int64) (*Item, error) {
	last := t.look == until && until != Never
	if !last && !t.sched.Virtual() && t.seen >= until { // virtual time stands still until all items are handled
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

// WaitFor is Wait for items accepted by want. All others are kept for later waits; a stop ends it with ErrStopped and is kept too.
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

// next selects the next available item; if looked, only items that were available at the last check.
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
		t.discard(e)
	}
	if len(t.batch) == 0 {
		return false
	}
	t.settle()
	t.deliver(0)
	return true
}

// settleRounds limits how many rounds of bursts precede a disconnect: each round takes some bursts of every tap's ring, which by default has 64
// entries.
const settleRounds = 256

// settle moves bursts of ended connections before their disconnect events: bursts and events use separate rings, filled in this order.
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

// discard frees what an unwanted event holds.
func (t *Task) discard(e *native.Event) {
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

// A Router is a target that selects the actual target by connection.
type Router interface {
	// Route returns the target and source of a connection's events; ok is false if there is none.
	Route(conn uint32) (to, source any, ok bool)
}

// event converts a native event to an item. It returns false if the event has no receiver.
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

// postpone moves all available items to the deferred ones. Their number is bounded by the inbox and by the descriptors of the queues.
func (t *Task) postpone() {
	t.deferred = t.inbox.take(t.deferred)
	for i := range t.batch {
		e := t.batch[i]
		if it, ok := t.event(&e); ok {
			t.deferred = append(t.deferred, it)
		} else {
			t.discard(&e)
		}
	}
	t.batch = nil
}

const (
	yieldEvery = int64(5 * time.Millisecond)
	busyPulls  = 64 // minimum in that time
)

// yield lets the scheduler run from time to time in a busy task. Otherwise Go's monitor thread wakes every 20 us, at a cost of a tenth of a core, to
// retake the processor of a goroutine that has run for 10 ms whenever it is in C; without such processors it wakes 100 times a second.
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

// pull waits for an item, the time until, or a wake-up. The caller must have just set t.seen.
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

// pending reports whether t has work other than events. The scheduler's lock must be held while t waits for the baton.
func (t *Task) pending() bool {
	return t.inbox.some.Load() || t.stop.Load() != nil || t.ctx.Err() != nil
}

// poll takes available events. The conditions of pending apply.
func (t *Task) poll() bool {
	if len(t.batch) == 0 {
		t.batch, _ = t.waiter.Wait(0)
	}
	return len(t.batch) > 0
}

// Forget frees the undelivered events of closed sources.
func (t *Task) Forget(gone func(source any) bool) {
	t.postpone()
	t.deferred = slices.DeleteFunc(t.deferred, func(it Item) bool {
		if it.Event == nil || !gone(it.Source) {
			return false
		}
		t.discard(it.Event)
		return true
	})
}

// drop frees all undelivered events.
func (t *Task) drop() {
	for {
		t.Forget(func(any) bool { return true })
		t.deferred = nil
		if t.batch, _ = t.waiter.Wait(0); len(t.batch) == 0 {
			return
		}
	}
}
