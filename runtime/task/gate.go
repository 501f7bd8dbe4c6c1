package task

import "sync"

// gate lets other goroutines keep a task out of its native wait.
type gate struct {
	mu     sync.Mutex
	moved  sync.Cond
	inside bool
	holds  int
}

// Hold keeps the task out of its native wait until Release: on return it is not in it.
// What the task does otherwise goes on. Pairs nest. Any goroutine; blocks for a moment.
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

// Release ends a Hold.
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
