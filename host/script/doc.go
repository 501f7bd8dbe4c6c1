// Package script runs a Lua program: one Lua state for each task, the loader behind require, the globals that access the process, errors with
// script position, Lua stack and Go error chain, and an orderly or forced end.
//
// It may import bindings, runtime, stdlib, host/repl (to format values and errors) and gopher-lua. A Lua state is used only on its task's thread.
// Program's methods belong to the host's goroutine, which never runs Lua and can therefore end a program whose Lua can't be interrupted.
package script
