package task

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// Never is a time that is never reached.
const Never = int64(math.MaxInt64)

// VirtualEpoch is the start of the virtual clock: 2020-01-01T00:00:00Z, in ns since the epoch.
const VirtualEpoch = int64(1577836800) * int64(time.Second)

// Stepper is a session on the virtual clock.
type Stepper interface {
	Step() int         // polls everything once; returns the number of objects with progress
	NextTime() int64   // time of the next event, or Never
	Advance(now int64) // advances the session's time
}

// Scheduler manages the tasks of a process and their clock. The first session determines whether the clock is real or virtual, until no session is
// left. It is safe for concurrent use.
type Scheduler struct {
	began time.Time
	epoch int64 // real time at began
	cpus  CPUs  // available to the process

	isVirtual atomic.Bool  // copy of virtual() for use without the lock
	knocks    atomic.Int32 // callers waiting for mu, to which a long dispatch yields

	mu       sync.Mutex
	tasks    []*Task // started and not ended, by id
	ended    []*Task // their waiters may still be referenced by native stages
	lastID   int
	running  int // number of tasks not waiting for the baton
	real     int // number of sessions on the real clock
	steppers []Stepper
	now      int64 // virtual clock
	pinned   []int // cores of workers, once per Pin
}

// NewScheduler returns the process's scheduler, on the real clock.
func NewScheduler() *Scheduler {
	now := time.Now()
	return &Scheduler{began: now, epoch: now.UnixNano(), cpus: threadCPUs(0)}
}

// Now returns the time of the tasks' clock in ns since the epoch.
func (s *Scheduler) Now() int64 {
	if s.isVirtual.Load() {
		s.lock()
		defer s.mu.Unlock()
		return s.now
	}
	return s.epoch + int64(time.Since(s.began))
}

// Clock returns Now and the corresponding CLOCK_MONOTONIC in ns. It takes several readings and returns the fastest one, in case of preemption between
// the two clocks.
func (s *Scheduler) Clock() (now, mono int64) {
	const near = 10 * time.Microsecond
	for k, quickest := 0, time.Duration(math.MaxInt64); k < 8 && quickest >= near; k++ {
		before := time.Now()
		at := s.Now()
		m, err := native.Monotonic()
		if took := time.Since(before); err == nil && took < quickest {
			quickest, now, mono = took, at, m
		}
	}
	return now, mono
}

func (s *Scheduler) lock() {
	s.knocks.Add(1)
	s.mu.Lock()
	s.knocks.Add(-1)
}

// Virtual reports whether the clock is virtual.
func (s *Scheduler) Virtual() bool { return s.isVirtual.Load() }

func (s *Scheduler) virtual() bool { return len(s.steppers) > 0 }

// Tasks returns the tasks that have started and not ended, in order of id.
func (s *Scheduler) Tasks() []*Task {
	s.lock()
	defer s.mu.Unlock()
	return append([]*Task(nil), s.tasks...)
}

// Register adds a session, with its stepper on the virtual clock or nil on the real clock. Sessions on both clocks cannot be open at the same time.
func (s *Scheduler) Register(st Stepper) error {
	s.lock()
	defer s.mu.Unlock()
	switch {
	case st == nil && s.virtual():
		return fmt.Errorf("clock: a session on the virtual clock is open, so one on the real clock can't be")
	case st == nil:
		s.real++
	case s.real > 0:
		return fmt.Errorf("clock: a session on the real clock is open, so one on the virtual clock can't be")
	default:
		if !s.virtual() {
			s.now = VirtualEpoch
			s.running = len(s.tasks)
		}
		s.steppers = append(s.steppers, st)
		s.isVirtual.Store(true)
		st.Advance(s.now)
		for _, t := range s.tasks {
			t.endNativeWait() // makes it wait for the baton instead
		}
	}
	return nil
}

// Unregister removes a session that was added by Register.
func (s *Scheduler) Unregister(st Stepper) {
	s.lock()
	defer s.mu.Unlock()
	if st == nil {
		s.real--
		return
	}
	for i, x := range s.steppers {
		if x == st {
			s.steppers = append(s.steppers[:i], s.steppers[i+1:]...)
			break
		}
	}
	if !s.virtual() {
		s.isVirtual.Store(false)
		for _, t := range s.tasks {
			s.grant(t, nil)
		}
	}
}

// NewTask returns a new task, which runs after Start.
func (s *Scheduler) NewTask(name string) (*Task, error) {
	w, err := native.NewWaiter()
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", name, err)
	}
	s.lock()
	defer s.mu.Unlock()
	s.lastID++
	return newTask(s, s.lastID, name, w), nil
}

// admit adds a starting task. It returns true on the virtual clock, where the task must wait for the baton first.
func (s *Scheduler) admit(t *Task) (waits bool) {
	s.lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
	for i := len(s.tasks) - 1; i > 0 && s.tasks[i-1].id > t.id; i-- {
		s.tasks[i-1], s.tasks[i] = s.tasks[i], s.tasks[i-1]
	}
	// A native wait blocks its thread: with fewer processors than waits, Go would first have to detect each.
	if want := len(s.tasks) + 4; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
	if !s.virtual() {
		s.running++
		return false
	}
	t.until, t.waiting = s.now, true
	s.dispatch()
	return true
}

// dismiss removes a task that has ended.
func (s *Scheduler) dismiss(t *Task) {
	s.lock()
	defer s.mu.Unlock()
	for i, x := range s.tasks {
		if x == t {
			s.tasks = append(s.tasks[:i], s.tasks[i+1:]...)
			break
		}
	}
	s.ended = append(s.ended, t)
	s.running--
	s.dispatch()
}

// Close frees the waiters of ended tasks. All sessions must be closed before.
func (s *Scheduler) Close() {
	s.lock()
	defer s.mu.Unlock()
	for _, t := range s.ended {
		t.freeWaiter()
	}
	s.ended = nil
}

// StopAll requests every task to end: its Wait returns a Stop item.
func (s *Scheduler) StopAll(reason string) {
	for _, t := range s.Tasks() {
		t.Stop(reason)
	}
}

// CancelAll cancels every task's context and ends its wait.
func (s *Scheduler) CancelAll(cause error) {
	for _, t := range s.Tasks() {
		t.Cancel(cause)
	}
}

// JoinAll waits at most grace for all tasks to end. Tasks that have not ended by then are returned as abandoned: their resources stay allocated, and
// later calls do not wait for them.
func (s *Scheduler) JoinAll(grace time.Duration) (abandoned []*Task) {
	late := time.NewTimer(grace)
	defer late.Stop()
	for _, t := range s.Tasks() {
		select {
		case <-t.done:
			continue
		default:
		}
		select {
		case <-t.done:
		case <-late.C:
			late.Reset(0)
			t.abandoned.Store(true)
			abandoned = append(abandoned, t)
		}
	}
	return abandoned
}

// VirtualStart returns the time at which a new session on the virtual clock starts: the current time, or VirtualEpoch if there is no session.
func (s *Scheduler) VirtualStart() int64 {
	s.lock()
	defer s.mu.Unlock()
	if s.virtual() {
		return s.now
	}
	return VirtualEpoch
}
