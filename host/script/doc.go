// Package script runs a Lua program: one Lua state for each task, the loader behind require, the globals that touch
// the process, errors with script position, Lua stack and Go chain, and the end of it all, orderly or not.
//
// It may import bindings, runtime, stdlib, host/repl (for showing values and errors) and gopher-lua. A Lua state is
// used on its own task's thread only. Program's methods belong to the host's goroutine, which never runs Lua, so that
// it can end a program whose Lua can't be interrupted.
package script
