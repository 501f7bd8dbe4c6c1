package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/runtime/textfile"
	"github.com/daqiri/daqiri-run/scripts"
)

// found is a script: a file, or one shipped with the program.
type found struct {
	path    string // of the file, or name in shipped
	shipped fs.FS  // nil: a file
}

// find looks up a script: a file, or the name of a shipped script with or without ".lua".
func find(word string) (found, bool) {
	info, err := os.Stat(word)
	name := strings.TrimSuffix(word, ".lua") + ".lua"
	switch {
	case err == nil && !info.IsDir():
		return found{path: word}, true
	case slices.Contains(scripts.Names(), name):
		return shipped(name), true
	}
	return found{path: word}, err == nil
}

// shipped returns a script of the program.
func shipped(name string) found { return found{path: name, shipped: scripts.Files} }

// text returns the script's source.
func (f found) text() (string, error) {
	if f.shipped != nil {
		text, err := fs.ReadFile(f.shipped, f.path)
		return string(text), err
	}
	text, err := textfile.Read(f.path)
	return string(text), err
}

// describe parses the script's description.
func (f found) describe() (script.Description, error) {
	text, err := f.text()
	if err != nil {
		return script.Description{}, err
	}
	return script.Describe(f.path, text)
}

// scriptWords lists the names of shipped scripts.
func scriptWords() []string {
	names := scripts.Names()
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".lua")
	}
	return names
}

// noScript returns the error for an unknown script, with a suggestion.
func noScript(word string) error {
	hint := ""
	if near := suggest.Nearest(strings.TrimSuffix(filepath.Base(word), ".lua"), scriptWords()); near != "" {
		hint = fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return exit.Fail(exit.Usage, fmt.Errorf("%s: neither a file nor a script of the program%s; 'daqiri-run list' lists those", word, hint))
}
