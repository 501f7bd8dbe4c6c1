// Package stdlib embeds the Lua modules of the program. Scripts load them by require, under their own name or as daqiri.NAME, through the host's
// loader.
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

// Names returns the modules, as required after "daqiri.".
func Names() (names []string) {
	files, _ := fs.Glob(Files, "*.lua") // the pattern is valid
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file, ".lua"))
	}
	return names
}
