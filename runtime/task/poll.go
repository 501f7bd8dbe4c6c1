package task

import (
	"slices"
	"time"
)

// A Poller has work outside of the process, a kernel on a GPU say, whose end nobody tells: somebody has to look, from any
// goroutine, one at a time.
type Poller interface {
	// Look deals with what has ended: how much it was, and whether some goes on.
	Poll() (ended int, more bool)
}

// Looks are so far apart: on the real clock while a task waits, on the virtual one while time stands still.
const (
	pollInterval = int64(20 * time.Microsecond)
	pollNap      = 20 * time.Microsecond
)

// AddPoller has l looked after whenever t waits, until it has nothing under way. Virtual time stands still until then.
func (t *Task) AddPoller(l Poller) {
	t.sched.lock()
	defer t.sched.mu.Unlock()
	if !slices.Contains(t.pollers, l) {
		t.pollers = append(t.pollers, l)
	}
	t.polling.Store(true)
}

// looked looks after what t has under way: how much has ended, and whether some goes on. Under the scheduler's lock.
func (t *Task) pollAll() (ended int, more bool) {
	t.pollers = slices.DeleteFunc(t.pollers, func(l Poller) bool {
		n, goesOn := l.Poll()
		ended += n
		more = more || goesOn
		return !goesOn
	})
	t.polling.Store(more)
	return ended, more
}

// shorten is the time that a wait may take while something is under way.
func (t *Task) shorten(timeout int64) int64 {
	if !t.polling.Load() {
		return timeout
	}
	t.sched.lock()
	defer t.sched.mu.Unlock()
	if _, more := t.pollAll(); more && (timeout < 0 || timeout > pollInterval) {
		return pollInterval
	}
	return timeout
}

// pollAll looks after what all tasks have under way; true: something ended, or goes on, for which virtual time stands
// still. Under the lock.
func (s *Scheduler) pollAll() bool {
	ended, more := 0, false
	for _, t := range s.tasks {
		if t.polling.Load() {
			n, goesOn := t.pollAll()
			ended += n
			more = more || goesOn
		}
	}
	if ended == 0 && more {
		time.Sleep(pollNap)
	}
	return ended > 0 || more
}
