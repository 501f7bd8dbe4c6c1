package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Pipe passes the bursts of its sources through its stages in order.
type Pipe struct {
	s       *Session
	sources []*Queue
	stages  []*Stage
	conn    uint32
	native  []native.Pipe // one per source
	behind  *Pipe         // pipe from the queue of a reorder stage to the following stages
}

// Pipe connects sources and stages: every burst of each source passes the stages in order. A second pipe on a source is a tee. Packets flow as soon
// as the pipe exists.
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
	return s.join(withPlans(sources), stages, conn)
}

// withPlans adds the output queues of configured reorder stages on the sources, whose packets have the same consumers.
func withPlans(sources []*Queue) []*Queue {
	all := slices.Clone(sources)
	for _, q := range sources {
		for _, st := range q.plans {
			if !slices.Contains(all, st.out) {
				all = append(all, st.out)
			}
		}
	}
	return all
}

// join creates a pipe, and a second one for stages that follow a reorder stage.
func (s *Session) join(sources []*Queue, stages []*Stage, conn uint32) (*Pipe, error) {
	var behind *Pipe
	k := slices.IndexFunc(stages, func(st *Stage) bool { return st != nil && st.out != nil })
	if k >= 0 {
		stages[k].adopt(sources[0])
	}
	if k >= 0 && k+1 < len(stages) {
		made := len(s.pipes)
		var err error
		if behind, err = s.joinBehind(stages[k].out, stages[k+1:]); err != nil {
			return nil, err
		}
		p, err := s.joinHere(sources, stages[:k+1], conn)
		if err != nil && len(s.pipes) > made {
			behind.remove()
		} else if err == nil {
			p.behind = behind
		}
		return p, err
	}
	return s.joinHere(sources, stages, conn)
}

// joinBehind creates a pipe from a stage's queue unless it exists: several calls may add sources to a stage.
func (s *Session) joinBehind(out *Queue, stages []*Stage) (*Pipe, error) {
	for _, p := range s.pipes {
		if slices.Equal(p.sources, []*Queue{out}) && slices.Equal(p.all(), stages) {
			return p, nil
		}
	}
	return s.join([]*Queue{out}, stages, 0)
}

// all returns the pipe's stages and those of the pipes behind it.
func (p *Pipe) all() []*Stage {
	if p.behind == nil {
		return p.stages
	}
	return slices.Concat(p.stages, p.behind.all())
}

func (s *Session) joinHere(sources []*Queue, stages []*Stage, conn uint32) (*Pipe, error) {
	for _, q := range sources {
		if err := q.feeds(s, stages); err != nil {
			return nil, fmt.Errorf("pipe: %w", err)
		}
	}
	if err := loopsReach(stages); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	p := &Pipe{s: s, sources: slices.Clone(sources), stages: slices.Clone(stages), conn: conn}
	if err := p.add(); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	s.pipes = append(s.pipes, p)
	p.adoptSources()
	return p, nil
}

// feeds checks that the stages accept the queue's packets.
func (q *Queue) feeds(s *Session, stages []*Stage) error {
	if !q.rx || q.i.s != s {
		return invalid("%s: it is not a receive queue of this session", q.title())
	}
	if q.Deleted() {
		return invalid("%s: it was deleted", q.title())
	}
	for _, st := range stages {
		if st.out != nil && st.out.home != nil {
			return invalid("stage %s: its sources are defined by the configuration", st.name)
		}
		if st.s != s {
			return invalid("stage %s: it belongs to another session", st.name)
		}
		if st.layer != "" && st.layer != q.Layer() {
			return invalid("stage %s (%s) works on %ss, and %s holds %ss",
				st.name, st.kind, st.layer, q.title(), q.Layer())
		}
		if st.share != nil {
			if err := st.lends(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the pipe to the engine, for all sources or none.
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
		q.read.Store(true)
		for _, st := range p.stages {
			if st.out != nil && st.out.leader == nil {
				st.out.leader = q
			}
		}
	}
	return nil
}

// take removes the pipe from the engine.
func (p *Pipe) take() {
	for i, n := range p.native {
		p.sources[i].hold()
		n.Remove()
		p.sources[i].release()
	}
	p.native = nil
}

// hold keeps the task of a direct queue out of its wait; the engine does this for workers.
func (q *Queue) hold() {
	if o := q.server().owner; o != nil {
		o.Hold()
	}
}

func (q *Queue) release() {
	if o := q.server().owner; o != nil {
		o.Release()
	}
}

// adoptSources assigns direct queues without an owner to the task of the pipe's tap.
func (p *Pipe) adoptSources() {
	for _, t := range p.s.taps {
		if !slices.Contains(p.stages, t.Stage) {
			continue
		}
		for _, q := range p.sources {
			if q = q.server(); q.owner == nil {
				_ = q.adopt(t.task) // on error the queue is left to Start, which reports it
			}
		}
		return
	}
}

// Remove removes the pipe after processing the packets in its stages. Further calls have no effect.
func (p *Pipe) Remove() {
	if p.s.enter() != nil {
		return
	}
	defer p.s.leave()
	p.remove()
}

func (p *Pipe) remove() {
	p.take()
	if b := p.behind; b != nil && !slices.ContainsFunc(p.s.pipes, func(x *Pipe) bool { return x != p && x.behind == b }) {
		b.remove()
	}
	p.s.pipes = slices.DeleteFunc(p.s.pipes, func(x *Pipe) bool { return x == p })
}

// without rebuilds the pipe without a stage, or removes it if that was the last one.
func (p *Pipe) without(st *Stage) {
	p.take()
	p.stages = slices.DeleteFunc(p.stages, func(x *Stage) bool { return x == st })
	if len(p.stages) == 0 || p.add() != nil {
		p.remove()
	}
}

// String returns the pipe as text: sources and stages, separated by arrows.
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
