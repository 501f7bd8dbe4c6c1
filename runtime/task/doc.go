// Package task runs the tasks of a script. A task is a goroutine locked to an OS thread, with a native waiter, timers and an inbox of messages. Tasks
// share only messages and native handles.
//
// A task blocks only in Wait and WaitFor. On the real clock these block in the native engine. On the virtual clock they pass the baton to the
// Scheduler, which steps the sessions, runs one task at a time in order of time and id, and advances the time only when all tasks wait.
//
// The package imports native and the standard library. Methods document which goroutine may call them; all others must be called by the task's own
// goroutine.
package task
