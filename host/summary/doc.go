// Package summary formats the state and result of a run: the live line, and at the end the summary with the loss ledger, as text and as JSON.
//
// It may import bindings and runtime. Report is plain data; Collect fills it from the sessions of a process, on the host's goroutine, without a
// Lua state. Screen and Live may be used while tasks write.
package summary
