// Package task runs what a script does: one task is one goroutine locked to an OS thread,
// with a native waiter, timers and an inbox of messages. Tasks share nothing but messages and
// native handles.
//
// A task does one thing at a time and gives up its thread only in Wait and WaitFor. On the
// real clock those block in the native engine; on the virtual clock they hand the baton to
// the Scheduler, which steps the sessions, lets tasks run one at a time in order of time and
// id, and moves time only when everybody waits.
//
// The package imports native and the standard library. Methods say which goroutine may call
// them; those without a word belong to the task's own goroutine.
package task
