package stdlib

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestModules checks the shape of each module and that the README names it.
func TestModules(t *testing.T) {
	names, err := fs.Glob(Files, "*.lua")
	if err != nil || len(names) == 0 {
		t.Fatal("no modules", err)
	}
	readme, err := os.ReadFile("README.md")
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
			if !strings.HasPrefix(text, "-- "+strings.TrimSuffix(name, ".lua")+": ") {
				t.Error("does not begin with a comment that tells its purpose")
			}
			if !strings.Contains(text, "\nfunction M.selftest()") {
				t.Error("has no selftest")
			}
			if n := strings.Count(text, "\n"); n > 200 {
				t.Errorf("has %d lines, 200 at most", n)
			}
			if !strings.Contains(string(readme), "`"+name+"`") {
				t.Error("the README does not name it")
			}
		})
	}
}
