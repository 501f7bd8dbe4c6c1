package memory

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// MaxString is the length of the longest string that a script can make, in bytes.
const MaxString = 1 << 30

// asks is how many bytes a task may take between two looks at the limit, beside those of the monitor, which may be late on a busy machine.
const asks = 1 << 20

// Error says that Lua would hold more than Limit allows.
type Error struct{ Wanted uint64 }

// Error names the limit, and what it comes from.
func (e *Error) Error() string {
	n, why := Limit()
	if e.Wanted > 0 {
		return fmt.Sprintf("not enough memory: %s more would be above the limit of %s (%s)", Size(e.Wanted), Size(n), why)
	}
	return fmt.Sprintf("not enough memory: more than the limit of %s (%s)", Size(n), why)
}

// Size shows a number of bytes for people.
func Size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Guard is the context of a Lua state. It ends with the task's, and for a moment while there is too little memory.
type Guard struct {
	context.Context
	done <-chan struct{} // the task's
	m    *member
}

// closed is what Done returns to raise an error.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// New makes the guard of a task, on its own thread. It is watched until Release.
func New(ctx context.Context) *Guard { return &Guard{ctx, ctx.Done(), enter()} }

// Under is a guard of the same task below another context.
func (g *Guard) Under(ctx context.Context) *Guard { return &Guard{ctx, ctx.Done(), g.m} }

// Release ends the watch.
func (g *Guard) Release() { g.m.leave() }

// Inner is the context without the guard.
func (g *Guard) Inner() context.Context { return g.Context }

// Done is closed when the task ends, and while memory is short.
func (g *Guard) Done() <-chan struct{} {
	if g.m.over.Load() && g.m.short() {
		return closed
	}
	return g.done
}

// Err is why Done is closed. Asking is what ends a shortage, but for one that is far above the limit. It is asked for every burst
// that a handler gets, and reading the amount takes Go a third of a microsecond.
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

// Reserve asks for so many bytes, which the caller is about to take at once. Only on the task's thread.
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

// member is a task in the monitor's list.
type member struct {
	over atomic.Bool // it is to raise an error
	tid  int         // its thread
	cpu  int64       // ns that this had taken when the monitor last looked

	unasked uint64 // bytes that were reserved since the limit was last looked at
}

// short says whether memory is short still, on the task's thread.
func (m *member) short() bool {
	most, _ := Limit()
	if used() > most {
		runtime.GC() // what an error that was caught had made may be garbage by now
	}
	if used() > most {
		return true
	}
	m.over.Store(false)
	return false
}
