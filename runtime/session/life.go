package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/runtime/task"
)

// Start lets packets move. Direct queues that no task has adopted become main's, which
// serves them whenever it waits.
func (s *Session) Start(main *task.Task) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if s.state != opened {
		return invalid("session: started already")
	}
	for _, i := range s.ifaces {
		for _, q := range slices.Concat(i.rx, i.tx) {
			if q.owner == nil && main != nil {
				if err := q.adopt(main); err != nil {
					return err
				}
			}
		}
	}
	if err := s.checkUploads(); err != nil {
		return err
	}
	for _, st := range s.stages {
		if !st.writes() {
			continue
		}
		if err := s.claimNames(st.name, st.writer); err != nil {
			s.releaseNames()
			return &StorageError{err}
		}
	}
	s.env.Scheduler.Pin(s.pinned)
	s.state = started
	s.movedNS.Store(s.native.Now())
	err := s.writeManifests(false)
	if err != nil {
		err = &StorageError{err}
	} else {
		err = s.startNative()
	}
	if err != nil {
		for _, st := range s.stages {
			st.removeManifest()
		}
		s.releaseNames()
	} else {
		for _, st := range s.stages {
			st.replaceManifest()
		}
	}
	s.moved = err == nil
	return err
}

// startNative lets packets move.
func (s *Session) startNative() error {
	err := s.native.Start()
	if err == nil {
		return nil
	}
	for _, st := range s.stages {
		if st.writes() && strings.HasPrefix(err.Error(), "writer "+st.name+":") {
			return &StorageError{err}
		}
	}
	return fmt.Errorf("%s: start: %w", s.cfg.File, err)
}

// Started reports whether Start was called.
func (s *Session) Started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != opened
}

// Stop asks for the end: it records the first reason and wakes the tasks that use the
// session. Nothing stops by itself: whoever runs the session looks at Stopping, and calls
// Quiesce, Finish and Close. Any goroutine.
func (s *Session) Stop(reason string) {
	if !s.stop.CompareAndSwap(nil, &reason) {
		return
	}
	s.mu.Lock()
	users := slices.Clone(s.users)
	s.mu.Unlock()
	for _, t := range users {
		_ = t.Post(func() {}) // a full inbox or an ended task needs no waking
	}
}

// Stopping tells whether the end was asked for, and the first reason. Any goroutine.
func (s *Session) Stopping() (reason string, ok bool) {
	if r := s.stop.Load(); r != nil {
		return *r, true
	}
	return "", false
}

// Quiesce ends generation, sends for at most drain (of the first call) what transmit rings hold, and
// ends receiving, at one moment for all queues: what came before is delivered, what comes later is
// in no account. It returns the packets that wait for tasks: serve their items and call it
// again until it returns 0, or leave it: Finish drops what is left. Blocks.
func (s *Session) Quiesce(drain time.Duration) uint64 {
	if s.enter() != nil {
		return 0
	}
	defer s.leave()
	if s.state != started && s.state != stopped {
		return 0
	}
	for _, t := range s.users {
		t.Hold()
		defer t.Release()
	}
	left := s.native.Stop(drain)
	s.quiescedNS.Store(s.native.Quiesced())
	if s.state == started {
		s.env.Scheduler.Unpin(s.pinned)
		s.state = stopped
	}
	return left
}

// Finish ends the session's work after Quiesce: writers write what they hold and close
// their files. The errors of writers, and of captures that could not be read to their end,
// come joined, a *DeviceError for each stage that did not end, or whose device failed, and for the first such queue. Blocks.
func (s *Session) Finish() error {
	s.Quiesce(0)
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	var errs []error
	if s.state == stopped {
		for _, t := range s.users {
			t.Hold()
			defer t.Release()
		}
		s.native.Ledger() // what devices count is up to date in the ends of captures
		s.endUploads()
		errs = append(errs, s.endLaunches()...)
		errs = append(errs, s.endPersistents()...)
		s.native.Finish()
		s.state = finished
		if s.moved { // else its names may be another run's by now
			errs = append(errs, s.writeManifests(true))
		}
		if !slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.native.Abandoned() }) {
			s.releaseNames() // else some may be written to yet
		}
	}
	for _, i := range s.ifaces {
		errs = append(errs, i.sourceError())
	}
	for _, st := range s.stages {
		errs = append(errs, st.deviceError(), st.writerError())
	}
	errs = append(errs, s.queueError())
	return errors.Join(errs...)
}

// Close finishes what was not finished, frees everything and returns the number of packet
// buffers that were not back in their pools. Memory that other tasks than the owner may
// still touch goes when they have ended. A second call returns the same number.
func (s *Session) Close() (leaked uint64) {
	_ = s.Finish() // a caller who wants the writers' errors has called it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return s.leaked
	}
	s.state = ended
	s.endUploads() // of a session that was never started
	s.endLaunches()
	s.endPersistents()
	last := s.snapshot()
	s.alive.Lock()
	s.last, s.lastNS = last, s.native.Now()
	s.alive.Unlock()
	o := s.env.Owner
	uses := slices.Contains(s.users, o) && !o.Abandoned()
	if uses {
		o.Forget(s.made)
	}
	s.closed.Store(true)
	s.env.Scheduler.Unregister(s.stepper())
	for _, r := range s.regions {
		info := r.native.Info()
		s.leaked += uint64(info.NumBufs - info.FreeBufs) // if the memory has to stay
	}
	s.free()
	if uses && s.native == nil {
		o.Unregister(s.made)
		s.callOff()
	}
	return s.leaked
}

// made reports whether the source of a task's events belongs to this session.
func (s *Session) made(source any) bool {
	switch x := source.(type) {
	case *Tap:
		return x.s == s
	case *Interface:
		return x.s == s
	}
	return false
}

// free frees native memory once no task but the owner, whose call this is, can touch it.
func (s *Session) free() {
	if slices.ContainsFunc(s.users, func(t *task.Task) bool { return t != s.env.Owner || t.Abandoned() }) {
		return
	}
	s.alive.Lock()
	defer s.alive.Unlock()
	if s.native == nil {
		return
	}
	for _, t := range s.users {
		t.Hold()
		defer t.Release()
	}
	s.leaked = s.native.Close()
	s.native = nil
}
