package task

import (
	"sync"
	"sync/atomic"
)

// inboxRoom is how many messages and calls may wait for a task.
const inboxRoom = 1024

// inbox is a bounded queue from any goroutine to the task. What the task took but has not
// delivered yet counts, so that a task that waits for something else stays bounded.
type inbox struct {
	mu     sync.Mutex
	items  []Item
	closed bool
	held   int // taken, not delivered
	some   atomic.Bool
}

func (b *inbox) put(it Item) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrEnded
	case len(b.items)+b.held >= inboxRoom:
		return ErrFull
	}
	b.items = append(b.items, it)
	b.some.Store(true)
	return nil
}

// take moves everything to dst.
func (b *inbox) take(dst []Item) []Item {
	if !b.some.Load() {
		return dst
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	dst = append(dst, b.items...)
	b.held += len(b.items)
	clear(b.items)
	b.items = b.items[:0]
	b.some.Store(false)
	return dst
}

// delivered says that the task has one item less to deliver.
func (b *inbox) delivered() {
	b.mu.Lock()
	b.held--
	b.mu.Unlock()
}

func (b *inbox) close() {
	b.mu.Lock()
	b.closed, b.items = true, nil
	b.mu.Unlock()
}
