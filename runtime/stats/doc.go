// Package stats holds the accounts of a session: the ledger, metrics that a script sets, and
// thresholds on both.
//
// A ledger is a value: a snapshot of every line at one time, or the difference of two. It is
// built by runtime/session from the engine's counters and knows nothing of the engine. One
// table of names serves the summary, JSON, Lua and thresholds (see Ledger.Names).
//
// The package imports expr, spec (for suggestions) and the standard library. Ledger values are not changed
// once they are made; Metrics and Thresholds are safe for concurrent use.
package stats
