// Package check finds errors of a script without running it: those that package script detects in Lua, API calls that no row of the reference
// allows, and strings that the program's parsers refuse. Its knowledge comes from the rows (bindings.Reference), the configuration that the
// script opens, and the library.
//
// It infers values only where they are certain: a local or global that is assigned once has the type of its value, and a handler's argument the
// type in the handler's row. Everything else is unknown and not reported. Code in a function passed to pcall, to a script function that names
// pcall, or to an unknown function is not reported either, as an error may be expected there.
package check
