package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// A layer is a folder of native/ with C files of the engine: a cgo package without Go code, so that `go build` compiles
// each folder for itself, and again whenever a header changed that it sees.
type engineLayer struct {
	files   []string        // its C sources and headers
	headers bool            // it has headers
	sees    map[string]bool // the folders whose headers it includes, also through other headers
}

var (
	quotedInclude = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)
	includeFlag   = regexp.MustCompile(`(?m)^#cgo CFLAGS: .*-I\$\{SRCDIR\}(\S*)$`)
)

// engineLayers finds the layers, with what is wrong with their includes.
func engineLayers(files []string, read func(string) string) (map[string]*engineLayer, []string) {
	layers, includes := map[string]*engineLayer{}, map[string]map[string]bool{}
	var faults []string
	for _, name := range files {
		dir, ext := path.Dir(name), path.Ext(name)
		if !strings.HasPrefix(name, "native/") || ext != ".c" && ext != ".h" || tree.Apart.MatchString(dir) {
			continue
		}
		if layers[dir] == nil {
			layers[dir], includes[dir] = &engineLayer{sees: map[string]bool{}}, map[string]bool{}
		}
		s := layers[dir]
		s.files = append(s.files, name)
		s.headers = s.headers || ext == ".h"
		for _, m := range quotedInclude.FindAllStringSubmatch(read(name), -1) {
			header := path.Join("native", m[1])
			if !slices.Contains(files, header) || path.Ext(header) != ".h" {
				faults = append(faults, fmt.Sprintf("%s: includes %q: no header of native/ (FOLDER/NAME.h)", name, m[1]))
			} else if d := path.Dir(header); d != dir {
				includes[dir][d] = true
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(layers)) {
		next := slices.Collect(maps.Keys(includes[s]))
		for len(next) > 0 {
			d := next[0]
			next = next[1:]
			if !layers[s].sees[d] {
				layers[s].sees[d] = true
				next = slices.AppendSeq(next, maps.Keys(includes[d]))
			}
		}
	}
	return layers, faults
}

// layerFaults are the rules that the folders of native/ break.
func layerFaults(files []string, read func(string) string) []string {
	layers, faults := engineLayers(files, read)
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, dir := range slices.Sorted(maps.Keys(layers)) {
		s, name := layers[dir], dir+"/cgo.go"
		if dir == "native" {
			continue
		}
		if s.sees[dir] {
			fault("%s: its headers include each other in a circle through another folder", dir)
		}
		for _, f := range files {
			if path.Dir(f) == dir && path.Ext(f) == ".go" && f != name {
				fault("%s: a folder of C files has no Go code but cgo.go", f)
			}
		}
		if !slices.Contains(files, name) {
			fault("%s is missing: without it `go build` leaves the folder out", name)
			continue
		}
		for _, why := range cgoFaults(dir, read(name), s) {
			fault("%s: %s", name, why)
		}
	}
	built := slices.DeleteFunc(slices.Collect(maps.Keys(layers)), func(dir string) bool { return !slices.Contains(files, dir+"/cgo.go") || dir == "native" })
	for _, why := range importFaults("native/layers.go", read("native/layers.go"), built) {
		fault("native/layers.go: %s", why)
	}
	return faults
}

var (
	cComment    = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	cFunction   = regexp.MustCompile(`(?m)^[a-z][\w \n*]*[ *](\w+)\([^;{}]*?\)(?:\s*__attribute__\(\(.*\)\))?\s*([;{])`)
	cNoFunction = regexp.MustCompile(`^(typedef|return|else)\b`)
)

// declarationFaults are the functions that a header of a folder declares and a file of another folder defines.
func declarationFaults(files []string, read func(string) string) []string {
	defined := map[string][]string{}  // folders by function
	declared := map[string][]string{} // headers by function
	for _, name := range files {
		dir, ext := path.Dir(name), path.Ext(name)
		if !strings.HasPrefix(name, "native/") || ext != ".c" && ext != ".h" || tree.Apart.MatchString(dir) {
			continue
		}
		for _, m := range cFunction.FindAllStringSubmatch(cComment.ReplaceAllString(read(name), ""), -1) {
			switch {
			case cNoFunction.MatchString(m[0]):
			case m[2] == "{":
				defined[m[1]] = append(defined[m[1]], dir)
			case ext == ".h":
				declared[m[1]] = append(declared[m[1]], name)
			}
		}
	}
	var faults []string
	for _, function := range slices.Sorted(maps.Keys(declared)) {
		for _, header := range declared[function] {
			if dirs := defined[function]; !slices.Contains(dirs, path.Dir(header)) {
				faults = append(faults, fmt.Sprintf("%s: declares %s, which %v define", header, function, dirs))
			}
		}
	}
	return faults
}

// TestDeclarations: a header declares only what its folder defines.
func TestDeclarations(t *testing.T) {
	showFaults(t, declarationFaults(tree.Files(t), func(name string) string { return tree.Read(t, name) }))
	text := map[string]string{
		"native/low/a.h": "// a.h: x(); not y();\nint low(int (*f)(int));\nvoid say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));\n",
		"native/low/a.c": "int low(int (*f)(int)) {\n    return f(0);\n}\nvoid say(const char *fmt, ...) {\n}\n",
		"native/mid/b.c": "int high(void) { return 1; }\n",
	}
	faults := func() []string {
		return declarationFaults(slices.Sorted(maps.Keys(text)), func(name string) string { return text[name] })
	}
	wantFault(t, faults(), "")
	text["native/low/a.h"] += "int high(void);\n"
	wantFault(t, faults(), "declares high, which [native/mid] define")
}

// What a reader takes in at once.
const (
	maxFolder = 35  // C sources of a folder
	maxHeader = 300 // lines of a header
	maxReadme = 100 // lines of a README
	maxTest   = 600 // lines of a test file, also in C
)

// testFile finds Go and C tests, and all code that the tests of whole programs have to themselves.
var testFile = regexp.MustCompile(`_test\.(go|c)$|^tests/.*\.(go|c|h)$`)

// sizeFaults are the folders, headers, READMEs and tests that are larger than a reader takes in.
func sizeFaults(files []string, read func(string) string) []string {
	sources := map[string]int{}
	var faults []string
	long := func(name string, most int) {
		if n := strings.Count(read(name), "\n"); n > most {
			faults = append(faults, fmt.Sprintf("%s: %d lines, %d at most", name, n, most))
		}
	}
	for _, name := range files {
		switch {
		case path.Base(name) == "README.md":
			long(name, maxReadme)
		case testFile.MatchString(name):
			long(name, maxTest)
		case strings.HasPrefix(name, "native/") && path.Ext(name) == ".h":
			long(name, maxHeader)
		case strings.HasPrefix(name, "native/") && path.Ext(name) == ".c":
			sources[path.Dir(name)]++
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(sources)) {
		if sources[dir] > maxFolder {
			faults = append(faults, fmt.Sprintf("%s: %d C sources, %d at most", dir, sources[dir], maxFolder))
		}
	}
	return faults
}

// TestArchitectureSizes: folders, headers, READMEs and tests are of a size that a reader takes in.
func TestArchitectureSizes(t *testing.T) {
	showFaults(t, sizeFaults(tree.Files(t), func(name string) string { return tree.Read(t, name) }))
	lines := func(string) string { return strings.Repeat("line\n", 101) }
	wantFault(t, sizeFaults([]string{"host/README.md"}, lines), "101 lines, 100 at most")
	wantFault(t, sizeFaults([]string{"native/core/a.h"}, lines), "")
	wantFault(t, sizeFaults([]string{"native/core/a.h"}, func(string) string { return strings.Repeat("\n", 301) }), "301 lines, 300 at most")
	for _, name := range []string{"host/cli/a_test.go", "tests/native/core/a_test.c", "tests/native/a.h", "tests/soak/a.go"} {
		wantFault(t, sizeFaults([]string{name}, func(string) string { return strings.Repeat("\n", 601) }), "601 lines, 600 at most")
		wantFault(t, sizeFaults([]string{name}, func(string) string { return strings.Repeat("\n", 600) }), "")
	}
	var many []string
	for i := range maxFolder + 1 {
		many = append(many, fmt.Sprintf("native/core/%d.c", i))
	}
	wantFault(t, sizeFaults(many, lines), "36 C sources")
	wantFault(t, sizeFaults(many[1:], lines), "")
}

// cgoFaults are what is wrong with the cgo.go of a layer.
func cgoFaults(dir, text string, s *engineLayer) []string {
	faults := importFaults(dir, text, slices.Collect(maps.Keys(s.sees)))
	if s.headers && !strings.Contains(text, "//go:embed *.h") {
		faults = append(faults, "does not embed *.h: an edit of a header would not rebuild those who import it")
	}
	up := strings.Repeat("/..", strings.Count(dir, "/"))
	if m := includeFlag.FindStringSubmatch(text); m == nil || m[1] != up {
		faults = append(faults, "its CFLAGS don't end in -I${SRCDIR}"+up)
	}
	file, err := parser.ParseFile(token.NewFileSet(), dir, text, 0)
	if err != nil {
		return append(faults, err.Error())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && fmt.Sprint(sel.X) == "C" {
			faults = append(faults, fmt.Sprintf("uses C.%s: Go code of the engine stands in native/", sel.Sel))
		}
		return true
	})
	return faults
}

// importFaults compares the folders of native/ that a Go file imports with those that it needs.
func importFaults(name, text string, needs []string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	var has, faults []string
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(p, tree.Module+"/"); ok {
			has = append(has, own)
		}
	}
	slices.Sort(needs)
	for _, dir := range needs {
		if !slices.Contains(has, dir) {
			faults = append(faults, "does not import "+dir)
		}
	}
	for _, dir := range has {
		if !slices.Contains(needs, dir) {
			faults = append(faults, fmt.Sprintf("imports %s, of which it sees no header", dir))
		}
	}
	return faults
}

// TestBaselineImports: the baselines import the folders of native/ whose headers they include, so that an edit of one rebuilds them.
func TestBaselineImports(t *testing.T) {
	files := tree.Files(t)
	layers, _ := engineLayers(files, func(name string) string { return tree.Read(t, name) })
	needs := map[string]bool{"native": true}
	for _, name := range files {
		if path.Dir(name) != baselines {
			continue
		}
		for _, m := range quotedInclude.FindAllStringSubmatch(tree.Read(t, name), -1) {
			if dir := path.Join("native", path.Dir(m[1])); layers[dir] != nil && dir != "native" {
				needs[dir] = true
				maps.Copy(needs, layers[dir].sees)
			}
		}
	}
	if len(needs) < 5 {
		t.Fatalf("includes headers of %v alone", needs)
	}
	name := baselines + "/cgo.go"
	showFaults(t, importFaults(name, tree.Read(t, name), slices.Collect(maps.Keys(needs))))
}

// TestEngineLayers: the folders of native/ are packages that `go build` rebuilds when it should.
func TestEngineLayers(t *testing.T) {
	files := tree.Files(t)
	showFaults(t, layerFaults(files, func(name string) string {
		if !slices.Contains(files, name) {
			return "package native"
		}
		return tree.Read(t, name)
	}))
}

// TestEngineLayersRules feeds the rules something bad, and its good neighbour.
func TestEngineLayersRules(t *testing.T) {
	const (
		cgo    = "package %s\n/*\n#cgo CFLAGS: -O3 -I${SRCDIR}/%s\n*/\nimport \"C\"\n"
		embeds = "//go:embed *.h\nvar _ embed.FS\n"
	)
	good := map[string]string{
		"native/low/a.h":      "",
		"native/low/cgo.go":   fmt.Sprintf(cgo, "low", "..") + embeds,
		"native/mid/b.h":      "#include \"low/a.h\"\n",
		"native/mid/cgo.go":   fmt.Sprintf(cgo, "mid", "..") + "import _ \"" + tree.Module + "/native/low\"\n" + embeds,
		"native/top/x/c.c":    "#include \"mid/b.h\"\n",
		"native/top/x/cgo.go": fmt.Sprintf(cgo, "x", "../..") + "import (\n_ \"" + tree.Module + "/native/low\"\n_ \"" + tree.Module + "/native/mid\"\n)\n",
		"native/list.c":       "#include \"low/a.h\"\n",
		"native/layers.go": "package native\nimport (\n_ \"" + tree.Module + "/native/low\"\n_ \"" + tree.Module + "/native/mid\"\n_ \"" +
			tree.Module + "/native/top/x\"\n)\n",
	}
	with := func(changes ...string) map[string]string {
		m := maps.Clone(good)
		for i := 0; i < len(changes); i += 2 {
			m[changes[i]] = changes[i+1]
		}
		return m
	}
	cases := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"as it should be", good, ""},
		{"a header without its folder", with("native/top/x/c.c", "#include \"mid/b.h\"\n#include \"a.h\"\n"), `includes "a.h"`},
		{"a source is included", with("native/mid/d.c", "", "native/top/x/c.c", "#include \"mid/b.h\"\n#include \"mid/d.c\"\n"), `includes "mid/d.c"`},
		{"an import too few", with("native/top/x/cgo.go", strings.Replace(good["native/top/x/cgo.go"], "native/low", "native/mid", 1)), "does not import native/low"},
		{"an import too many", with("native/top/x/c.c", "#include \"low/a.h\"\n"), "imports native/mid, of which"},
		{"no embed", with("native/mid/cgo.go", strings.Replace(good["native/mid/cgo.go"], "*.h", "*.c", 1)), "does not embed"},
		{"the folder above", with("native/top/x/cgo.go", strings.Replace(good["native/top/x/cgo.go"], "/../..", "/..", 1)), "don't end in"},
		{"Go code below", with("native/mid/cgo.go", good["native/mid/cgo.go"]+"func f() { C.f() }\n"), "uses C.f"},
		{"another Go file", with("native/mid/more.go", "package mid\n"), "no Go code but cgo.go"},
		{"no cgo.go", with("native/new/a.c", ""), "native/new/cgo.go is missing"},
		{"not built", with("native/new/a.c", "", "native/new/cgo.go", fmt.Sprintf(cgo, "new", "..")), "layers.go: does not import native/new"},
		{"eBPF", with("native/engine/xdp/bpf/a.c", "#include \"a.h\"\n"), ""},
		{"a circle", with("native/low/a.h", "#include \"mid/b.h\"\n", "native/low/cgo.go",
			fmt.Sprintf(cgo, "low", "..")+"import (\n_ \""+tree.Module+"/native/low\"\n_ \""+tree.Module+"/native/mid\"\n)\n"+embeds), "in a circle"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			faults := layerFaults(slices.Sorted(maps.Keys(c.files)), func(name string) string { return c.files[name] })
			if c.want == "in a circle" { // of which both sides have errors
				faults = slices.DeleteFunc(faults, func(f string) bool { return !strings.Contains(f, "native/low: ") })
			}
			wantFault(t, faults, c.want)
		})
	}
}

// put writes a file, and makes its folder.
func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fakeCC stands for gcc: an object is a hash of what would be compiled, which takes milliseconds. Other calls it passes on.
const fakeCC = `#!/bin/sh
object= source= last=
for a; do
    case $a in *.c) source=$a ;; esac
    [ "$last" = -o ] && object=$a
    last=$a
done
case " $* " in *" -c "*) ;; *) exec gcc "$@" ;; esac
case $source in *_cgo_*|*cgo-gcc*|'') exec gcc "$@" ;; esac
for a; do
    shift
    case $a in -c|"$object") continue ;; -o) continue ;; esac
    set -- "$@" "$a"
done
hash=$(gcc -E -P "$@" | sha256sum | cut -c 1-15)
echo ".quad 0x$hash" | as -o "$object"
`

// TestEngineLayersRebuild edits a header of each layer and checks which folders go build then makes again: all that see
// it, and no others.
func TestEngineLayersRebuild(t *testing.T) {
	files := tree.Files(t)
	layers, _ := engineLayers(files, func(name string) string { return tree.Read(t, name) })
	root := t.TempDir()
	for _, name := range files {
		if strings.HasPrefix(name, "native/") || strings.HasPrefix(name, "go.") {
			put(t, filepath.Join(root, name), tree.Read(t, name))
		}
	}
	cc := filepath.Join(root, "cc")
	put(t, cc, fakeCC)
	if err := os.Chmod(cc, 0o755); err != nil {
		t.Fatal(err)
	}
	ids := func() map[string]string {
		args := []string{"list", "-export", "-buildvcs=false", "-f", "{{.ImportPath}} {{.BuildID}}"}
		for dir := range layers {
			if dir != "native" {
				args = append(args, "./"+dir)
			}
		}
		list := exec.Command("go", args...)
		list.Dir, list.Env = root, append(os.Environ(), "CC="+cc)
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[strings.TrimPrefix(name, tree.Module+"/")] = id
		}
		return found
	}
	before := ids()
	for _, dir := range slices.Sorted(maps.Keys(layers)) {
		if dir == "native" || !layers[dir].headers {
			continue
		}
		i := slices.IndexFunc(layers[dir].files, func(f string) bool { return path.Ext(f) == ".h" })
		header := layers[dir].files[i]
		put(t, filepath.Join(root, header), tree.Read(t, header)+"struct trial {\n    int edited;\n};\n")
		after := ids()
		for _, other := range slices.Sorted(maps.Keys(before)) {
			rebuilt, should := before[other] != after[other], other == dir || layers[other].sees[dir]
			if rebuilt != should {
				t.Errorf("edit of %s: %s rebuilt: %v, want %v", header, other, rebuilt, should)
			}
		}
		before = after
	}
}
