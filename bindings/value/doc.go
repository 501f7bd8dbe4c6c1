// Package value converts between Lua values and Go values: JSON, plain tables for configurations, and read-only views of ledgers and of a session's
// configuration. It needs a Lua state, but nothing of a script's runtime.
package value
