package session

import (
	"github.com/daqiri/daqiri-run/runtime/session/output"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Env is the environment of a session in the process.
type Env struct {
	Scheduler *task.Scheduler
	Owner     *task.Task // opens and closes the session; nil: no task
	Cores     preflight.Cores
	Program   Program            // for manifests
	Bindings  map[string]Binding // memory of the application, by region
}

// Program identifies the program that created the files of a session.
type Program struct {
	Version string
	Script  string // path; empty: none
	Text    string // content of a script without a file
}

// Open opens a configuration: memory is allocated and sockets are bound, but no packets move until Start. All reasons that prevent opening are
// returned together as an *OpenError; an engine's error is returned alone, with its position. It may resolve host names, so it blocks.
func Open(cfg *spec.Config, env Env) (*Session, error) {
	faults := preflight.Check(cfg)
	s := newSession(cfg, env)
	if !s.Virtual() {
		var more []spec.Issue
		s.cores, more = preflight.PlanCores(cfg, env.Cores, env.Scheduler.CPUs())
		faults = append(faults, more...)
		s.notes, s.pinned = s.cores.Notes, s.cores.Pinned()
	}
	if len(faults) > 0 {
		return nil, &preflight.OpenError{Errors: spec.Errors{Issues: faults}}
	}
	if err := checkBindings(cfg, env.Bindings); err != nil {
		return nil, err
	}
	if err := s.build(s.cores); err != nil {
		s.native.Close()
		return nil, err
	}
	if err := env.Scheduler.Register(s.stepper()); err != nil {
		s.native.Close()
		return nil, cfg.Key("loopback").Wrap(err)
	}
	s.startNS = s.native.StartTime()
	s.startRSS = stats.ReadProcess(0).RSS
	return s, nil
}

func newSession(cfg *spec.Config, env Env) *Session {
	s := &Session{
		cfg:     cfg,
		env:     env,
		unnamed: map[string]int{},
		claims:  map[string]output.Claim{},
	}
	s.devices.Store(preflight.UsesGPU(cfg) || len(env.Bindings) > 0)
	return s
}

// stepper returns the session for the scheduler, or nil on the real clock.
func (s *Session) stepper() task.Stepper {
	if s.Virtual() {
		return stepper{s}
	}
	return nil
}
