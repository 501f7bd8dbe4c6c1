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

// includeGraph is which files each C file includes, as far as it was asked for.
type includeGraph map[string][]string

// direct are the files that a C file includes itself.
func (g includeGraph) direct(name string) []string {
	files, known := g[name]
	if known {
		return files
	}
	text, _ := os.ReadFile(name)
	for _, m := range include.FindAllSubmatch(text, -1) {
		for _, dir := range []string{path.Dir(name), "native", "tests/native"} {
			if file := path.Join(dir, string(m[1])); exists(file) {
				files = append(files, file)
				break
			}
		}
	}
	g[name] = files
	return files
}

// all adds to seen a C file and what it includes, directly or not.
func (g includeGraph) all(name string, seen map[string]bool) map[string]bool {
	if !seen[name] {
		seen[name] = true
		for _, file := range g.direct(name) {
			g.all(file, seen)
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
	graph := includeGraph{}
	_ = filepath.WalkDir("tests/native", func(name string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.c") {
			return err
		}
		unit := strings.TrimSuffix(path.Base(name), "_test.c")
		sees := graph.all(name, map[string]bool{})
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
