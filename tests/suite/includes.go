package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mostUnits is how many C units check runs.
const mostUnits = 12

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// includesOf are the files that a C file includes, directly or not, and itself.
func includesOf(name string, seen map[string]bool) map[string]bool {
	if seen[name] {
		return seen
	}
	seen[name] = true
	text, err := os.ReadFile(name)
	if err != nil {
		return seen
	}
	for _, m := range include.FindAllSubmatch(text, -1) {
		for _, dir := range []string{path.Dir(name), "native", "tests/native"} {
			if file := path.Join(dir, string(m[1])); exists(file) {
				includesOf(file, seen)
				break
			}
		}
	}
	return seen
}

// unitsThatSee are the names of the C units that depend on edited files: those that include one, or the header of an edited C file, and
// those of the folder of tests/native with the same name. The units of that folder come first.
func unitsThatSee(files []string) []string {
	var wanted, folders []string
	for _, name := range files {
		switch {
		case strings.HasPrefix(name, "tests/native/"):
			wanted = append(wanted, name)
		case strings.HasPrefix(name, "native/") && (path.Ext(name) == ".c" || path.Ext(name) == ".h"):
			wanted = append(wanted, name, strings.TrimSuffix(name, path.Ext(name))+".h")
			folders = append(folders, path.Join("tests", path.Dir(name)))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	var first, rest []string
	_ = filepath.WalkDir("tests/native", func(name string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.c") {
			return err
		}
		unit := strings.TrimSuffix(path.Base(name), "_test.c")
		sees := includesOf(name, map[string]bool{})
		switch {
		case slices.Contains(wanted, name), slices.Contains(folders, path.Dir(name)):
			first = append(first, unit)
		case slices.ContainsFunc(wanted, func(w string) bool { return sees[w] }):
			rest = append(rest, unit)
		}
		return nil
	})
	return append(first, rest...)
}

// runUnits runs C units by name, at most mostUnits of them.
func runUnits(units []string) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(units) == 0 {
			return nil
		}
		units := units[:min(len(units), mostUnits)]
		return execute(ctx, nil, "go", "test", "./tests/units", "-parallel=4", "-run", "^TestNative$/^asan.ubsan$/^("+strings.Join(units, "|")+")$")
	}
}
