package bindings

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// surface lists what Lua can call or read by section of the reference.
func surface() map[string][]string {
	all := map[string][]string{}
	for _, def := range typeDefs {
		all[def.name] = def.names()
	}
	for _, m := range modules {
		for _, e := range m.entry {
			all["module "+m.name] = append(all["module "+m.name], e.name)
		}
		for _, f := range m.constants {
			all["module "+m.name] = append(all["module "+m.name], f.name)
		}
	}
	for _, lib := range globalFunctions {
		for _, e := range lib.entry {
			all["globals"] = append(all["globals"], e.name)
		}
	}
	for name := range all {
		slices.Sort(all[name])
	}
	return all
}

// TestReadme checks that the README names each file.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") && file != "doc.go" && !strings.Contains(string(text), "`"+file+"`") {
			t.Errorf("%s is not named", file)
		}
	}
}

// TestScriptsCover checks that a script in testdata uses each function.
func TestScriptsCover(t *testing.T) {
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for section, names := range surface() {
		for _, name := range names {
			use := regexp.MustCompile(`[.:]` + name + `\b`)
			if section == "globals" {
				use = regexp.MustCompile(`\b` + name + `\b`)
			}
			if !use.MatchString(all.String()) {
				t.Errorf("%s: no script in testdata uses %s", section, name)
			}
		}
	}
}
