package session

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Op is an asynchronous operation of a task, such as the writing of a burst. It outlives the burst and the session, and is safe for concurrent use.
type Op struct {
	native native.Op
	object string // object that performs it
	unit   string // unit of its parts; empty: packets
	look   func() // polls for completion if it is not notified; nil otherwise
}

// OpState is the progress: the number of completed and failed parts, mostly packets, and the bytes of the completed ones.
type OpState = native.OpState

func newOp(object string, n native.Op) *Op {
	op := &Op{native: n, object: object}
	runtime.AddCleanup(op, native.Op.Free, n)
	return op
}

// State returns the progress.
func (o *Op) State() OpState {
	defer runtime.KeepAlive(o)
	if o.look != nil {
		o.look()
	}
	return o.native.State()
}

// String returns the object and the progress.
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

// Error returns the first failure, or nil.
func (o *Op) Error() error {
	defer runtime.KeepAlive(o)
	if words := o.native.Error(); words != "" {
		return within(o.object, errors.New(words))
	}
	return nil
}

// Watch sends t one item of kind task.Done with this target when the operation completes, or at once if it already has. It must be called at most
// once per operation.
func (o *Op) Watch(t *task.Task, target any) error {
	defer runtime.KeepAlive(o)
	return within(o.object, t.Watch(o.native, target))
}
