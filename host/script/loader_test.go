package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// newState returns a Lua state with the libraries, closed at the end of the test.
func newState(t *testing.T) *lua.LState {
	t.Helper()
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	t.Cleanup(L.Close)
	lua51.OpenLibraries(L)
	return L
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRequire(t *testing.T) {
	own, shared := t.TempDir(), t.TempDir()
	write(t, own, "near.lua", "return 'near'")
	write(t, own, "tools/init.lua", "return 'tools'")
	write(t, own, "tools/deep.lua", "#!/usr/bin/env daqiri-run\nreturn 'deep'")
	write(t, own, "broken.lua", "return 1 2")
	write(t, own, "both.lua", "return 'own'")
	write(t, shared, "both.lua", "return 'shared'")
	write(t, shared, "far.lua", "return 'far'")
	write(t, own, "udp.lua", "return 'file'")
	stdlib := fstest.MapFS{"udp.lua": {Data: []byte("return 'built in'")}}
	for _, c := range []struct{ name, source, want string }{
		{"beside the script", `return require "near"`, "near"},
		{"once only", `return tostring(require "near" == require "near")`, "true"},
		{"a folder", `return require "tools"`, "tools"},
		{"in a folder", `return require "tools.deep"`, "deep"},
		{"search path", `return require "far"`, "far"},
		{"the script's folder wins", `return require "both"`, "own"},
		{"built in by name", `return require "udp"`, "built in"},
		{"built in by full name", `return require "daqiri.udp"`, "built in"},
		{"preload comes first", `package.preload.udp = function() return "preload" end return require "udp"`, "preload"},
		{"package.path counts", `package.path = package.path:gsub("%?%.lua", "tools/?.lua") return require "deep"`, "deep"},
		{"not found", `return require "udq"`, "error: module 'udq' not found (did you mean 'udp'?)\n  not built in\n  no file " + own},
		{"broken", `return require "broken"`, "error: " + filepath.Join(own, "broken.lua")},
	} {
		t.Run(c.name, func(t *testing.T) {
			L := newState(t)
			newLoader(stdlib, own, shared).install(L)
			got := ""
			if err := L.DoString(c.source); err != nil {
				got = "error: " + strings.TrimPrefix(err.Error(), "<string>:1: ")
			} else {
				got = L.Get(-1).String()
			}
			if !strings.HasPrefix(got, c.want) || !strings.HasPrefix(c.want, "error") && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
