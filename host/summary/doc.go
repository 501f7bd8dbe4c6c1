// Package summary says what a run does and did: the live line while it goes on, and at its end the summary with the
// loss ledger, for people and as JSON.
//
// It may import bindings and runtime. Report is plain data; Collect reads it from the sessions of a process, on the
// host's goroutine, and needs no Lua state. Screen and Live are safe to use while tasks write.
package summary
