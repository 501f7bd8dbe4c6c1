package script

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// loader finds modules for require: first what is built in (the bindings' modules, then stdlib, by name or as
// daqiri.NAME), then files along package.path: the script's folder and the folders of DAQIRI_PATH.
type loader struct {
	stdlib fs.FS // NAME.lua in its root; nil: none
	path   string
}

// newLoader makes a loader for a script in folder. searchPath is a list of folders separated by colons.
func newLoader(stdlib fs.FS, folder, searchPath string) *loader {
	var patterns []string
	for _, dir := range append([]string{folder}, filepath.SplitList(searchPath)...) {
		if dir != "" {
			patterns = append(patterns, filepath.Join(dir, "?.lua"), filepath.Join(dir, "?", "init.lua"))
		}
	}
	return &loader{stdlib: stdlib, path: strings.Join(patterns, ";")}
}

// install makes the loader what require uses in L. The loader of package.preload stays the first.
func (l *loader) install(L *lua.LState) {
	module, ok := L.GetGlobal(lua.LoadLibName).(*lua.LTable)
	if !ok {
		return
	}
	module.RawSetString("path", lua.LString(l.path))
	loaders, ok := module.RawGetString("loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.RawSetInt(2, L.NewFunction(func(L *lua.LState) int {
		fn, err := l.load(L, L.CheckString(1))
		if err != nil {
			L.RaiseError("%s", err.Error()) // ends the search: later loaders have nothing to add
		}
		L.Push(fn)
		return 1
	}))
}

// load finds and compiles the module that require(name) would load.
func (l *loader) load(L *lua.LState, name string) (*lua.LFunction, error) {
	if text, file, ok := l.builtIn(name); ok {
		return compile(L, file, text)
	}
	var tried []string
	for _, pattern := range strings.Split(packagePath(L, l.path), ";") {
		file := strings.ReplaceAll(pattern, "?", strings.ReplaceAll(name, ".", string(filepath.Separator)))
		text, err := textfile.Read(file)
		if err == nil {
			return compile(L, file, string(text))
		}
		if !os.IsNotExist(err) {
			return nil, fmt.Errorf("module '%s': %w", name, err)
		}
		tried = append(tried, "no file "+file)
	}
	return nil, fmt.Errorf("module '%s' not found%s\n  not built in\n  %s", name, l.suggest(L, name), strings.Join(tried, "\n  "))
}

// packagePath is what the script has made of package.path.
func packagePath(L *lua.LState, usual string) string {
	if module, ok := L.GetGlobal(lua.LoadLibName).(*lua.LTable); ok {
		if path, ok := module.RawGetString("path").(lua.LString); ok {
			return string(path)
		}
	}
	return usual
}

// builtIn returns a module of stdlib: name is NAME or daqiri.NAME.
func (l *loader) builtIn(name string) (text, file string, ok bool) {
	if l.stdlib == nil {
		return "", "", false
	}
	file = strings.ReplaceAll(strings.TrimPrefix(name, "daqiri."), ".", "/") + ".lua"
	data, err := fs.ReadFile(l.stdlib, file)
	if err != nil {
		return "", "", false
	}
	return string(data), "stdlib/" + file, true
}

// suggest is the tail of an error about a module that is nowhere.
func (l *loader) suggest(L *lua.LState, name string) string {
	var known []string
	if module, ok := L.GetGlobal(lua.LoadLibName).(*lua.LTable); ok {
		if preload, ok := module.RawGetString("preload").(*lua.LTable); ok {
			preload.ForEach(func(k, _ lua.LValue) { known = append(known, k.String()) })
		}
	}
	if l.stdlib != nil {
		files, _ := fs.Glob(l.stdlib, "*.lua") // the pattern is right
		for _, file := range files {
			known = append(known, strings.TrimSuffix(file, ".lua"))
		}
	}
	slices.Sort(known)
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return ""
}
