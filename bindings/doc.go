// Package bindings is the API that Lua scripts see: one file for each Lua module or type. It
// imports runtime, gopher-lua and gopher-luar. The host makes a Lua state, fills a Runtime and
// calls Register; scripts then find everything behind require "daqiri".
//
// A Lua state belongs to one task and is used on that task's thread alone. Values of this package
// are bound to their state; what all states of a process share is in Process, which is safe for
// concurrent use.
//
// Types that a script's loop touches (burst, packet, column, queue, connection, session) have
// hand-written metatables; cold data goes through gopher-luar (the configuration) or plain tables.
// A burst is a lease: what it shows is valid until it is sent, freed or its handler ends, and any
// use after that raises and says where that happened.
package bindings
