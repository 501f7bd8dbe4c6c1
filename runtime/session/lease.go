package session

import (
	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Leases are the bursts that one task holds. One goroutine.
type Leases struct {
	ring Burst // sentinel of a doubly linked list
	n    int
	idx  []uint32 // room for the indices of a selection
}

// NewLeases makes an empty set, for one task.
func NewLeases() *Leases {
	l := &Leases{}
	l.ring.next, l.ring.prev = &l.ring, &l.ring
	return l
}

// Take takes over the burst of a Burst item. It is the task's until it is sent or freed.
func (l *Leases) Take(it *task.Item) *Burst {
	b := new(Burst)
	l.TakeInto(b, it)
	return b
}

// TakeInto is Take for a caller that has the memory: b is new, or gone and known to nobody else; it is not copied afterwards.
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

// room gives scratch memory for n indices.
func (l *Leases) room(n int) []uint32 {
	if cap(l.idx) < n {
		l.idx = make([]uint32, n)
	}
	return l.idx[:n]
}

// Held is how many bursts the task holds.
func (l *Leases) Held() int { return l.n }

// ReleaseAll frees every burst that the task holds and returns how many they were.
func (l *Leases) ReleaseAll() int {
	n := l.n
	for l.ring.next != &l.ring {
		l.ring.next.drop("ended with its task")
	}
	return n
}
