// Package memory limits the memory of Lua states to a share of what the machine or the process's control group has. Without the limit the Go runtime
// would end the process when memory is exhausted, which a script cannot catch.
//
// A Guard is the context of a Lua state. While the process uses more than Limit, gopher-lua, which checks the context before every instruction,
// raises an error in the task that was busiest. Large single allocations are announced with Reserve. The package may import native and the standard
// library. A Guard's Reserve, Done and Err must be called by its task; all else is safe for concurrent use.
package memory
