package task

import (
	"slices"
	"time"
)

// A Poller has operations outside the process, such as a kernel on a GPU, whose completion is not notified and must be polled: by any goroutine, one
// at a time.
type Poller interface {
	// Poll handles completed operations. It returns their number and whether others are pending.
	Poll() (ended int, more bool)
}

// Polling intervals: on the real clock while a task waits, on the virtual clock while time stands still.
const (
	pollInterval = int64(20 * time.Microsecond)
	pollNap      = 20 * time.Microsecond
)

// AddPoller polls l whenever t waits, until it has no pending operations. Virtual time stands still until then.
func (t *Task) AddPoller(l Poller) {
	t.sched.lock()
	defer t.sched.mu.Unlock()
	if !slices.Contains(t.pollers, l) {
		t.pollers = append(t.pollers, l)
	}
	t.polling.Store(true)
}

// pollAll calls all pollers of t. It returns the number of completed operations and whether others are pending. The scheduler's lock must be held.
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

// shorten limits the timeout of a wait while operations are pending.
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

// pollAll calls the pollers of all tasks. It returns true if an operation completed or is pending, so that virtual time must stand still. The lock
// must be held.
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
