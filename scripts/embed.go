// Package scripts holds the scripts of this folder and their configurations inside the program, which runs, shows and copies
// them where there is no clone.
package scripts

import "embed"

// Files holds each script and configuration by its name.
//
//go:embed *.lua *.yaml
var Files embed.FS
