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

// Never is the time that does not come.
const Never = int64(math.MaxInt64)

// VirtualEpoch is where a virtual clock starts: 2020-01-01T00:00:00Z, ns since the epoch.
const VirtualEpoch = int64(1577836800) * int64(time.Second)

// Stepper is a session on the virtual clock.
type Stepper interface {
	Step() int         // polls everything once; objects that made progress
	NextTime() int64   // when something is due next, Never: nothing is
	Advance(now int64) // moves the session's time forward
}

// Scheduler knows the tasks of a process and the clock that they live on. The first session
// decides whether that clock is real or virtual, until no session is left. Safe for
// concurrent use.
type Scheduler struct {
	began time.Time
	epoch int64 // real time at began
	cpus  CPUs  // that the process may use

	isVirtual atomic.Bool  // as virtual(), without the lock
	knocks    atomic.Int32 // callers that want mu, so that a long dispatch lets them in

	mu       sync.Mutex
	tasks    []*Task // started and not ended, by id
	ended    []*Task // whose waiters native stages may still know
	lastID   int
	running  int // of tasks: those that don't wait for the baton
	real     int // sessions on the real clock
	steppers []Stepper
	now      int64 // virtual clock
	pinned   []int // cores of workers, once per pin
}

// NewScheduler makes the process's scheduler, on the real clock.
func NewScheduler() *Scheduler {
	now := time.Now()
	return &Scheduler{began: now, epoch: now.UnixNano(), cpus: threadCPUs(0)}
}

// Now is the clock of the tasks in ns since the epoch.
func (s *Scheduler) Now() int64 {
	if s.isVirtual.Load() {
		s.lock()
		defer s.mu.Unlock()
		return s.now
	}
	return s.epoch + int64(time.Since(s.began))
}

// Clock is Now and, at the same time, CLOCK_MONOTONIC in ns: of some readings, as the core may be lost between the two, the
// quickest.
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

// Tasks lists the tasks that have started and not ended, in order of id.
func (s *Scheduler) Tasks() []*Task {
	s.lock()
	defer s.mu.Unlock()
	return append([]*Task(nil), s.tasks...)
}

// Register makes a session known: with its stepper, or nil on the real clock. Sessions on
// both clocks can't be open at once.
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
			t.endNativeWait() // it goes on to wait for the baton
		}
	}
	return nil
}

// Unregister forgets a session that Register took.
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

// NewTask makes a task; Start lets it run.
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

// admit adds a task that starts; on the virtual clock it waits for the baton first.
func (s *Scheduler) admit(t *Task) (waits bool) {
	s.lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
	for i := len(s.tasks) - 1; i > 0 && s.tasks[i-1].id > t.id; i-- {
		s.tasks[i-1], s.tasks[i] = s.tasks[i], s.tasks[i-1]
	}
	// A native wait holds its thread: with fewer processors than waits, Go would have to notice each.
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

// dismiss takes out a task that has ended.
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

// Close frees what ended tasks left behind. All sessions must have been closed.
func (s *Scheduler) Close() {
	s.lock()
	defer s.mu.Unlock()
	for _, t := range s.ended {
		t.freeWaiter()
	}
	s.ended = nil
}

// StopAll asks every task to end: its Wait returns a Stop item.
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

// JoinAll waits for the tasks to end, for at most grace in all. Those that are not back by
// then are abandoned: what they use stays allocated, and nobody waits for them again.
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

// VirtualStart is the time at which a session on the virtual clock starts: now, or the
// beginning when there is none yet.
func (s *Scheduler) VirtualStart() int64 {
	s.lock()
	defer s.mu.Unlock()
	if s.virtual() {
		return s.now
	}
	return VirtualEpoch
}
