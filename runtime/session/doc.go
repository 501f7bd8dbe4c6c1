// Package session turns a checked configuration into a live session of the native engine: interfaces, queues, flows, stages in pipes, and the
// accounts of all of them.
//
// It imports spec, stats, task, expr and native. Bindings and host access native only through this package and task.
//
// Ownership: a session owns all its objects, and Close frees them. Bursts belong to the Leases of the task that received or allocated them until they
// are sent or freed; a tap belongs to its task and ends with it. Memory that a task may still access remains allocated until that task has ended,
// even if it was abandoned.
//
// Goroutines: control calls (open, pipes, flows, start, finish, close) may come from any task; a lock serializes them. Calls on the packet path
// (bursts, Alloc, Send, Tap.Next) belong to the task that owns the burst or the queue. Stop, Stopping, Now, Ledger, Metrics and Thresholds may be
// called from any goroutine at any time.
package session
