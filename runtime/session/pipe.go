package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Pipe sends the bursts of its sources through its stages in order.
type Pipe struct {
	s       *Session
	sources []*Queue
	stages  []*Stage
	conn    uint32
	native  []native.Pipe // one a source
}

// Pipe joins sources and stages: every burst of each source goes through the stages in
// order. A second pipe on a source is a tee. Packets flow as soon as it exists.
func (s *Session) Pipe(sources []*Queue, stages ...*Stage) (*Pipe, error) {
	return s.pipe(sources, stages, 0)
}

func (s *Session) pipe(sources []*Queue, stages []*Stage, conn uint32) (*Pipe, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if len(sources) == 0 || len(stages) == 0 {
		return nil, invalid("pipe: it needs a source and a stage")
	}
	for _, q := range sources {
		if err := q.feeds(s, stages); err != nil {
			return nil, fmt.Errorf("pipe: %w", err)
		}
	}
	p := &Pipe{s: s, sources: slices.Clone(sources), stages: slices.Clone(stages), conn: conn}
	if err := p.add(); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	s.pipes = append(s.pipes, p)
	p.adoptSources()
	return p, nil
}

// feeds checks that the stages can work on what the queue holds.
func (q *Queue) feeds(s *Session, stages []*Stage) error {
	if !q.rx || q.i.s != s {
		return invalid("%s: it is not a receive queue of this session", q.title())
	}
	for _, st := range stages {
		if st.s != s {
			return invalid("stage %s: it belongs to another session", st.name)
		}
		if st.layer != "" && st.layer != q.Layer() {
			return invalid("stage %s (%s) works on %ss, and %s holds %ss",
				st.name, st.kind, st.layer, q.title(), q.Layer())
		}
	}
	return nil
}

// add gives the pipe to the engine: all sources or none.
func (p *Pipe) add() error {
	stages := make([]native.Stage, len(p.stages))
	for i, st := range p.stages {
		stages[i] = st.native
	}
	for _, q := range p.sources {
		q.hold()
		n, err := q.native.AddPipe(stages, p.conn)
		q.release()
		if err != nil {
			p.take()
			return err
		}
		p.native = append(p.native, n)
	}
	return nil
}

// take takes the pipe from the engine.
func (p *Pipe) take() {
	for i, n := range p.native {
		p.sources[i].hold()
		n.Remove()
		p.sources[i].release()
	}
	p.native = nil
}

// hold keeps the task of a direct queue out of its wait; the engine does so with workers.
func (q *Queue) hold() {
	if q.owner != nil {
		q.owner.Hold()
	}
}

func (q *Queue) release() {
	if q.owner != nil {
		q.owner.Release()
	}
}

// adoptSources gives direct queues that nobody polls to the task of the pipe's tap.
func (p *Pipe) adoptSources() {
	for _, t := range p.s.taps {
		if !slices.Contains(p.stages, t.Stage) {
			continue
		}
		for _, q := range p.sources {
			if q.owner == nil {
				_ = q.adopt(t.task) // without it the queue waits for Start, which reports
			}
		}
		return
	}
}

// Remove ends the pipe; what its stages hold is dealt with. A second call does nothing.
func (p *Pipe) Remove() {
	if p.s.enter() != nil {
		return
	}
	defer p.s.leave()
	p.remove()
}

func (p *Pipe) remove() {
	p.take()
	p.s.pipes = slices.DeleteFunc(p.s.pipes, func(x *Pipe) bool { return x == p })
}

// without rebuilds the pipe without a stage; without the last one it ends.
func (p *Pipe) without(st *Stage) {
	p.take()
	p.stages = slices.DeleteFunc(p.stages, func(x *Stage) bool { return x == st })
	if len(p.stages) == 0 || p.add() != nil {
		p.remove()
	}
}

// String tells the pipe: "rx0 → filter1 → disk".
func (p *Pipe) String() string {
	var names []string
	for _, q := range p.sources {
		names = append(names, q.Name())
	}
	text := strings.Join(names, ", ")
	for _, st := range p.stages {
		text += " → " + st.name
	}
	return text
}
