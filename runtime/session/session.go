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
	"github.com/daqiri/daqiri-run/runtime/session/output"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
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
	closed      atomic.Bool  // bursts must not be accessed any more
	movedNS     atomic.Int64 // time at which packets began to move, 0: not yet
	handled     sync.Map     // *stats.Recorder of handler call times, by tap name
	stores      sync.Map     // names of object writers
	sourceTexts sync.Map     // formatters of sources, func(uint64) string, by name of the reorder stage
	deleting    atomic.Bool  // there are deletions
	quiescedNS  atomic.Int64 // time at which receiving had ended and the last packet had left

	mu                   sync.Mutex // serializes control calls
	state                state
	ifaces               []*Interface
	regions              []*Region
	stages               []*Stage
	pipes                []*Pipe
	taps                 []*Tap
	connTaps             map[connTapKey]*connTaps
	queues               sync.Map                  // native.Queue -> *Queue; stages add theirs while packets flow
	moved                bool                      // Start has succeeded
	claims               map[string]output.Claim   // claims of writers' names, by folder and prefix, while the session runs
	unnamed              map[string]int            // number of unnamed stages so far, by kind
	users                []*task.Task              // tasks that may access native memory
	callOff              func()                    // removes the owner's exit function, if it is a user
	pinned               []int                     // cores pinned while workers run
	cores                preflight.CorePlan        // zero on the virtual clock
	launchers            map[*kernel.Launcher]bool // launchers that may have referenced bursts of the session
	persistents          []*Persistent
	devices              atomic.Bool // a GPU accesses its memory, or a kernel uses it
	leaked               uint64
	lastFlow, lastTxFlow uint32     // ids
	deletions            []deletion // not complete yet

	lists sync.RWMutex // locked by change, with mu: the lists of regions and of interfaces' queues

	alive  sync.RWMutex // write-locked while native is freed
	native *native.Session
	last   *stats.Ledger // final ledger, after native is freed
	lastNS int64         // final time of its clock
}

type state int

const (
	opened state = iota
	started
	stopped
	finished
	ended
)

// enter starts a control call. It returns ErrClosed after Close.
func (s *Session) enter() error {
	s.mu.Lock()
	if s.state == ended {
		s.mu.Unlock()
		return ErrClosed
	}
	return nil
}

func (s *Session) leave() { s.mu.Unlock() }

// Config returns the configuration of the session.
func (s *Session) Config() *spec.Config { return s.cfg }

// Virtual reports whether the session runs on the virtual clock.
func (s *Session) Virtual() bool { return s.cfg.Loopback.Clock == "virtual" }

// Metrics returns the figures set by scripts. It may be called from any goroutine.
func (s *Session) Metrics() *stats.Metrics { return &s.metrics }

// Thresholds returns the conditions set by scripts. It may be called from any goroutine.
func (s *Session) Thresholds() *stats.Thresholds { return &s.thresholds }

// StartTime returns when the session was opened, ns since the epoch. It may be called from any goroutine.
func (s *Session) StartTime() int64 { return s.startNS }

// Now returns the time of the session's clock, ns since the epoch. It may be called from any goroutine.
func (s *Session) Now() int64 {
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.native == nil {
		return s.lastNS
	}
	return s.native.Now()
}

// Report returns lines that describe what is done by hardware, by software or by copying, and why.
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

// Interfaces returns the interfaces in the order of the configuration.
func (s *Session) Interfaces() []*Interface { return slices.Clone(s.ifaces) }

// Interface returns an interface by name.
func (s *Session) Interface(name string) (*Interface, error) {
	return named(s.ifaces, "interface", name, (*Interface).Name)
}

// Regions returns the memory regions in the order of the configuration.
func (s *Session) Regions() []*Region {
	s.lists.RLock()
	defer s.lists.RUnlock()
	return slices.Clone(s.regions)
}

// Region returns a memory region by name.
func (s *Session) Region(name string) (*Region, error) {
	return named(s.Regions(), "memory region", name, (*Region).Name)
}

// Stages returns the stages in the order of their creation.
func (s *Session) Stages() []*Stage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stages)
}

// Stage returns a stage by name.
func (s *Session) Stage(name string) (*Stage, error) {
	return named(s.Stages(), "stage", name, (*Stage).Name)
}

// RxQueues returns the receive queues of an interface.
func (s *Session) RxQueues(iface string) ([]*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return i.RxQueues(), nil
}

// RxQueue returns a receive queue by name, or by id in digits.
func (s *Session) RxQueue(iface, sel string) (*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return pick(i.RxQueues(), "interface "+iface+": receive queue", sel)
}

// TxQueue returns a transmit queue by name, or by id in digits.
func (s *Session) TxQueue(iface, sel string) (*Queue, error) {
	i, err := s.Interface(iface)
	if err != nil {
		return nil, err
	}
	return pick(i.TxQueues(), "interface "+iface+": transmit queue", sel)
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

// mostNames is the maximum number of names listed in an error.
const mostNames = 8

// named returns an object by name; the error suggests a similar name or lists the existing ones.
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

// RegionInfo is the state of a region.
type RegionInfo = native.RegionInfo

// Name returns the region's name in the configuration.
func (r *Region) Name() string { return r.spec.Name }

// Kind returns the configured kind of memory.
func (r *Region) Kind() string { return r.spec.Kind }

// Info returns the state of the region.
func (r *Region) Info() (RegionInfo, error) {
	if err := r.s.enter(); err != nil {
		return RegionInfo{}, err
	}
	defer r.s.leave()
	return r.native.Info(), nil
}
