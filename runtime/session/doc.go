// Package session turns a checked configuration into a live session of the native engine:
// interfaces, queues, flows, stages in pipes, and the accounts of all of them.
//
// It imports spec, stats, task, expr and native. Bindings and host see native only through
// this package and task.
//
// Ownership: a session owns everything made by it, and Close frees it. Bursts belong to the
// Leases of the task that received or allocated them until they are sent or freed; a tap
// belongs to its task and ends with it. Memory that a task may still touch stays until that
// task has ended, also when it was abandoned.
//
// Goroutines: control calls (open, pipes, flows, start, finish, close) may come from any
// task, one at a time; a lock sees to that. Calls on the packet path (bursts, Alloc, Send,
// Tap.Next) belong to the task that owns the burst or the queue. Stop, Stopping, Now, Ledger,
// Metrics and Thresholds are safe from any goroutine at any time.
package session
