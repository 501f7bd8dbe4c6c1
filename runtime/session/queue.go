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
	owner  *task.Task // of a direct queue, under the session's lock
	stage  *Stage     // whose aggregates or copies it hands out; nil: it is an interface's
	frames bool       // with stage: copies of frames, not payloads
	leader *Queue     // of a stage's: the source whose poller serves it; nil: it has none yet
	home   *Queue     // of a stage's of the configuration: the queue whose packets these were
	plans  []*Stage   // reorder stages of the configuration: they take their packets before any pipe

	read atomic.Bool // a pipe led, or leads, out of it
}

func (s *Session) queueOf(n native.Queue) *Queue {
	v, _ := s.queues.Load(n)
	q, _ := v.(*Queue)
	return q
}

// server is the queue whose owner serves q: itself, or the first source of its stage.
func (q *Queue) server() *Queue {
	for q.leader != nil {
		q = q.leader
	}
	return q
}

// Name is the queue's name in the configuration.
func (q *Queue) Name() string { return q.spec.Name }

// ID is the queue's id, unique in its direction of the interface.
func (q *Queue) ID() int { return q.spec.ID }

// Interface is the interface that the queue belongs to.
func (q *Queue) Interface() *Interface { return q.i }

// Rx reports whether it is a receive queue.
func (q *Queue) Rx() bool { return q.rx }

// Direct reports whether its task polls it, and no worker.
func (q *Queue) Direct() bool { return q.spec.Direct() }

// BatchSize is how many packets a burst of the queue has at most.
func (q *Queue) BatchSize() int { return q.spec.BatchSize }

// Layers of a queue.
const (
	LayerFrame   = "frame"   // packets begin with the Ethernet header
	LayerPayload = "payload" // packets are what the sockets carry
)

// Stage is the stage whose aggregates the queue hands out, nil of an interface's queue.
func (q *Queue) Stage() *Stage { return q.stage }

// Layer says what the queue's packets are: LayerFrame or LayerPayload.
func (q *Queue) Layer() string {
	if q.i.spec.Socket() || (q.stage != nil && !q.frames) {
		return LayerPayload
	}
	return LayerFrame
}

// Timestamps says where a receive queue's times come from: software, kernel, hardware, virtual or file; empty for a
// transmit queue.
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

// title names the queue in errors.
func (q *Queue) title() string {
	if q.stage != nil {
		return "stage " + q.stage.name
	}
	return fmt.Sprintf("interface %s: queue %s", q.i.Name(), q.Name())
}

func (q *Queue) named(err error) error { return within(q.title(), err) }

// Adopt makes t the task that polls a direct queue, whenever it waits. A queue can be
// handed over: from a task that is not in a wait. No effect on a queue of a worker.
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

// Tap gives t every burst of the queue (or as TapOptions say) as items whose target is
// target. A direct queue that nobody polls becomes t's.
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

// Waiting is how many packets of a transmit queue have not left yet: those given to it, and the rest of a transmission;
// endless: that has no end.
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

// Flush discards what waits in a receive queue, counted as flushed, and returns the number
// of packets.
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

// Alloc makes a burst of n packets to be filled and sent; their lengths are 0. The task
// owns it until Send or Free. ErrNoBurst and ErrNoPacket when the queue's pools are empty.
// Owner's task.
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

// Send queues b for sending. The burst is consumed when the error is nil, and stays the
// caller's otherwise: ErrNoSpace when the ring is full. Owner's task.
func (q *Queue) Send(b *Burst) error {
	if err := q.mayTake(b); err != nil {
		return err
	}
	if err := q.native.Send(b.native); err != nil {
		if errors.Is(err, ErrNoSpace) {
			return err // expected, and often: no words
		}
		return q.unsent(b, err)
	}
	b.release("was sent")
	return nil
}

// unsent says why the engine didn't take the burst.
func (q *Queue) unsent(b *Burst, err error) error {
	if errors.Is(err, ErrNotSupported) && b.view.DeviceOnly != 0 {
		err = b.readable(b.view.DeviceOnly)
	}
	return q.named(err)
}

// mayTake returns why the queue can't send a burst.
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

// Pace limits what is sent from now on, in bits/s and packets/s of what the queue holds; 0
// is no limit.
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

// Follow makes the packets of bursts that are forwarded leave with the gaps of their receive times divided by speed, instead
// of at a pace.
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

// Transmit lets the queue's own thread send count packets of tpl, 0: without end. It
// replaces what was being transmitted.
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

// fits tells why the queue can't send a template's packets: each lies in one buffer.
func (q *Queue) fits(tpl *Template) error {
	if n := len(q.spec.MemoryRegions); n != 1 {
		return fmt.Errorf("it has %d memory regions, packets of a template need one: %w", n, ErrInvalid)
	}
	for _, r := range q.i.s.cfg.MemoryRegions {
		if r.Name == q.spec.MemoryRegions[0] && tpl.length > r.BufSize {
			return fmt.Errorf("the template's %d bytes don't fit the %d of region %s's buffers: raise buf_size: %w",
				tpl.length, r.BufSize, r.Name, ErrInvalid)
		}
	}
	return nil
}

// StopTransmit ends what Transmit began.
func (q *Queue) StopTransmit() error {
	if err := q.i.s.enter(); err != nil {
		return err
	}
	defer q.i.s.leave()
	return q.named(q.native.Transmit(native.Template{}, 0))
}

// Remaining is what is left of the current transmission. Any goroutine.
func (q *Queue) Remaining() (n uint64, endless bool) {
	s := q.i.s
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.native == nil {
		return 0, false
	}
	return q.native.Remaining()
}
