package script

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// loader finds modules for require: first built-in ones (modules of the bindings, then of stdlib, by name or as daqiri.NAME), then files along
// package.path: the script's folder and the folders of DAQIRI_PATH.
type loader struct {
	stdlib fs.FS // with NAME.lua in its root; nil: none
	path   string
}

// newLoader returns a loader for a script in folder. searchPath is a colon-separated list of folders.
func newLoader(stdlib fs.FS, folder, searchPath string) *loader {
	var patterns []string
	for _, dir := range append([]string{folder}, filepath.SplitList(searchPath)...) {
		if dir != "" {
			patterns = append(patterns, filepath.Join(dir, "?.lua"), filepath.Join(dir, "?", "init.lua"))
		}
	}
	return &loader{stdlib: stdlib, path: strings.Join(patterns, ";")}
}

// install makes require in L use the loader. The loader of package.preload remains first.
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
			L.RaiseError("%s", err.Error()) // ends the search: later loaders can't find it
		}
		L.Push(fn)
		return 1
	}))
}

// load finds and compiles the module for require(name).
func (l *loader) load(L *lua.LState, name string) (*lua.LFunction, error) {
	if text, file, ok := l.builtIn(name); ok {
		return lua51.Compile(L, file, text)
	}
	var tried []string
	for _, pattern := range strings.Split(packagePath(L, l.path), ";") {
		file := strings.ReplaceAll(pattern, "?", strings.ReplaceAll(name, ".", string(filepath.Separator)))
		text, err := textfile.Read(file)
		if err == nil {
			return lua51.Compile(L, file, string(text))
		}
		if !os.IsNotExist(err) {
			return nil, fmt.Errorf("module '%s': %w", name, err)
		}
		tried = append(tried, "no file "+file)
	}
	return nil, fmt.Errorf("module '%s' not found%s\n  not built in\n  %s", name, l.suggest(L, name), strings.Join(tried, "\n  "))
}

// packagePath returns package.path as set by the script, or usual.
func packagePath(L *lua.LState, usual string) string {
	if module, ok := L.GetGlobal(lua.LoadLibName).(*lua.LTable); ok {
		if path, ok := module.RawGetString("path").(lua.LString); ok {
			return string(path)
		}
	}
	return usual
}

// builtIn returns a module of stdlib; name is NAME or daqiri.NAME.
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

// suggest returns the end of an error about a missing module: a suggestion.
func (l *loader) suggest(L *lua.LState, name string) string {
	var known []string
	if module, ok := L.GetGlobal(lua.LoadLibName).(*lua.LTable); ok {
		if preload, ok := module.RawGetString("preload").(*lua.LTable); ok {
			preload.ForEach(func(k, _ lua.LValue) { known = append(known, k.String()) })
		}
	}
	if l.stdlib != nil {
		files, _ := fs.Glob(l.stdlib, "*.lua") // the pattern is valid
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
