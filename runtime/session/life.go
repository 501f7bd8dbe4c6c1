package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/runtime/task"
)

// Start starts the session's traffic. Direct queues without an owner are adopted by main, which polls them whenever it waits.
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
			st.manifest.Remove()
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

// startNative starts the native session.
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

// Stop requests the end of the session: it records the first reason and wakes the tasks that use the session. Nothing stops automatically: the caller
// that runs the session checks Stopping and calls Quiesce, Finish and Close. It may be called from any goroutine.
func (s *Session) Stop(reason string) {
	if !s.stop.CompareAndSwap(nil, &reason) {
		return
	}
	s.mu.Lock()
	users := slices.Clone(s.users)
	s.mu.Unlock()
	for _, t := range users {
		_ = t.Post(func() {}) // a full inbox or an ended task need no wake-up
	}
}

// Stopping reports whether Stop was called, and the first reason. It may be called from any goroutine.
func (s *Session) Stopping() (reason string, ok bool) {
	if r := s.stop.Load(); r != nil {
		return *r, true
	}
	return "", false
}

// Quiesce stops generation, sends the packets in transmit rings for at most drain (of the first call), and ends receiving at one moment for all
// queues: earlier packets are delivered, later ones are in no account. It returns the number of packets that wait for tasks: handle their items and
// call it again until it returns 0, or let Finish drop the rest. It blocks.
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

// Finish completes the session's work after Quiesce: writers write pending data and close their files. It returns the joined errors of writers and of
// captures that could not be read completely, and a *DeviceError for each stage that did not end or whose device failed, and for the first such
// queue. It blocks.
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
		s.native.Ledger() // updates device counters at the ends of captures
		s.endUploads()
		s.endShares()
		errs = append(errs, s.endLaunches()...)
		errs = append(errs, s.endPersistents()...)
		s.native.Finish()
		s.state = finished
		if s.moved { // otherwise another run may own the names
			errs = append(errs, s.writeManifests(true))
		}
		if !slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.native.Abandoned() }) {
			s.releaseNames() // otherwise abandoned stages may still write files
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

// Close finishes the session if necessary, frees everything and returns the number of packet buffers that were not returned to their pools. Memory
// that tasks other than the owner may still access is freed when they have ended. Further calls return the same number.
func (s *Session) Close() (leaked uint64) {
	_ = s.Finish() // callers that need the errors have called Finish before
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return s.leaked
	}
	s.state = ended
	s.endUploads() // of a session that was never started
	s.endShares()
	s.endLaunches()
	s.endPersistents()
	s.endDeletions()
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
		s.leaked += uint64(info.NumBufs - info.FreeBufs) // if the memory must stay allocated
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

// free frees native memory unless a task other than the owner, which must be the caller, can access it.
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
