package session

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Op is work that a task began and that ends later: the writing of a burst. It outlives the burst and the session. Safe for
// concurrent use.
type Op struct {
	native native.Op
	object string // what it is the work of
	unit   string // of its parts; empty: packets
	look   func() // looks whether it has ended, where nobody tells; nil
}

// OpState is what became of it so far: parts, packets mostly, that completed or failed, and the bytes of the former.
type OpState = native.OpState

func newOp(object string, n native.Op) *Op {
	op := &Op{native: n, object: object}
	runtime.AddCleanup(op, native.Op.Free, n)
	return op
}

// State reads what became of it.
func (o *Op) State() OpState {
	defer runtime.KeepAlive(o)
	if o.look != nil {
		o.look()
	}
	return o.native.State()
}

// String says whose work it is and how far.
func (o *Op) String() string {
	st := o.State()
	text := fmt.Sprintf("op of %s: %d %s completed", o.object, st.Completed, cmp.Or(o.unit, "packets"))
	if st.Failed > 0 {
		text += fmt.Sprintf(", %d failed", st.Failed)
	}
	if !st.Done {
		text += ", more to come"
	}
	return text
}

// Error is the first failure, nil when there is none.
func (o *Op) Error() error {
	defer runtime.KeepAlive(o)
	if words := o.native.Error(); words != "" {
		return within(o.object, errors.New(words))
	}
	return nil
}

// Watch has t told of the end, once, by an item of kind task.Done with this target, also where it has come already. An
// operation is watched once.
func (o *Op) Watch(t *task.Task, target any) error {
	defer runtime.KeepAlive(o)
	return within(o.object, t.Watch(o.native, target))
}
