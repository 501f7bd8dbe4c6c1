// Package bindings is the API of Lua scripts: one file for each Lua module or type. It imports runtime, gopher-lua and gopher-luar. The host
// creates a Lua state, fills a Runtime and calls Register; scripts then load the API with require "daqiri".
//
// A Lua state belongs to one task and is used only on that task's thread. Values of this package belong to their state; Process holds what all
// states of a process share and is safe for concurrent use.
//
// Types used in a script's inner loop (burst, packet, column, queue, connection, session) have hand-written metatables; cold data goes through
// gopher-luar (the configuration) or plain tables. A burst is a lease: it is valid until it is sent, freed or its handler ends. Later use raises
// an error with the script line that ended it.
package bindings
