// Package memory keeps Lua from taking more memory than the machine, or the process's group, has to spare: Go ends a
// process that finds none, and a script can't catch that.
//
// A Guard is the context of a Lua state. While the process holds more than Limit, gopher-lua, which asks the context
// before every instruction, raises an error in the task that was the busiest. What a single call is about to take is
// asked for with Reserve. It may import native and the standard library. A Guard's Reserve, Done and Err belong to its
// task; all else is safe for concurrent use.
package memory
