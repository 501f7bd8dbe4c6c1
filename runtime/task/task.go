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
	err    error // after done
	waiter *native.Waiter
	inbox  inbox
	stop   atomic.Pointer[string] // asked for and not delivered

	abandoned atomic.Bool
	polling   atomic.Bool // it has pollers

	gate gate

	// What the scheduler keeps about it, under its lock.
	pollers []Poller
	waiting bool
	until   int64
	baton   chan error

	// The task's own.
	alarms   alarms
	targets  []target // by tag - 1
	free     []uint64 // tags that are nobody's any more
	batch    []native.Event
	deferred []Item
	item     Item
	atExit   []*func()
	adopted  bool  // some direct queue
	look     int64 // the time of a Wait that took in all there was after that time; Never: none
	lookedAt int64 // when it did
	seen     int64 // the time when Wait or Look last looked
	yielded  int64 // when the goroutine may last have been scheduled anew
	pulls    int   // since then
}

// target is who gets the events of a tag.
type target struct {
	to, source any
	router     Router              // to, where it is one
	drop       func(*native.Event) // gives back what an event holds that nobody will deal with
}

func newTask(s *Scheduler, id int, name string, w *native.Waiter) *Task {
	t := &Task{sched: s, id: id, name: name, waiter: w, done: make(chan struct{}), baton: make(chan error, 1), look: Never}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.gate.moved.L = &t.gate.mu
	return t
}

// Name is the task's name. Any goroutine.
func (t *Task) Name() string { return t.name }

// ID counts tasks in the order in which they were made, from 1. Any goroutine.
func (t *Task) ID() int { return t.id }

// Scheduler is the scheduler that made the task. Any goroutine.
func (t *Task) Scheduler() *Scheduler { return t.sched }

// Context is cancelled by Cancel, and when the task has ended. Any goroutine.
func (t *Task) Context() context.Context { return t.ctx }

// Done is closed when the task has ended. Any goroutine.
func (t *Task) Done() <-chan struct{} { return t.done }

// Err is what the task's function returned, once Done is closed. Any goroutine.
func (t *Task) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

// Now is the task's clock in ns since the epoch. Any goroutine.
func (t *Task) Now() int64 { return t.sched.Now() }

// Seen is the time when Wait or Look last looked at the clock: Now without its cost, for the task itself.
func (t *Task) Seen() int64 { return t.seen }

// Look looks at the clock. For the task itself.
func (t *Task) Look() int64 {
	t.seen = t.Now()
	return t.seen
}

// Waiter is where native taps and direct queues of this task are served.
func (t *Task) Waiter() *native.Waiter { return t.waiter }

// Start runs fn on a thread of its own; the task ends when fn returns. Once.
func (t *Task) Start(fn func(*Task) error) {
	waits := t.sched.admit(t)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the task
		if waits {
			<-t.baton
		}
		t.err = fn(t)
		t.end()
	}()
}

// end runs the exit functions, gives back what nobody took, and leaves the scheduler.
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
		t.freeWaiter() // nothing native knows it
	}
	t.sched.dismiss(t)
	close(t.done)
}

// AtExit runs fn on the task's thread when its function has returned, the latest first. It
// must be called before that. Where there is nothing to do any more, the task's own thread may call off.
func (t *Task) AtExit(fn func()) (off func()) {
	p := &fn
	t.atExit = append(t.atExit, p)
	return func() { t.atExit = slices.DeleteFunc(t.atExit, func(x *func()) bool { return x == p }) }
}

// Abandoned reports that JoinAll gave the task up: it may still run. Any goroutine.
func (t *Task) Abandoned() bool { return t.abandoned.Load() }

// Send puts a message into the task's inbox: ErrFull when it has too many, ErrEnded. The
// value must belong to the receiver alone. Any goroutine.
func (t *Task) Send(value any, from *Task) error {
	return t.put(Item{Kind: Message, Value: value, From: from})
}

// Post asks the task to run fn: its wait returns a Call item. Errors as Send. Any goroutine.
func (t *Task) Post(fn func()) error { return t.put(Item{Kind: Call, Call: fn}) }

func (t *Task) put(it Item) error {
	if err := t.inbox.put(it); err != nil {
		return fmt.Errorf("task %s: %w", t.name, err)
	}
	t.wake()
	return nil
}

// Stop asks the task to end in order: its wait returns a Stop item. Any goroutine.
func (t *Task) Stop(reason string) {
	t.stop.Store(&reason)
	t.wake()
}

// Cancel cancels the task's context and ends its waits for good. Any goroutine.
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

// freeWaiter ends the native waiter, after the task.
func (t *Task) freeWaiter() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.waiter != nil {
		t.waiter.Free()
		t.waiter = nil
	}
}

// Register names who gets events: the tag goes into the native part of source, and its
// items carry source and the target to. drop gives back what an undelivered event holds.
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

// Watch has the task told of an operation's end, once, by an item with the target to.
func (t *Task) Watch(op native.Op, to any) error {
	tag := t.Register(to, nil, nil)
	err := op.Watch(t.waiter, tag)
	if err != nil {
		t.targets[tag-1] = target{}
		t.free = append(t.free, tag)
	}
	return err
}

// Unregister ends the tags of some sources, whose native parts have gone: no event of theirs is left anywhere.
func (t *Task) Unregister(gone func(source any) bool) {
	for k := range t.targets {
		if who := &t.targets[k]; who.source != nil && gone(who.source) {
			*who = target{}
			t.free = append(t.free, uint64(k+1))
		}
	}
}

// Adopt makes the task the owner of a direct queue, which it serves whenever it waits.
func (t *Task) Adopt(q native.Queue) error {
	t.adopted = true
	return t.waiter.Adopt(q)
}

// Disown ends that. The task's thread, at its end.
func (t *Task) Disown(q native.Queue) { t.waiter.Disown(q) }
