package stdlib

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestModules checks the structure of each module and that the README names it.
func TestModules(t *testing.T) { checkModules(t, "*.lua", "README.md", "\nfunction M.selftest()") }

// TestParts performs the same checks for the parts of daqiri.api, whose functions that module's selftest covers.
func TestParts(t *testing.T) { checkModules(t, "api/*.lua", "api/README.md", "\nlocal M = {") }

func checkModules(t *testing.T, pattern, readmeFile, has string) {
	names, err := fs.Glob(Files, pattern)
	if err != nil || len(names) == 0 {
		t.Fatal("no modules", err)
	}
	readme, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			data, err := Files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if !strings.HasPrefix(text, "-- "+strings.TrimSuffix(path.Base(name), ".lua")+": ") {
				t.Error("does not begin with a comment that tells its purpose")
			}
			if !strings.Contains(text, has) {
				t.Errorf("lacks %q", has)
			}
			if n := strings.Count(text, "\n"); n > 200 {
				t.Errorf("has %d lines, 200 at most", n)
			}
			if !strings.Contains(string(readme), "`"+path.Base(name)+"`") {
				t.Error("the README does not name it")
			}
		})
	}
}
