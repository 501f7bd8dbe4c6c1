package task

import (
	"sync"
	"sync/atomic"
)

// inboxRoom is the maximum number of queued messages and calls of a task.
const inboxRoom = 1024

// inbox is a bounded queue from any goroutine to the task. Items that were taken but not delivered count, so that the task's deferred items are
// bounded too.
type inbox struct {
	mu     sync.Mutex
	items  []Item
	closed bool
	held   int // taken and not delivered
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

// take moves all items to dst.
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

// delivered records that the task has delivered an item.
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
