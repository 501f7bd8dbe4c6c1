package task

import "sync"

// gate allows other goroutines to keep a task out of its native wait.
type gate struct {
	mu     sync.Mutex
	moved  sync.Cond
	inside bool
	holds  int
}

// Hold keeps the task out of its native wait until Release: the task is not in it when Hold returns, but otherwise continues. Calls nest. It may be
// called from any goroutine and blocks briefly.
func (t *Task) Hold() {
	g := &t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds++
	for g.inside {
		t.waiter.Wake()
		g.moved.Wait()
	}
}

// Release reverts a Hold.
func (t *Task) Release() {
	t.gate.mu.Lock()
	t.gate.holds--
	t.gate.mu.Unlock()
	t.gate.moved.Broadcast()
}

func (g *gate) enter() {
	g.mu.Lock()
	for g.holds > 0 {
		g.moved.Wait()
	}
	g.inside = true
	g.mu.Unlock()
}

func (g *gate) leave() {
	g.mu.Lock()
	g.inside = false
	wanted := g.holds > 0
	g.mu.Unlock()
	if wanted {
		g.moved.Broadcast()
	}
}
