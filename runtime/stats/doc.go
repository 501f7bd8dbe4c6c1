// Package stats holds the accounts of a session: the ledger, metrics set by a script, and thresholds on both.
//
// A ledger is a snapshot of all lines at one time, or the difference of two snapshots. runtime/session builds it from the engine's counters; the
// ledger itself does not depend on the engine. The summary, JSON, Lua and thresholds use the same names (see Ledger.Names).
//
// The package imports expr, spec (for suggestions) and the standard library. Ledger values are immutable; Metrics and Thresholds are safe for
// concurrent use.
package stats
