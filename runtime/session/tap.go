package session

import (
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Tap is a stage that delivers bursts to a task.
type Tap struct {
	*Stage
	task *task.Task
}

// TapOptions configures a tap.
type TapOptions struct {
	Name   string // start of the generated name: "on_burst" for "on_burst1"; empty: "tap"
	Depth  int    // bursts that may wait for the task; 0: 64
	Sample int    // deliver one burst out of so many; 0: all
	Policy Policy
}

const tapDepth = 64

// Tap creates a stage that delivers bursts to t, as items with the given target. It ends with t.
func (s *Session) Tap(name string, t *task.Task, target any, o TapOptions) (*Tap, error) {
	if o.Depth < 0 || o.Sample < 0 {
		return nil, invalid("tap %s: depth %d, sample %d: they must be 0 or more", name, o.Depth, o.Sample)
	}
	if o.Depth == 0 {
		o.Depth = tapDepth
	}
	if name == "" && o.Name != "" {
		name = s.madeUp(o.Name)
	}
	tap := &Tap{task: t}
	st, err := s.stage(name, KindTap, "", func(n string) (native.Stage, error) {
		return s.native.AddTap(n, native.TapConf{
			Waiter: t.Waiter(),
			Tag:    t.Register(target, tap, s.releaseEvent),
			Depth:  o.Depth,
			Policy: o.Policy,
			Sample: max(o.Sample, 1),
		})
	})
	if err != nil {
		return nil, err
	}
	tap.Stage = st
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taps = append(s.taps, tap)
	s.use(t)
	return tap, nil
}

// releaseEvent frees the burst of an undelivered event.
func (s *Session) releaseEvent(e *native.Event) {
	if e.Kind == native.EventBurst && !s.closed.Load() {
		e.Burst().Unref()
	}
}

// Next returns the tap's next burst, or ErrNotReady at the time until of the task's clock. The task's other items are kept for later waits; a stop
// ends it with task.ErrStopped.
func (t *Tap) Next(l *Leases, until int64) (*Burst, error) {
	it, err := t.task.WaitFor(until, func(it *task.Item) bool { return it.Source == t })
	switch {
	case err != nil:
		return nil, err
	case it == nil:
		return nil, ErrNotReady
	}
	return l.Take(it), nil
}

// Clock returns the recorder of the handler's call times, used by the tap's task. It is nil on the virtual clock, where they would differ between
// runs.
func (t *Tap) Clock() *stats.Recorder {
	if t.s.Virtual() {
		return nil
	}
	r, _ := t.s.handled.LoadOrStore(t.Name(), &stats.Recorder{})
	return r.(*stats.Recorder)
}

// Task returns the task of the tap.
func (t *Tap) Task() *task.Task { return t.task }

// Close removes the tap from its pipes. Bursts already in the tap are still delivered.
func (t *Tap) Close() {
	if t.s.enter() != nil {
		return
	}
	defer t.s.leave()
	t.s.endTap(t)
}

func (s *Session) endTap(t *Tap) {
	for _, p := range slices.Clone(s.pipes) {
		if slices.Contains(p.stages, t.Stage) {
			p.without(t.Stage)
		}
	}
	s.taps = slices.DeleteFunc(s.taps, func(x *Tap) bool { return x == t })
}

// use records that t may access the session's native memory until it ends.
func (s *Session) use(t *task.Task) {
	if slices.Contains(s.users, t) {
		return
	}
	s.users = append(s.users, t)
	off := t.AtExit(func() { s.left(t) })
	if t == s.env.Owner {
		s.callOff = off
	}
}

// left releases the resources of a task that has ended.
func (s *Session) left(t *task.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues.Range(func(_, v any) bool {
		if q := v.(*Queue); q.owner == t {
			q.owner = nil
			if s.native != nil {
				t.Disown(q.native) // its final check of taps must not poll a queue being freed
			}
		}
		return true
	})
	s.users = slices.DeleteFunc(s.users, func(x *task.Task) bool { return x == t })
	if s.state == ended {
		s.free()
		return
	}
	for _, tap := range slices.Clone(s.taps) {
		if tap.task == t {
			s.endTap(tap)
		}
	}
}
