package task

import (
	"errors"

	"github.com/daqiri/daqiri-run/native"
)

// Kind is the type of an Item.
type Kind uint8

// Types of items.
const (
	Burst      Kind = iota + 1 // tap has a burst: Target, Event
	Connect                    // connection established or failed: Target, Event
	Disconnect                 // connection ended: Target, Event
	Timer                      // timer expired: Target, Due
	Message                    // message of another task: Value, From
	Call                       // function to run on this task's thread
	Stop                       // request to end the task: Reason
	Done                       // operation completed: Target
)

// Item is an event to be handled by a task. It is valid until the next wait.
type Item struct {
	Kind   Kind
	Target any           // target of the tap, listener or timer
	Source any           // of an event: the tap or listener
	Event  *native.Event // owned by the receiver, including its burst
	Value  any
	From   *Task
	Call   func()
	Reason string
	Due    int64
}

// Errors of waits and messages.
var (
	ErrIdle    = errors.New("nothing can happen any more: every task waits, and the virtual clock has nothing to wait for")
	ErrFull    = errors.New("inbox is full")
	ErrEnded   = errors.New("task has ended")
	ErrStopped = errors.New("task is to stop")
)
