package session

import (
	"runtime"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// deletion is the deletion of a queue or region that waits until nothing uses it.
type deletion struct {
	op    native.Op
	leave func() bool // continues it, and reports whether it is complete
}

// checkAgain is the time between two checks of deletions on the real clock.
const checkAgain = time.Millisecond

// AddRegion adds a memory region while the session is open, in memory of the application if b is not nil. Errors: ErrExists, ErrInvalid,
// ErrNotSupported, or a system error without memory.
func (s *Session) AddRegion(r *spec.MemoryRegion, b *Binding) (*Region, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if !r.Owned && b == nil {
		return nil, invalid("memory region %s: owned: false names memory of the application, and there is none for it; hint: pass the memory, too", r.Name)
	}
	if r.Shared {
		return nil, ErrNotSupported.Errorf("memory region %s: shared memory is allocated at the open only: put the region into the configuration", r.Name)
	}
	var bound *native.Binding
	if b != nil {
		from := b.native()
		bound = &from
		defer runtime.KeepAlive(b.Array)
	}
	n, err := s.native.JoinRegion(regionConf(r), bound)
	if err != nil {
		return nil, err
	}
	added := &Region{s: s, spec: r, native: n}
	s.change(func() { s.regions = append(slices.Clone(s.regions), added) })
	return added, nil
}

// DeleteRegion deletes a region that no queue and no stage uses. The operation ends when its buffers are free. Errors: ErrInvalid for an unknown
// name, ErrInUse, ErrNotSupported.
func (s *Session) DeleteRegion(name string) (*Op, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := named(s.regions, "memory region", name, (*Region).Name)
	if err != nil {
		return nil, invalid("%s", err)
	}
	for _, st := range s.stages {
		if st.region == name {
			return nil, ErrInUse.Errorf("memory region %s: stage %s takes buffers from it, and exists as long as the session", name, st.name)
		}
	}
	if err := s.ringless("memory region " + name); err != nil {
		return nil, err
	}
	if err := r.native.Unused(s.native); err != nil {
		return nil, err
	}
	s.change(func() { s.regions = slices.DeleteFunc(slices.Clone(s.regions), func(x *Region) bool { return x == r }) })
	return s.await("memory region "+name, "regions", func() bool { return r.native.Leave(s.native) })
}

// AddQueue adds a queue to an interface of an open session; a receive queue gets packets once a flow names it. Errors: ErrExists, ErrInvalid,
// ErrNoSpace, ErrNotSupported.
func (i *Interface) AddQueue(q *spec.Queue, rx bool) (*Queue, error) {
	s := i.s
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	conf := queueConf(q, rx)
	if !s.Virtual() {
		var err error
		if conf.Core, err = s.cores.Later(q); err != nil {
			return nil, i.named(invalid("queue %s: %s", q.Name, err))
		}
	}
	var sizes []int
	for _, name := range q.MemoryRegions {
		r, err := named(s.regions, "memory region", name, (*Region).Name)
		if err != nil {
			return nil, invalid("%s", err)
		}
		conf.Regions = append(conf.Regions, r.native)
		sizes = append(sizes, r.spec.BufSize)
	}
	undo := s.pinLater(conf.Core)
	n, err := i.native.JoinQueue(conf)
	if err != nil {
		undo()
		return nil, i.named(err)
	}
	if !s.Virtual() {
		s.cores.Add(q, conf.Core)
	}
	added := &Queue{i: i, spec: q, rx: rx, native: n, sizes: sizes}
	s.queues.Store(n, added)
	s.change(func() {
		list := i.side(rx)
		*list = append(slices.Clone(*list), added)
	})
	return added, nil
}

// pinLater keeps other threads away from the core of a worker that is added; undo takes that back.
func (s *Session) pinLater(core int) (undo func()) {
	if core < 0 || s.Virtual() || slices.Contains(s.pinned, core) {
		return func() {}
	}
	s.pinned = append(s.pinned, core)
	if s.state == started {
		s.env.Scheduler.Pin([]int{core})
	}
	return func() {
		s.pinned = s.pinned[:len(s.pinned)-1]
		if s.state == started {
			s.env.Scheduler.Unpin([]int{core})
		}
	}
}

// side returns the list of the interface's queues of one direction.
func (i *Interface) side(rx bool) *[]*Queue {
	if rx {
		return &i.rx
	}
	return &i.tx
}

// Deleted reports whether Delete has succeeded. It may be called from any goroutine.
func (q *Queue) Deleted() bool { return q.deleted.Load() }

// Delete deletes the queue. Packets waiting in a receive queue are dropped, counted as flushed, and its taps end; a transmit queue sends what it
// holds. The operation ends when none of its bursts is in use. Errors: ErrInvalid if it was deleted before, ErrInUse while a flow, a pipe or a stage
// needs it, ErrNotSupported.
func (q *Queue) Delete() (*Op, error) {
	s := q.i.s
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if q.stage != nil || q.deleted.Load() {
		return nil, q.named(invalid("it was deleted before, or is a stage's"))
	}
	if err := q.native.Deletable(); err != nil { // before its taps end
		return nil, q.named(err)
	}
	if err := q.unused(); err != nil {
		return nil, q.named(err)
	}
	for _, t := range slices.Clone(s.taps) {
		if slices.ContainsFunc(s.pipes, func(p *Pipe) bool { return slices.Contains(p.sources, q) && slices.Contains(p.stages, t.Stage) }) {
			s.endTap(t)
		}
	}
	q.hold()
	err := q.native.Delete()
	q.release()
	if err != nil {
		return nil, q.named(err)
	}
	q.deleted.Store(true)
	s.change(func() {
		list := q.i.side(q.rx)
		*list = slices.DeleteFunc(slices.Clone(*list), func(x *Queue) bool { return x == q })
	})
	return s.await(q.title(), "queues", func() bool {
		q.hold()
		defer q.release()
		return q.native.Leave()
	})
}

// unused returns an error if something in the session needs the queue.
func (q *Queue) unused() error {
	names := func(f flow.Flow) bool { return slices.Contains(f.Queues, q.ID()) }
	flows := q.i.rxFlows.table.List()
	if k := slices.IndexFunc(flows, names); q.rx && k >= 0 {
		f := flows[k]
		return ErrInUse.Errorf("flow %s leads to it; hint: delete the flow first", flowTitle(&f, k))
	}
	if len(q.plans) > 0 {
		return ErrInUse.Errorf("stage %s of the configuration takes its packets", q.plans[0].name)
	}
	for _, st := range q.i.s.stages {
		if st.to == q {
			return ErrInUse.Errorf("stage %s sends on it, and exists as long as the session", st.name)
		}
	}
	for _, p := range q.i.s.pipes {
		taps := func(st *Stage) bool { return st.kind == KindTap }
		if slices.Contains(p.sources, q) && (len(p.sources) > 1 || !slices.ContainsFunc(p.stages, taps) || len(p.stages) > 1) {
			return ErrInUse.Errorf("pipe %s reads it, and exists as long as the session", p)
		}
	}
	return q.i.s.ringless("")
}

// ringless returns an error while a kernel has rings, which name queues and regions.
func (s *Session) ringless(what string) error {
	if len(s.persistents) == 0 {
		return nil
	}
	return within(what, ErrInUse.Errorf("kernel %s has rings of the session's queues", s.persistents[0].name))
}

// change changes lists that other goroutines read.
func (s *Session) change(edit func()) {
	s.lists.Lock()
	defer s.lists.Unlock()
	edit()
}

// await returns an operation that completes once leave returns true.
func (s *Session) await(object, unit string, leave func() bool) (*Op, error) {
	n, err := native.NewOp(1)
	if err != nil {
		return nil, within(object, err)
	}
	op := newOp(object, n)
	op.unit, op.look = unit, s.tend
	s.deletions = append(s.deletions, deletion{n, leave})
	s.deleting.Store(true)
	s.tendAll()
	if !s.Virtual() && len(s.deletions) > 0 {
		s.checkLater()
	}
	return op, nil
}

func (s *Session) checkLater() {
	time.AfterFunc(checkAgain, func() {
		s.tend()
		if s.deleting.Load() {
			s.checkLater()
		}
	})
}

// tend continues the deletions, and completes the operations of those that have ended. It may be called from any goroutine.
func (s *Session) tend() {
	if !s.deleting.Load() || s.enter() != nil {
		return
	}
	defer s.leave()
	s.tendAll()
}

func (s *Session) tendAll() (ended int) {
	s.deletions = slices.DeleteFunc(s.deletions, func(d deletion) bool {
		done := d.leave()
		if done {
			d.op.OK(1, 0)
			ended++
		}
		return done
	})
	s.deleting.Store(len(s.deletions) > 0)
	return ended
}

// endDeletions completes the deletions that can end, and fails the others.
func (s *Session) endDeletions() {
	s.tendAll()
	for _, d := range s.deletions {
		d.op.Lost(1, "the session ended while its packets were in use")
	}
	s.deletions = nil
	s.deleting.Store(false)
}

// stepper is the session for the scheduler of the virtual clock: deletions are continued with each step.
type stepper struct{ s *Session }

func (st stepper) Step() int {
	n := st.s.native.Step()
	if st.s.deleting.Load() && st.s.enter() == nil {
		n += st.s.tendAll()
		st.s.leave()
	}
	return n
}

func (st stepper) NextTime() int64   { return st.s.native.NextTime() }
func (st stepper) Advance(now int64) { st.s.native.Advance(now) }
