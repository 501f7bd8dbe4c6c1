package session

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/daqiri/daqiri-run/native"
)

// Policy is what a consumer that is behind does to the stream.
type Policy = native.Policy

// Policies.
const (
	Drop Policy = native.PolicyDrop // it loses packets of its own, counted
	Wait Policy = native.PolicyWait // it holds the queue
)

// ParsePolicy reads "drop" or "wait".
func ParsePolicy(text string) (Policy, error) {
	switch text {
	case "drop":
		return Drop, nil
	case "wait":
		return Wait, nil
	}
	return Drop, fmt.Errorf("policy %q: it is \"drop\" or \"wait\"", text)
}

// Kinds of stage, beside those of writers of files (Format).
const (
	KindFilter  = "filter"
	KindCount   = "count"
	KindSample  = "sample"
	KindForward = "forward"
	KindTap     = "tap"
	KindS3      = "s3"
)

// Stage is native work on bursts, in any number of pipes of its session.
type Stage struct {
	s         *Session
	name      string
	kind      string
	native    native.Stage
	layer     string         // of the queues that it can serve; empty: any
	out       *Queue         // of a reorder stage: where its aggregates come from
	region    string         // of what a reorder or convert stage makes; empty: it makes nothing
	loops     bool           // of a rewrite: it looks at loops of captures
	timeoutNS int64          // of a reorder stage's batches; 0: none
	writer    *WriterOptions // of a writer of files; nil
	manifest  string         // path of a writer's manifest; empty: none
	s3        *uploader      // of a writer of objects; nil
	uses      KernelOptions  // of a kernel stage: kept as long as the stage
}

// Name is the stage's name, unique in its session: that of its ledger line.
func (st *Stage) Name() string { return st.name }

// Kind is one of the kinds of stage.
func (st *Stage) Kind() string { return st.kind }

// stage makes a stage under a name, which is made up when it is empty.
func (s *Session) stage(name, kind, layer string, add func(name string) (native.Stage, error)) (*Stage, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if name == "" {
		name = s.freeName(kind)
	} else if s.nameTaken(name) {
		return nil, invalid("stage %s: the name is taken in this session", name)
	}
	n, err := add(name)
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", name, err)
	}
	st := &Stage{s: s, name: name, kind: kind, native: n, layer: layer}
	s.stages = append(s.stages, st)
	return st, nil
}

// nameTaken reports whether a name is that of a stage, of an interface, or of ledger lines.
func (s *Session) nameTaken(name string) bool {
	return name == "process" || name == "session" ||
		slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.name == name }) ||
		slices.ContainsFunc(s.ifaces, func(i *Interface) bool { return i.Name() == name })
}

// madeUp is freeName for callers that don't hold the lock.
func (s *Session) madeUp(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freeName(kind)
}

// freeName makes up a name: "filter1".
func (s *Session) freeName(kind string) string {
	for {
		s.unnamed[kind]++
		if name := kind + strconv.Itoa(s.unnamed[kind]); !s.nameTaken(name) {
			return name
		}
	}
}

// Count makes a stage that counts what passes.
func (s *Session) Count(name string) (*Stage, error) {
	return s.stage(name, KindCount, "", func(n string) (native.Stage, error) { return s.native.AddCount(n) })
}

// Sample makes a stage that passes one burst of every.
func (s *Session) Sample(name string, every int) (*Stage, error) {
	if every < 1 {
		return nil, invalid("sample: one of %d bursts: it must be 1 or more", every)
	}
	return s.stage(name, KindSample, "", func(n string) (native.Stage, error) { return s.native.AddSample(n, every) })
}

// Forward makes a stage that sends what comes on a transmit queue.
func (s *Session) Forward(name string, tx *Queue, policy Policy) (*Stage, error) {
	if tx.rx || tx.i.s != s {
		return nil, invalid("forward: %s is not a transmit queue of this session", tx.Name())
	}
	return s.stage(name, KindForward, tx.Layer(), func(n string) (native.Stage, error) {
		return s.native.AddForward(n, tx.native, policy)
	})
}
