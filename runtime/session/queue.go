package session

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Queue is a receive or transmit queue of an interface.
type Queue struct {
	i      *Interface
	spec   *spec.Queue
	rx     bool
	native native.Queue
	sizes  []int      // buf_size of each of its memory regions
	owner  *task.Task // owner of a direct queue, under the session's lock
	stage  *Stage     // stage with this output queue; nil: a queue of an interface
	frames bool       // with stage: outputs frames, not payloads
	leader *Queue     // output queue: the source whose poller serves it; nil: none yet
	home   *Queue     // output of a configured stage: the queue that received the packets
	plans  []*Stage   // configured reorder stages, which take their packets before any pipe

	read    atomic.Bool // a pipe reads it, or has read it
	deleted atomic.Bool // Delete has succeeded
}

func (s *Session) queueOf(n native.Queue) *Queue {
	v, _ := s.queues.Load(n)
	q, _ := v.(*Queue)
	return q
}

// server returns the queue whose owner serves q: q itself, or the first source of its stage.
func (q *Queue) server() *Queue {
	for q.leader != nil {
		q = q.leader
	}
	return q
}

// Name returns the queue's name in the configuration.
func (q *Queue) Name() string { return q.spec.Name }

// ID returns the queue's id, unique in its direction of the interface.
func (q *Queue) ID() int { return q.spec.ID }

// Interface returns the interface of the queue.
func (q *Queue) Interface() *Interface { return q.i }

// Rx reports whether it is a receive queue.
func (q *Queue) Rx() bool { return q.rx }

// Direct reports whether the queue is polled by its task instead of a worker.
func (q *Queue) Direct() bool { return q.spec.Direct() }

// BatchSize returns the maximum number of packets of a burst.
func (q *Queue) BatchSize() int { return q.spec.BatchSize }

// BufSizes returns the buffer size of each of the queue's memory regions, in bytes. The caller must not change the list.
func (q *Queue) BufSizes() []int { return q.sizes }

// Layers of a queue.
const (
	LayerFrame   = "frame"   // packets start with the Ethernet header
	LayerPayload = "payload" // packets are socket payloads
)

// Stage returns the stage with this output queue, or nil for a queue of an interface.
func (q *Queue) Stage() *Stage { return q.stage }

// Layer returns the type of the queue's packets: LayerFrame or LayerPayload.
func (q *Queue) Layer() string {
	if q.i.spec.Socket() || (q.stage != nil && !q.frames) {
		return LayerPayload
	}
	return LayerFrame
}

// Timestamps returns the origin of a receive queue's times: software, kernel, hardware, virtual or file; empty for a transmit queue.
func (q *Queue) Timestamps() (string, error) {
	if !q.rx {
		return "", nil
	}
	if err := q.i.s.enter(); err != nil {
		return "", err
	}
	defer q.i.s.leave()
	return q.native.Stamps(), nil
}

// title returns the queue's name in errors.
func (q *Queue) title() string {
	if q.stage != nil {
		return "stage " + q.stage.name
	}
	return fmt.Sprintf("interface %s: queue %s", q.i.Name(), q.Name())
}

func (q *Queue) named(err error) error { return within(q.title(), err) }

// Adopt makes t the task that polls a direct queue whenever it waits. The queue may be taken over from a task that is not waiting. It has no effect
// on a worker's queue.
func (q *Queue) Adopt(t *task.Task) error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	return q.adopt(t)
}

func (q *Queue) adopt(t *task.Task) error {
	if !q.Direct() || q.owner == t {
		return nil
	}
	if q.owner != nil {
		q.owner.Hold()
		defer q.owner.Release()
	}
	t.Hold()
	defer t.Release()
	if err := t.Adopt(q.native); err != nil {
		return q.named(err)
	}
	q.i.s.use(t)
	q.owner = t
	return nil
}

// Tap delivers every burst of the queue (or those selected by TapOptions) to t, as items with the given target. A direct queue without an owner is
// adopted by t.
func (q *Queue) Tap(t *task.Task, target any, o TapOptions) (*Tap, error) {
	tap, err := q.i.s.Tap("", t, target, o)
	if err != nil {
		return nil, err
	}
	if _, err := q.i.s.Pipe([]*Queue{q}, tap.Stage); err != nil {
		return nil, err
	}
	return tap, nil
}

// Waiting returns the number of packets of a transmit queue that are not sent yet: queued ones, and the rest of a transmission; endless is true if
// that is unlimited.
func (q *Queue) Waiting() (n uint64, endless bool, err error) {
	if err := q.i.s.enter(); err != nil {
		return 0, false, err
	}
	defer q.i.s.leave()
	if q.rx {
		return 0, false, q.named(invalid("only a transmit queue sends"))
	}
	n, endless = q.native.Waiting()
	return n, endless, nil
}

// Flush discards the packets in a receive queue, counted as flushed, and returns their number.
func (q *Queue) Flush() (int64, error) {
	if err := q.i.s.enter(); err != nil {
		return 0, err
	}
	defer q.i.s.leave()
	if !q.rx {
		return 0, q.named(invalid("only a receive queue can be flushed"))
	}
	q.hold()
	defer q.release()
	return q.native.Flush(), nil
}

// Alloc allocates a burst of n packets of length 0. The task owns it until Send or Free. It returns ErrNoBurst or ErrNoPacket if the queue's pools
// are empty. It must be called by the owner's task.
func (q *Queue) Alloc(l *Leases, n int) (*Burst, error) {
	switch {
	case q.i.s.closed.Load():
		return nil, ErrClosed
	case q.rx:
		return nil, q.named(invalid("bursts to send come from a transmit queue"))
	case n < 1 || n > q.BatchSize():
		return nil, q.named(invalid("%d packets: a burst has 1 to %d (batch_size)", n, q.BatchSize()))
	}
	h, err := q.native.Alloc(n)
	if err != nil {
		return nil, q.named(err)
	}
	b := new(Burst)
	l.hold(b, q.i.s, h)
	h.View(&b.view)
	return b, nil
}

// Send queues b for sending. On success the burst is consumed; on error the caller still owns it. It returns ErrNoSpace if the ring is full. It must
// be called by the owner's task.
func (q *Queue) Send(b *Burst) error {
	if err := q.mayTake(b); err != nil {
		return err
	}
	if err := q.native.Send(b.native); err != nil {
		if errors.Is(err, ErrNoSpace) {
			return err // frequent, so it is not wrapped
		}
		return q.unsent(b, err)
	}
	b.release("was sent")
	return nil
}

// unsent returns the error for a burst that the engine rejected.
func (q *Queue) unsent(b *Burst, err error) error {
	if errors.Is(err, ErrNotSupported) && b.view.DeviceOnly != 0 {
		err = b.readable(b.view.DeviceOnly)
	}
	return q.named(err)
}

// mayTake returns an error if the queue cannot send a burst.
func (q *Queue) mayTake(b *Burst) error {
	if err := b.Check(); err != nil {
		return err
	}
	switch {
	case q.rx:
		return q.named(invalid("it receives; bursts are sent on a transmit queue"))
	case b.s != q.i.s:
		return q.named(invalid("the burst belongs to another session"))
	}
	return nil
}

// Pace limits the rate of sending from now on, in bits/s and packets/s of the queue's packets; 0 is unlimited.
func (q *Queue) Pace(bps, pps float64) error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	if q.rx || bps < 0 || pps < 0 {
		return q.named(invalid("only a transmit queue has a pace, of 0 or more"))
	}
	q.native.Pace(bps, pps)
	return nil
}

// Follow sends the packets of forwarded bursts with the gaps of their receive times divided by speed, instead of at a pace.
func (q *Queue) Follow(speed float64) error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	if q.rx || !(speed > 0) {
		return q.named(invalid("only a transmit queue follows receive times, at a speed above 0"))
	}
	q.native.Follow(speed)
	return nil
}

// Transmit makes the queue's poller send count packets of tpl, 0: unlimited. It replaces the current transmission.
func (q *Queue) Transmit(tpl *Template, count uint64) error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	if q.rx {
		return q.named(invalid("it receives; templates are sent on a transmit queue"))
	}
	if tpl.s != q.i.s {
		return q.named(invalid("the template belongs to another session"))
	}
	if err := q.fits(tpl); err != nil {
		return q.named(err)
	}
	q.hold()
	defer q.release()
	defer runtime.KeepAlive(tpl)
	return q.named(q.native.Transmit(tpl.native, count))
}

// fits returns an error if a template's packets do not fit into one buffer.
func (q *Queue) fits(tpl *Template) error {
	if n := len(q.spec.MemoryRegions); n != 1 {
		return fmt.Errorf("it has %d memory regions, packets of a template need one: %w", n, ErrInvalid)
	}
	if tpl.length > q.sizes[0] {
		return fmt.Errorf("the template's %d bytes don't fit the %d of region %s's buffers: raise buf_size: %w",
			tpl.length, q.sizes[0], q.spec.MemoryRegions[0], ErrInvalid)
	}
	return nil
}

// StopTransmit ends the current transmission.
func (q *Queue) StopTransmit() error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	return q.named(q.native.Transmit(native.Template{}, 0))
}

// Remaining returns the rest of the current transmission. It may be called from any goroutine.
func (q *Queue) Remaining() (n uint64, endless bool) {
	s := q.i.s
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.native == nil {
		return 0, false
	}
	return q.native.Remaining()
}
