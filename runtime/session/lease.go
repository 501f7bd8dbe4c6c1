package session

import (
	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Leases is the set of bursts owned by one task. It must be used by one goroutine.
type Leases struct {
	ring Burst // sentinel of a doubly linked list
	n    int
	idx  []uint32 // scratch memory for the indices of a selection
}

// NewLeases returns an empty set.
func NewLeases() *Leases {
	l := &Leases{}
	l.ring.next, l.ring.prev = &l.ring, &l.ring
	return l
}

// Take takes ownership of the burst of a Burst item, until it is sent or freed.
func (l *Leases) Take(it *task.Item) *Burst {
	b := new(Burst)
	l.TakeInto(b, it)
	return b
}

// TakeInto is Take with memory from the caller: b must be new, or gone and not referenced elsewhere, and must not be copied afterwards.
func (l *Leases) TakeInto(b *Burst, it *task.Item) {
	s := it.Source.(*Tap).s
	b.kept, b.picks, b.also = false, nil, nil
	b.view = it.Event.View
	l.hold(b, s, it.Event.Burst())
	if s.closed.Load() {
		b.release("went with its session, which is closed")
	}
}

// hold adds a burst to the leases.
func (l *Leases) hold(b *Burst, s *Session, h native.Burst) {
	b.s, b.native, b.home, b.prev, b.next = s, h, l, l.ring.prev, &l.ring
	b.prev.next, l.ring.prev = b, b
	l.n++
}

// room returns scratch memory for n indices.
func (l *Leases) room(n int) []uint32 {
	if cap(l.idx) < n {
		l.idx = make([]uint32, n)
	}
	return l.idx[:n]
}

// Held returns the number of bursts that the task owns.
func (l *Leases) Held() int { return l.n }

// ReleaseAll frees all bursts of the task and returns their number.
func (l *Leases) ReleaseAll() int {
	n := l.n
	for l.ring.next != &l.ring {
		l.ring.next.drop("ended with its task")
	}
	return n
}
