// Package stdlib holds the Lua modules that come with the program. A script gets them by require,
// under their own name or as daqiri.NAME; the host's loader reads them here.
package stdlib

import "embed"

// Files holds each module as NAME.lua.
//
//go:embed *.lua api/*.lua
var Files embed.FS
