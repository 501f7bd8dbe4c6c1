// Package check finds what is wrong with a script without running it: beside what package script knows of Lua, calls of the API
// that no row of the reference allows, and texts that the program's own parsers refuse. It knows names only from these rows
// (bindings.Reference), the configuration that the script opens, and the library.
//
// It follows values as far as they are certain: a local or global that is assigned once has the type of what it is assigned, and
// an argument of a handler that of the handler's row. Whatever else a value may be is unknown, and of that nothing is said.
// So is whatever stands in a function that is handed to pcall, to a function of the script that names it, or to one that is not known:
// these may expect an error.
package check
