package session

import "github.com/daqiri/daqiri-run/runtime/task"

// Connections come and go, stages stay until the session ends: so all connections of a queue
// that one task taps in the same way share one stage, each with a pipe of its own to it.

// connTapKey says which connections share a tap.
type connTapKey struct {
	queue *Queue
	task  *task.Task
	opts  TapOptions
}

// connTaps is the shared stage, and who taps which connection through it. Its maps belong to
// the task.
type connTaps struct {
	shared *Tap
	taps   map[uint32]*Tap
	to     map[uint32]any
	pipes  map[uint32]*Pipe
}

// Route finds who tapped a connection.
func (c *connTaps) Route(conn uint32) (to, source any, ok bool) {
	tap, ok := c.taps[conn]
	return c.to[conn], tap, ok
}

var _ task.Router = (*connTaps)(nil)

// Tap gives t the bursts of this connection, and of no other: they go to no other pipe of
// the queue. t's goroutine.
func (c *Conn) Tap(t *task.Task, target any, o TapOptions) (*Tap, error) {
	q, err := c.RxQueue()
	if err != nil {
		return nil, err
	}
	shared, err := c.i.s.connTap(connTapKey{q, t, o})
	if err != nil {
		return nil, err
	}
	tap := &Tap{Stage: shared.shared.Stage, task: t}
	shared.taps[c.id], shared.to[c.id] = tap, target
	pipe, err := c.i.s.pipe([]*Queue{q}, []*Stage{tap.Stage}, c.id)
	if err != nil {
		delete(shared.taps, c.id)
		delete(shared.to, c.id)
		return nil, err
	}
	shared.pipes[c.id] = pipe
	return tap, nil
}

func (s *Session) connTap(key connTapKey) (*connTaps, error) {
	s.mu.Lock()
	shared := s.connTaps[key]
	s.mu.Unlock()
	if shared != nil {
		return shared, nil
	}
	shared = &connTaps{taps: map[uint32]*Tap{}, to: map[uint32]any{}, pipes: map[uint32]*Pipe{}}
	o := key.opts
	o.Name = "connections"
	var err error
	if shared.shared, err = s.Tap("", key.task, shared, o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connTaps == nil {
		s.connTaps = map[connTapKey]*connTaps{}
	}
	s.connTaps[key] = shared
	return shared, nil
}

// Forget takes a connection that has ended out of the taps of task t, who has heard of its end: what is
// queued for it still goes, and nothing more is waited for. t's goroutine.
func (c *Conn) Forget(t *task.Task) {
	_ = c.Close() // an error says that it is over already
	for _, shared := range c.i.s.connTapsOf(t) {
		if p := shared.pipes[c.id]; p != nil {
			p.Remove()
			delete(shared.pipes, c.id)
			delete(shared.taps, c.id)
			delete(shared.to, c.id)
		}
	}
}

func (s *Session) connTapsOf(t *task.Task) (list []*connTaps) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, shared := range s.connTaps {
		if key.task == t {
			list = append(list, shared)
		}
	}
	return list
}
