package memory

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// MaxString is the maximum length of a string created by a script, in bytes.
const MaxString = 1 << 30

// asks is how many bytes a task may reserve between two checks of the limit. The monitor checks as well, but may be late on a busy machine.
const asks = 1 << 20

// Error reports that Lua would exceed Limit.
type Error struct{ Wanted uint64 }

// Error returns a message with the limit and its origin.
func (e *Error) Error() string {
	n, why := Limit()
	if e.Wanted > 0 {
		return fmt.Sprintf("not enough memory: %s more would be above the limit of %s (%s)", Size(e.Wanted), Size(n), why)
	}
	return fmt.Sprintf("not enough memory: more than the limit of %s (%s)", Size(n), why)
}

// Size formats a number of bytes with a unit.
func Size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Guard is the context of a Lua state. It is done when the task's context is, and temporarily while memory is short.
type Guard struct {
	context.Context
	done <-chan struct{} // done channel of the task's context
	m    *member
}

// closed is the channel that Done returns to raise an error.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// New returns the guard of a task and registers it with the monitor until Release. It must be called on the task's thread.
func New(ctx context.Context) *Guard { return &Guard{ctx, ctx.Done(), enter()} }

// Under returns a guard of the same task with another context.
func (g *Guard) Under(ctx context.Context) *Guard { return &Guard{ctx, ctx.Done(), g.m} }

// Release unregisters the task from the monitor.
func (g *Guard) Release() { g.m.leave() }

// Inner returns the wrapped context.
func (g *Guard) Inner() context.Context { return g.Context }

// Done returns a channel that is closed when the task ends or while memory is short.
func (g *Guard) Done() <-chan struct{} {
	if g.m.over.Load() && g.m.short() {
		return closed
	}
	return g.done
}

// Err returns why Done is closed. It also clears the shortage, unless usage exceeds the hard limit. It is called for every burst passed to a handler,
// so it reads the usage, which takes Go a third of a microsecond, only during a shortage.
func (g *Guard) Err() error {
	if err := g.Context.Err(); err != nil {
		return err
	}
	if !g.m.over.Load() {
		return nil
	}
	g.m.over.Store(used() > hard())
	return &Error{}
}

// Reserve checks that the caller may allocate n bytes. It must be called on the task's thread.
func (g *Guard) Reserve(n uint64) error {
	if g.m.unasked += n; g.m.unasked < asks {
		return nil
	}
	g.m.unasked = 0
	most, _ := Limit()
	if n > most {
		return &Error{n}
	}
	if used()+n <= most {
		return nil
	}
	runtime.GC()
	if used()+n <= most {
		return nil
	}
	return &Error{n}
}

// member is a registered task.
type member struct {
	over atomic.Bool // the task must raise an error
	tid  int         // thread id
	cpu  int64       // CPU time at the monitor's last check, in ns

	unasked uint64 // bytes reserved since the last check of the limit
}

// short reports whether memory is still short, after a garbage collection. It must be called on the task's thread.
func (m *member) short() bool {
	most, _ := Limit()
	if used() > most {
		runtime.GC() // memory of a caught error may be garbage by now
	}
	if used() > most {
		return true
	}
	m.over.Store(false)
	return false
}
