package structure

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestFactsOfEngines: the documents that list the engines list all of them.
func TestFactsOfEngines(t *testing.T) {
	for _, name := range []string{"docs/architecture.md", "docs/glossary.md", "docs/running.md"} {
		showFaults(t, missing(name, tree.Read(t, name), schema.InterfaceEngines))
	}
	wantFault(t, missing("a.md", "`loop` and ibverbs", []string{"loop", "xdp"}), "a.md does not name xdp")
}

// missing are the names that a text lacks as words.
func missing(name, text string, names []string) []string {
	var faults []string
	for _, n := range names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(text) {
			faults = append(faults, fmt.Sprintf("%s does not name %s", name, n))
		}
	}
	return faults
}

// layerRow finds a folder in the list of layers.
var layerRow = regexp.MustCompile(`(?m)^  ([a-z/]+)\S* `)

// TestFactsOfLayers: docs/architecture.md lists the folders of native/, each above those whose headers it includes.
func TestFactsOfLayers(t *testing.T) {
	files := tree.Files(t)
	layers, _ := engineLayers(files, func(name string) string { return tree.Read(t, name) })
	showFaults(t, layerListFaults(tree.Read(t, "docs/architecture.md"), layers))
	low, high := &engineLayer{}, &engineLayer{sees: map[string]bool{"native/low": true}}
	few := map[string]*engineLayer{"native/low": low, "native/high": high, "native/engine/loop": high}
	wantFault(t, layerListFaults("```\n  engine/… x\n  high   x\n  low   x\n```\n", few), "")
	wantFault(t, layerListFaults("```\n  engine/… x\n  low   x\n  high   x\n```\n", few), "low stands above high")
	wantFault(t, layerListFaults("```\n  engine/… x\n  high   x\n```\n", few), "does not list low")
	wantFault(t, layerListFaults("```\n  engine/… x\n  high   x\n  low   x\n  mid   x\n```\n", few), "lists mid")
}

// layerListFaults compares the list with the folders; engines have one row.
func layerListFaults(text string, layers map[string]*engineLayer) []string {
	block, _, _ := strings.Cut(text[strings.Index(text, "```")+3:], "```")
	var listed, faults []string
	for _, m := range layerRow.FindAllStringSubmatch(block, -1) {
		listed = append(listed, strings.TrimSuffix(m[1], "/"))
	}
	row := func(dir string) string {
		name := strings.TrimPrefix(dir, "native/")
		if strings.HasPrefix(name, "engine/") {
			name = "engine"
		}
		return name
	}
	known := map[string]bool{}
	for dir, l := range layers {
		if dir == "native" {
			continue
		}
		at := slices.Index(listed, row(dir))
		if at < 0 {
			faults = append(faults, "docs/architecture.md does not list "+row(dir))
		}
		known[row(dir)] = true
		for below := range l.sees {
			if i := slices.Index(listed, row(below)); i >= 0 && i < at {
				faults = append(faults, fmt.Sprintf("docs/architecture.md: %s stands above %s, which includes it", row(below), row(dir)))
			}
		}
	}
	for _, name := range listed {
		if !known[name] {
			faults = append(faults, fmt.Sprintf("docs/architecture.md lists %s, and there is no such folder of C files", name))
		}
	}
	return faults
}

// pathSpan finds a code span that is a path of a source or a document.
var pathSpan = regexp.MustCompile("`((?:[a-zA-Z0-9_.-]+/)+[a-zA-Z0-9_.-]+\\.(?:go|c|h|lua|md|txt|sh|mod))`")

// TestFactsOfPaths: files that documents name are there, from the root, from native/ or from the document's folder.
func TestFactsOfPaths(t *testing.T) {
	files := tree.Files(t)
	for _, name := range files {
		if path.Ext(name) == ".md" && name != "CHANGELOG.md" {
			showFaults(t, pathFaults(name, tree.Read(t, name), files))
		}
	}
	wantFault(t, pathFaults("docs/x.md", "`core/a.h` `host/b.go` `c/d.c`", []string{"native/core/a.h", "host/b.go", "docs/c/d.c"}), "")
	wantFault(t, pathFaults("docs/x.md", "`host/b.go`", []string{"host/a.go"}), "names host/b.go")
}

// placeholder finds paths of files that a build writes, and parts of a name that the reader is to choose.
var placeholder = regexp.MustCompile(`^build/|\b(NAME|LEVEL|FOLDER|AREA)\b|NAME_`)

// pathFaults are the files that a document names and that are not there.
func pathFaults(name, text string, files []string) []string {
	var faults []string
	for _, m := range pathSpan.FindAllStringSubmatch(text, -1) {
		if placeholder.MatchString(m[1]) {
			continue
		}
		places := []string{m[1], path.Join("native", m[1]), path.Join(path.Dir(name), m[1])}
		if !slices.ContainsFunc(places, func(p string) bool { return slices.Contains(files, p) }) {
			faults = append(faults, fmt.Sprintf("%s names %s, which is not there", name, m[1]))
		}
	}
	return faults
}
