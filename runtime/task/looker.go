package task

import (
	"slices"
	"time"
)

// A Looker has work outside of the process, a kernel on a GPU say, whose end nobody tells: somebody has to look, from any
// goroutine, one at a time.
type Looker interface {
	// Look deals with what has ended: how much it was, and whether some goes on.
	Look() (ended int, more bool)
}

// Looks are so far apart: on the real clock while a task waits, on the virtual one while time stands still.
const (
	lookEvery = int64(20 * time.Microsecond)
	lookNap   = 20 * time.Microsecond
)

// LookAfter has l looked after whenever t waits, until it has nothing under way. Virtual time stands still until then.
func (t *Task) LookAfter(l Looker) {
	t.sched.lock()
	defer t.sched.mu.Unlock()
	if !slices.Contains(t.lookers, l) {
		t.lookers = append(t.lookers, l)
	}
	t.looking.Store(true)
}

// looked looks after what t has under way: how much has ended, and whether some goes on. Under the scheduler's lock.
func (t *Task) lookAround() (ended int, more bool) {
	t.lookers = slices.DeleteFunc(t.lookers, func(l Looker) bool {
		n, goesOn := l.Look()
		ended += n
		more = more || goesOn
		return !goesOn
	})
	t.looking.Store(more)
	return ended, more
}

// shorten is the time that a wait may take while something is under way.
func (t *Task) shorten(timeout int64) int64 {
	if !t.looking.Load() {
		return timeout
	}
	t.sched.lock()
	defer t.sched.mu.Unlock()
	if _, more := t.lookAround(); more && (timeout < 0 || timeout > lookEvery) {
		return lookEvery
	}
	return timeout
}

// lookAround looks after what all tasks have under way; true: something ended, or goes on, for which virtual time stands
// still. Under the lock.
func (s *Scheduler) lookAround() bool {
	ended, more := 0, false
	for _, t := range s.tasks {
		if t.looking.Load() {
			n, goesOn := t.lookAround()
			ended += n
			more = more || goesOn
		}
	}
	if ended == 0 && more {
		time.Sleep(lookNap)
	}
	return ended > 0 || more
}
