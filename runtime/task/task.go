package task

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/daqiri/daqiri-run/native"
)

// Task is one thread of a script.
type Task struct {
	sched  *Scheduler
	id     int
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // valid after done
	waiter *native.Waiter
	inbox  inbox
	stop   atomic.Pointer[string] // reason of a requested stop, not delivered yet

	abandoned atomic.Bool
	polling   atomic.Bool // has pollers

	gate gate

	// State of the scheduler, under its lock.
	pollers []Poller
	waiting bool
	until   int64
	baton   chan error

	// State of the task's own goroutine.
	alarms   alarms
	targets  []target // index: tag - 1
	free     []uint64 // unused tags
	batch    []native.Event
	deferred []Item
	item     Item
	atExit   []*func()
	adopted  bool  // owns a direct queue
	look     int64 // until of a Wait that returned everything available after that time; Never: none
	lookedAt int64 // time of that Wait's last check
	seen     int64 // time of the clock's last reading by Wait or Look
	yielded  int64 // time of the last yield
	pulls    int   // pulls since then
}

// target is the receiver of a tag's events.
type target struct {
	to, source any
	router     Router              // to, if it is a Router
	drop       func(*native.Event) // frees what an undelivered event holds
}

func newTask(s *Scheduler, id int, name string, w *native.Waiter) *Task {
	t := &Task{sched: s, id: id, name: name, waiter: w, done: make(chan struct{}), baton: make(chan error, 1), look: Never}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.gate.moved.L = &t.gate.mu
	return t
}

// Name returns the task's name. It may be called from any goroutine.
func (t *Task) Name() string { return t.name }

// ID returns the task's number, in order of creation from 1. It may be called from any goroutine.
func (t *Task) ID() int { return t.id }

// Scheduler returns the task's scheduler. It may be called from any goroutine.
func (t *Task) Scheduler() *Scheduler { return t.sched }

// Context returns a context that is canceled by Cancel and when the task has ended. It may be called from any goroutine.
func (t *Task) Context() context.Context { return t.ctx }

// Done returns a channel that is closed when the task has ended. It may be called from any goroutine.
func (t *Task) Done() <-chan struct{} { return t.done }

// Err returns the result of the task's function once Done is closed. It may be called from any goroutine.
func (t *Task) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

// Now returns the time of the task's clock in ns since the epoch. It may be called from any goroutine.
func (t *Task) Now() int64 { return t.sched.Now() }

// Seen returns the time of the last clock reading by Wait or Look. It is cheaper than Now.
func (t *Task) Seen() int64 { return t.seen }

// Look reads the clock and returns the time.
func (t *Task) Look() int64 {
	t.seen = t.Now()
	return t.seen
}

// Waiter returns the native waiter, which serves the taps and direct queues of this task.
func (t *Task) Waiter() *native.Waiter { return t.waiter }

// Start runs fn on a new thread; the task ends when fn returns. It must be called once.
func (t *Task) Start(fn func(*Task) error) {
	waits := t.sched.admit(t)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the task
		if waits {
			<-t.baton
		}
		t.err = fn(t)
		t.end()
	}()
}

// end runs the exit functions, frees undelivered items, and leaves the scheduler.
func (t *Task) end() {
	for n := len(t.atExit); n > 0; n = len(t.atExit) {
		fn := t.atExit[n-1]
		t.atExit = t.atExit[:n-1]
		(*fn)()
	}
	t.inbox.close()
	t.drop()
	t.cancel(ErrEnded)
	if len(t.targets) == 0 && !t.adopted {
		t.freeWaiter() // no native object refers to it
	}
	t.sched.dismiss(t)
	close(t.done)
}

// AtExit registers fn to run on the task's thread after its function has returned, in reverse order of registration. It must be called before that.
// off removes fn; it must be called on the task's own thread.
func (t *Task) AtExit(fn func()) (off func()) {
	p := &fn
	t.atExit = append(t.atExit, p)
	return func() { t.atExit = slices.DeleteFunc(t.atExit, func(x *func()) bool { return x == p }) }
}

// Abandoned reports whether JoinAll has abandoned the task, which may still run. It may be called from any goroutine.
func (t *Task) Abandoned() bool { return t.abandoned.Load() }

// Send adds a message to the task's inbox. It returns ErrFull or ErrEnded if the inbox is full or the task has ended. The receiver owns the value. It
// may be called from any goroutine.
func (t *Task) Send(value any, from *Task) error {
	return t.put(Item{Kind: Message, Value: value, From: from})
}

// Post requests the task to run fn: its wait returns a Call item. Errors are those of Send. It may be called from any goroutine.
func (t *Task) Post(fn func()) error { return t.put(Item{Kind: Call, Call: fn}) }

func (t *Task) put(it Item) error {
	if err := t.inbox.put(it); err != nil {
		return fmt.Errorf("task %s: %w", t.name, err)
	}
	t.wake()
	return nil
}

// Stop requests the task to end: its wait returns a Stop item. It may be called from any goroutine.
func (t *Task) Stop(reason string) {
	t.stop.Store(&reason)
	t.wake()
}

// Cancel cancels the task's context and ends all its waits. It may be called from any goroutine.
func (t *Task) Cancel(cause error) {
	t.cancel(cause)
	t.endNativeWait()
	t.sched.release(t)
}

func (t *Task) wake() {
	t.endNativeWait()
	t.sched.poke()
}

func (t *Task) endNativeWait() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.waiter != nil {
		t.waiter.Wake()
	}
}

// freeWaiter frees the native waiter after the task has ended.
func (t *Task) freeWaiter() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.waiter != nil {
		t.waiter.Free()
		t.waiter = nil
	}
}

// Register registers the receiver of events: the tag is passed to the native part of source, and items of its events have the given target and
// source. drop frees what an undelivered event holds.
func (t *Task) Register(to, source any, drop func(*native.Event)) (tag uint64) {
	who := target{to: to, source: source, drop: drop}
	who.router, _ = to.(Router)
	if n := len(t.free); n > 0 {
		tag, t.free = t.free[n-1], t.free[:n-1]
		t.targets[tag-1] = who
		return tag
	}
	t.targets = append(t.targets, who)
	return uint64(len(t.targets))
}

// Watch registers for the completion of an operation, which is delivered once as an item with the target to.
func (t *Task) Watch(op native.Op, to any) error {
	tag := t.Register(to, nil, nil)
	err := op.Watch(t.waiter, tag)
	if err != nil {
		t.targets[tag-1] = target{}
		t.free = append(t.free, tag)
	}
	return err
}

// Unregister frees the tags of closed sources, which must have no events left in any queue.
func (t *Task) Unregister(gone func(source any) bool) {
	for k := range t.targets {
		if who := &t.targets[k]; who.source != nil && gone(who.source) {
			*who = target{}
			t.free = append(t.free, uint64(k+1))
		}
	}
}

// Adopt makes the task the owner of a direct queue, which the task polls whenever it waits.
func (t *Task) Adopt(q native.Queue) error {
	t.adopted = true
	return t.waiter.Adopt(q)
}

// Disown reverts Adopt. It must be called by the task's thread at its end.
func (t *Task) Disown(q native.Queue) { t.waiter.Disown(q) }
