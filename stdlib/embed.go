// Package stdlib holds the Lua modules that come with the program. A script gets them by require,
// under their own name or as daqiri.NAME; the host's loader reads them here.
package stdlib

import (
	"embed"
	"io/fs"
	"strings"
)

// Files holds each module as NAME.lua, and each format as formats/NAME.lua.
//
//go:embed *.lua api/*.lua formats/*.lua
var Files embed.FS

// Names are the modules, as require takes them behind "daqiri.".
func Names() (names []string) {
	files, _ := fs.Glob(Files, "*.lua") // the pattern is right
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file, ".lua"))
	}
	return names
}
