package task

import (
	"errors"

	"github.com/daqiri/daqiri-run/native"
)

// Kind says what an Item is.
type Kind uint8

// Kinds of item.
const (
	Burst      Kind = iota + 1 // a tap has a burst: Target, Event
	Connect                    // a connection was made, or could not be: Target, Event
	Disconnect                 // a connection ended: Target, Event
	Timer                      // a timer is due: Target, Due
	Message                    // another task sent Value: Value, From
	Call                       // somebody wants Call to run on this task's thread
	Stop                       // the task is to end: Reason
	Done                       // an operation has ended: Target
)

// Item is one thing that a task has to deal with. It is valid until the next wait.
type Item struct {
	Kind   Kind
	Target any           // what the tap, listener or timer was made with
	Source any           // of an event: the tap or listener
	Event  *native.Event // whose burst the receiver owns
	Value  any
	From   *Task
	Call   func()
	Reason string
	Due    int64
}

// What may be wrong with a wait or a message.
var (
	ErrIdle    = errors.New("nothing can happen any more: every task waits, and the virtual clock has nothing to wait for")
	ErrFull    = errors.New("inbox is full")
	ErrEnded   = errors.New("task has ended")
	ErrStopped = errors.New("task is to stop")
)
