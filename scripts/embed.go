// Package scripts contains the scripts of this folder and their configurations, so that the program can run, show and copy them
// without a clone.
package scripts

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed */*.lua */*.yaml read_blocks.py
var embedded embed.FS

// Files contains each script and configuration by its name alone, whatever folder it is in.
var Files fs.FS = flat(pathsByName())

// Reader returns read_blocks.py, which reads the files of s:write_blocks.
func Reader() (string, error) {
	text, err := embedded.ReadFile("read_blocks.py")
	return string(text), err
}

// flat maps the name of a file to its path in embedded.
type flat map[string]string

// Open opens a file by its name.
func (f flat) Open(name string) (fs.File, error) { return embedded.Open(cmp.Or(f[name], name)) }

// Names returns the names of the scripts, sorted.
func Names() []string {
	var names []string
	for name := range pathsByName() {
		if strings.HasSuffix(name, ".lua") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func pathsByName() map[string]string {
	paths := map[string]string{}
	for _, pattern := range []string{"*/*.lua", "*/*.yaml"} {
		found, _ := fs.Glob(embedded, pattern) // the patterns are valid
		for _, p := range found {
			paths[path.Base(p)] = p
		}
	}
	return paths
}
