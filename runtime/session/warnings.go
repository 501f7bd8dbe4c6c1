package session

import (
	"fmt"
	"slices"
	"time"
)

// Warnings describes probable mistakes: unused memory regions, aggregates without a consumer, and batch timeouts that expire before packets are
// delivered.
func (s *Session) Warnings() []string {
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	return s.warnings()
}

func (s *Session) warnings() (found []string) {
	for _, r := range s.cfg.Unused() {
		if !slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.region == r.Name }) &&
			!slices.ContainsFunc(s.persistents, func(p *Persistent) bool { return slices.Contains(p.regions, r.Name) }) {
			found = append(found, r.Error()+", and by no stage of the script")
		}
	}
	for _, st := range s.stages {
		sources := s.sourcesOf(st)
		if st.share != nil && len(sources) > 0 {
			if text := st.tooFew(sources[0]); text != "" {
				found = append(found, text)
			}
		}
		if st.out == nil {
			continue
		}
		taken := slices.ContainsFunc(s.pipes, func(p *Pipe) bool { return slices.Contains(p.sources, st.out) })
		if len(sources) > 0 && !taken && st.kind != KindKernel { // a kernel stage has processed them; its output is freed
			found = append(found, fmt.Sprintf("%s %s: its aggregates have no consumer and will be dropped (no_consumer): "+
				"hint: put something behind it in the pipe, or use on_burst or get_burst", st.kind, st.name))
		}
		for _, q := range sources {
			if text := st.tooShort(q); text != "" {
				found = append(found, text)
			}
		}
	}
	return found
}

// sourcesOf returns the queues whose packets a stage receives through pipes.
func (s *Session) sourcesOf(st *Stage) (sources []*Queue) {
	for _, p := range s.pipes {
		if slices.Contains(p.stages, st) {
			sources = append(sources, p.sources...)
		}
	}
	return sources
}

// tooShort returns a warning if a batch's timeout, which starts when its first packets reach the stage, is shorter than the time that a queue may
// delay packets.
func (st *Stage) tooShort(q *Queue) string {
	limit, hold := time.Duration(st.timeoutNS), time.Duration(q.spec.TimeoutUS)*time.Microsecond
	switch {
	case limit == 0 || q.Direct() || q.BatchSize() == 1:
		return ""
	case hold > limit:
		return fmt.Sprintf("reorder %s: its timeout_us is %d, that of %s %d: late packets of a batch may still be held by the queue when its time "+
			"is up: hint: a shorter timeout_us of the queue, or a longer one of the stage", st.name, limit.Microseconds(), q.title(), hold.Microseconds())
	case hold == 0 && q.Layer() == LayerFrame:
		return fmt.Sprintf("reorder %s: %s has timeout_us 0: it delivers full bursts of %d packets only, and a batch's time may be up before: "+
			"hint: a timeout_us of the queue, shorter than the stage's %d", st.name, q.title(), q.BatchSize(), limit.Microseconds())
	}
	return ""
}
