package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Session is one open configuration.
type Session struct {
	cfg         *spec.Config
	env         Env
	startNS     int64
	startRSS    uint64
	notes       []string
	metrics     stats.Metrics
	thresholds  stats.Thresholds
	stop        atomic.Pointer[string]
	closed      atomic.Bool  // its bursts must not be touched any more
	movedNS     atomic.Int64 // when packets began to move, 0: not yet
	handled     sync.Map     // *stats.Recorder of the calls of a handler, by the tap's name
	stores      sync.Map     // names of writers of objects
	sourceTexts sync.Map     // by the name of a reorder stage: func(uint64) string, how its sources are written
	quiescedNS  atomic.Int64 // when receiving had ended and the last packet had left

	mu                   sync.Mutex // control calls
	state                state
	ifaces               []*Interface
	regions              []*Region
	stages               []*Stage
	pipes                []*Pipe
	taps                 []*Tap
	connTaps             map[connTapKey]*connTaps
	queues               sync.Map                  // native.Queue → *Queue; stages add theirs while packets flow
	moved                bool                      // the start has succeeded
	claims               map[string]claim          // of writers' names, by folder and prefix, while the session runs
	unnamed              map[string]int            // stages without names so far, by kind
	users                []*task.Task              // tasks that may touch native memory
	callOff              func()                    // what the owner was to do at its end, when it is a user
	pinned               []int                     // cores, while workers run
	launchers            map[*kernel.Launcher]bool // that may have held bursts of the session
	persistents          []*Persistent
	devices              atomic.Bool // a GPU reaches its memory, or a kernel works on it
	leaked               uint64
	lastFlow, lastTxFlow uint32 // ids

	alive  sync.RWMutex // held for writing while native goes
	native *native.Session
	last   *stats.Ledger // the final one, when native has gone
	lastNS int64         // what its clock showed then
}

type state int

const (
	opened state = iota
	started
	stopped
	finished
	ended
)

// enter begins a control call: it refuses those after Close.
func (s *Session) enter() error {
	s.mu.Lock()
	if s.state == ended {
		s.mu.Unlock()
		return ErrClosed
	}
	return nil
}

func (s *Session) leave() { s.mu.Unlock() }

// Config is the configuration that was opened.
func (s *Session) Config() *spec.Config { return s.cfg }

// Virtual reports whether the session runs on the virtual clock.
func (s *Session) Virtual() bool { return s.cfg.Loopback.Clock == "virtual" }

// Metrics are the figures that scripts set. Any goroutine.
func (s *Session) Metrics() *stats.Metrics { return &s.metrics }

// Thresholds are the conditions that scripts set. Any goroutine.
func (s *Session) Thresholds() *stats.Thresholds { return &s.thresholds }

// StartTime is when the session was opened, ns since the epoch. Any goroutine.
func (s *Session) StartTime() int64 { return s.startNS }

// Now is the session's clock, ns since the epoch. Any goroutine.
func (s *Session) Now() int64 {
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.native == nil {
		return s.lastNS
	}
	return s.native.Now()
}

// Report says line by line what is hardware, software or copy, and why.
func (s *Session) Report() []string {
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	notes := slices.Concat(s.notes, s.native.Report())
	if s.state != opened {
		notes = append(notes, s.warnings()...)
	}
	return notes
}

// Interfaces lists the interfaces in the order of the configuration.
func (s *Session) Interfaces() []*Interface { return slices.Clone(s.ifaces) }

// Interface finds an interface by name.
func (s *Session) Interface(name string) (*Interface, error) {
	return named(s.ifaces, "interface", name, (*Interface).Name)
}

// Regions lists the memory regions in the order of the configuration.
func (s *Session) Regions() []*Region { return slices.Clone(s.regions) }

// Region finds a memory region by name.
func (s *Session) Region(name string) (*Region, error) {
	return named(s.regions, "memory region", name, (*Region).Name)
}

// Stages lists the stages in the order in which they were made.
func (s *Session) Stages() []*Stage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stages)
}

// Stage finds a stage by name.
func (s *Session) Stage(name string) (*Stage, error) {
	return named(s.Stages(), "stage", name, (*Stage).Name)
}

// RxQueues lists the receive queues of an interface.
func (s *Session) RxQueues(iface string) ([]*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return i.RxQueues(), nil
}

// RxQueue finds a receive queue by its name, or by its id in digits.
func (s *Session) RxQueue(iface, sel string) (*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return pick(i.rx, "interface "+iface+": receive queue", sel)
}

// TxQueue finds a transmit queue by its name, or by its id in digits.
func (s *Session) TxQueue(iface, sel string) (*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return pick(i.tx, "interface "+iface+": transmit queue", sel)
}

func pick(list []*Queue, what, sel string) (*Queue, error) {
	if id, err := strconv.Atoi(sel); err == nil && !slices.ContainsFunc(list, func(q *Queue) bool { return q.Name() == sel }) {
		for _, q := range list {
			if q.ID() == id {
				return q, nil
			}
		}
	}
	return named(list, what, sel, (*Queue).Name)
}

// mostNames is how many names an error lists.
const mostNames = 8

// named finds an object by name; the error suggests another, or says which there are.
func named[T any](list []*T, what, name string, nameOf func(*T) string) (*T, error) {
	known := make([]string, len(list))
	for i, x := range list {
		if known[i] = nameOf(x); known[i] == name {
			return x, nil
		}
	}
	if s := suggest.Nearest(name, known); s != "" {
		return nil, fmt.Errorf("%s %q: not in this session; did you mean %q?", what, name, s)
	}
	there := "none"
	if n := min(len(known), mostNames); n > 0 {
		if there = strings.Join(known[:n], ", "); n < len(known) {
			there += ", …"
		}
	}
	return nil, fmt.Errorf("%s %q: not in this session; there is %s", what, name, there)
}

// Region is a memory region of a session.
type Region struct {
	s      *Session
	spec   *spec.MemoryRegion
	native native.Region
}

// RegionInfo is what became of a region.
type RegionInfo = native.RegionInfo

// Name is the region's name in the configuration.
func (r *Region) Name() string { return r.spec.Name }

// Kind is the kind of memory that was asked for.
func (r *Region) Kind() string { return r.spec.Kind }

// Info reads the region's figures.
func (r *Region) Info() (RegionInfo, error) {
	if err := r.s.enter(); err != nil {
		return RegionInfo{}, err
	}
	defer r.s.leave()
	return r.native.Info(), nil
}
