package task

import "runtime"

// await passes the baton on and blocks until t gets it back: when an event for t is pending or the time until is reached (both nil), or when no event
// is possible (ErrIdle).
func (s *Scheduler) await(t *Task, until int64) error {
	s.lock()
	if !s.virtual() {
		s.mu.Unlock()
		return nil
	}
	t.until, t.waiting = until, true
	s.running--
	s.dispatch()
	s.mu.Unlock()
	return <-t.baton
}

// grant lets a waiting task run.
func (s *Scheduler) grant(t *Task, err error) {
	if t.waiting {
		t.waiting = false
		s.running++
		t.baton <- err
	}
}

// poke dispatches again after an event from outside.
func (s *Scheduler) poke() {
	s.lock()
	defer s.mu.Unlock()
	s.dispatch()
}

// release lets t run immediately, regardless of the baton, because its context is canceled.
func (s *Scheduler) release(t *Task) {
	s.lock()
	defer s.mu.Unlock()
	s.grant(t, nil)
}

// dispatch runs the virtual clock until a task can run. It does nothing while a task runs. Sessions are polled between any two turns of tasks, so
// that a task sees events in order; time advances when neither sessions nor tasks have work.
func (s *Scheduler) dispatch() {
	for s.virtual() && s.running == 0 {
		if s.knocks.Load() > 0 {
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
			continue
		}
		moved := 0
		for _, st := range s.steppers {
			moved += st.Step()
		}
		if s.pollAll() {
			moved++
		}
		waiting, next := s.waiting()
		switch {
		case waiting == nil:
			return
		case next <= s.now:
			s.grant(waiting, nil)
			return
		case moved > 0:
			continue
		}
		for _, st := range s.steppers {
			next = min(next, st.NextTime())
		}
		if next == Never {
			s.grant(waiting, ErrIdle)
			return
		}
		s.now = max(s.now, next)
		for _, st := range s.steppers {
			st.Advance(s.now)
		}
	}
}

// waiting returns the next waiting task to run, and its time; among equals the one with the lowest id.
func (s *Scheduler) waiting() (first *Task, at int64) {
	for _, t := range s.tasks {
		if !t.waiting {
			continue
		}
		due := t.until
		if t.pending() || t.poll() {
			due = s.now
		}
		if due = max(due, s.now); first == nil || due < at {
			first, at = t, due
		}
	}
	return first, at
}
