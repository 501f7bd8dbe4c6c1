package session

import "github.com/daqiri/daqiri-run/runtime/task"

// Stages exist until the session ends, while connections may be short: all connections of a queue with the same task and options share one stage, and
// each has its own pipe to it.

// connTapKey identifies connections that share a tap.
type connTapKey struct {
	queue *Queue
	task  *task.Task
	opts  TapOptions
}

// connTaps is the shared stage and the tap of each connection. Its maps belong to the task.
type connTaps struct {
	shared *Tap
	taps   map[uint32]*Tap
	to     map[uint32]any
	pipes  map[uint32]*Pipe
}

// Route implements task.Router by the tap of the connection.
func (c *connTaps) Route(conn uint32) (to, source any, ok bool) {
	tap, ok := c.taps[conn]
	return c.to[conn], tap, ok
}

var _ task.Router = (*connTaps)(nil)

// Tap delivers the bursts of this connection, and of no other, to t. They go to no other pipe of the queue. It must be called on t's goroutine.
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

// Forget removes an ended connection from the taps of task t after its Disconnect item: bursts already queued are still delivered. It must be called
// on t's goroutine.
func (c *Conn) Forget(t *task.Task) {
	_ = c.Close() // fails if already closed
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
