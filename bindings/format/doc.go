// Package format reads the formats of an application's packets as Lua tables declare them, and resolves their fields for the calls of the Lua API:
// in conditions, columns, templates and rewrites. The formats themselves are those of runtime/format; files that use both packages import this one
// as luaformat.
package format
