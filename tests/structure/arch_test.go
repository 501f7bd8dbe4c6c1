package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// A layer specifies what the Go packages below one top folder may import beside the standard library.
type layer struct {
	own     []string // other top folders, or single packages of theirs; its own folder is always allowed
	modules []string // third-party modules
	closed  bool     // of its own top folder only what own lists, and itself
}

// layers is the import table, by top folder; a folder below may have a row of its own. Reading downwards, each layer knows less about Lua and more about hardware.
var layers = map[string]layer{
	"cmd":              {own: []string{"host"}},
	"cmd/daqiri-bench": {own: []string{"host/exit", "host/state", "native", "runtime"}, modules: []string{"github.com/minio/minio-go", "github.com/spf13/cobra"}},
	"host": {
		own: []string{"bindings", "docs", "runtime", "scripts", "stdlib"},
		modules: []string{"github.com/go-analyze/charts", "github.com/peterh/liner", "github.com/pmezard/go-difflib", "github.com/sirupsen/logrus", "github.com/yuin/goldmark",
			"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/yuin/gopher-lua", "golang.org/x/sys", "golang.org/x/term"},
	},
	"bindings": {
		own:     []string{"runtime"},
		modules: []string{"github.com/yuin/gopher-lua", "layeh.com/gopher-luar"},
	},
	"bindings/format":     {closed: true, own: []string{"bindings/row", "runtime"}, modules: []string{"github.com/yuin/gopher-lua"}},
	"bindings/lua51":      {closed: true, own: []string{"runtime/memory", "runtime/textfile"}, modules: []string{"github.com/yuin/gopher-lua"}},
	"bindings/row":        {closed: true, own: []string{"bindings/lua51", "runtime"}, modules: []string{"github.com/yuin/gopher-lua"}},
	"bindings/samples":    {closed: true, own: []string{"runtime"}},
	"bindings/scriptargs": {closed: true, own: []string{"bindings/row", "runtime"}, modules: []string{"github.com/yuin/gopher-lua"}},
	"bindings/value": {closed: true, own: []string{"bindings/lua51", "bindings/row", "runtime"},
		modules: []string{"github.com/yuin/gopher-lua", "layeh.com/gopher-luar"}},
	"runtime": {own: []string{"native"}, modules: []string{"github.com/minio/minio-go", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel",
		"golang.org/x/image", "gopkg.in/yaml.v3"}},
	"native": {modules: []string{"github.com/cilium/ebpf", "golang.org/x/sys"}},
	"stdlib": {}, "scripts": {}, "docs": {},
	"tests":          {own: []string{"host/cli", "host/golden", "host/state", "runtime/spec"}, modules: []string{"golang.org/x/sys"}},
	"tests/programs": {own: []string{"bindings", "runtime", "stdlib"}},
}

// baselines is the folder of the peers of daqiri-bench in C: the only one but native/ that calls C.
const baselines = "cmd/daqiri-bench/internal/baseline"

// testOnly are the packages that only tests import, whatever the layer.
var testOnly = []string{"testing", "net/http/httptest", "github.com/google/go-cmp", "github.com/prometheus/client_model",
	"github.com/prometheus/common", tree.Module + "/native/inspect", tree.Module + "/tests/debian", tree.Module + "/tests/gpu", tree.Module + "/tests/harness", tree.Module + "/tests/nic/fake", tree.Module + "/tests/pty", tree.Module + "/tests/require", tree.Module + "/tests/tree", "github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema", "go.opentelemetry.io/proto", "google.golang.org/protobuf"}

// rootEntries are the names that may stand in the root beside dot files.
var rootEntries = []string{"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "bindings", "cmd", "docs", "go.mod", "go.sum", "host", "native",
	"python", "runtime", "scripts", "stdlib", "tests"}

// processOnly are the parts of the process that only host/state hands out.
var processOnly = map[string]*regexp.Regexp{
	"os":  regexp.MustCompile(`^(Exit|Args|Stdin|Stdout|Stderr)$`),
	"fmt": regexp.MustCompile(`^Print`),
}

// cInclude finds an include of a C source.
var cInclude = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]*\.c)"`)

func TestArchitecture(t *testing.T) {
	files := tree.Files(t)
	sources := 0
	for _, name := range files {
		if path.Ext(name) != ".go" || strings.Contains(name, "/testdata/") {
			continue
		}
		sources++
		showFaults(t, goFaults(name, tree.Read(t, name)))
	}
	if sources == 0 {
		t.Error("no Go file found")
	}
	showFaults(t, placeFaults(files))
	showFaults(t, crowdedFaults(files))
}

func TestReadmes(t *testing.T) {
	files := tree.Files(t)
	for _, top := range slices.Concat(rootEntries, tree.CFolders(files, "native"), tree.CFolders(files, "cmd"), []string{"cmd/daqiri-bench"}) {
		if !isFolder(files, top) {
			continue
		}
		t.Run(top, func(t *testing.T) {
			name := top + "/README.md"
			if !slices.Contains(files, name) {
				t.Fatalf("%s is missing", name)
			}
			showFaults(t, readmeFaults(top, tree.Read(t, name), files))
		})
	}
}

func showFaults(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// goFaults are the rules that one Go file breaks.
func goFaults(name, text string) []string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	fault := func(pos token.Pos, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s", fset.Position(pos), fmt.Sprintf(format, args...)))
	}
	top, _, _ := strings.Cut(name, "/")
	test := strings.HasSuffix(name, "_test.go")
	imports := map[string]string{} // local name → path
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			fault(spec.Pos(), "%v", err)
			continue
		}
		if why := importFault(path.Dir(name), p, test); why != "" {
			fault(spec.Pos(), "%s", why)
		}
		imports[path.Base(p)] = p
		if spec.Name != nil {
			imports[spec.Name.Name] = p
		}
	}
	for _, group := range file.Comments {
		if m := cInclude.FindStringSubmatch(group.Text()); m != nil && imports["C"] == "C" {
			fault(group.Pos(), "includes %q: a C source is compiled for itself", m[1])
		}
	}
	main := top == "cmd" && path.Base(name) == "main.go"
	if !test && !main && top != "tests" && path.Dir(name) != "host/state" {
		for _, use := range processUses(file, imports) {
			fault(use.Pos(), "uses %s.%s: the process edge belongs to host/state", use.X, use.Sel)
		}
	}
	if n := codeLines(fset, file, text); main && n > 15 {
		fault(file.Package, "has %d lines of code: main only hands over to the command line (15 at most)", n)
	}
	return faults
}

// importFault reports why a file in the folder dir may not import p, or "".
func importFault(dir, p string, test bool) string {
	within := func(p, parent string) bool { return p == parent || strings.HasPrefix(p, parent+"/") }
	isTestOnly := slices.ContainsFunc(testOnly, func(parent string) bool { return within(p, parent) })
	top, _, _ := strings.Cut(dir, "/")
	home := dir
	allowed, known := layers[home]
	for !known && home != "." {
		home = path.Dir(home)
		allowed, known = layers[home]
	}
	inside := top
	if allowed.closed {
		inside = home
	}
	calls := top == "native" || dir == baselines
	first, _, _ := strings.Cut(p, "/")
	own, isOwn := strings.CutPrefix(p, tree.Module+"/")
	switch {
	case !known:
		return fmt.Sprintf("imports %q: no Go package belongs in %s", p, dir)
	case p == "C" && !calls:
		return `imports "C": only native/ may`
	case isOwn && strings.HasPrefix(own, "native/") && !calls:
		return fmt.Sprintf("imports %q: the folders of the engine are native's", p)
	case isTestOnly && !test && top != "tests":
		return fmt.Sprintf("imports %q outside a test", p)
	case isTestOnly, p == "C", !isOwn && !strings.Contains(first, "."):
		return ""
	case isOwn && (within(own, inside) || slices.ContainsFunc(allowed.own, func(o string) bool { return within(own, o) })):
		return ""
	case !isOwn && slices.ContainsFunc(allowed.modules, func(m string) bool { return within(p, m) }):
		return ""
	}
	return fmt.Sprintf("imports %q: %s/ may import %s", p, home, strings.Join(append(slices.Clone(allowed.own),
		append(allowed.modules, "the standard library")...), ", "))
}

// processUses finds the uses of what processOnly names.
func processUses(file *ast.File, imports map[string]string) []*ast.SelectorExpr {
	var uses []*ast.SelectorExpr
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok {
			if names := processOnly[imports[pkg.Name]]; names != nil && names.MatchString(sel.Sel.Name) {
				uses = append(uses, sel)
			}
		}
		return true
	})
	return uses
}

// codeLines counts the lines that hold more than comment and space.
func codeLines(fset *token.FileSet, file *ast.File, text string) int {
	comment := map[int]bool{}
	for _, group := range file.Comments {
		for line := fset.Position(group.Pos()).Line; line <= fset.Position(group.End()).Line; line++ {
			comment[line] = true
		}
	}
	n := 0
	for i, line := range strings.Split(text, "\n") {
		s := strings.TrimSpace(line)
		if s != "" && (!comment[i+1] || !strings.HasPrefix(s, "//") && !strings.HasPrefix(s, "/*")) {
			n++
		}
	}
	return n
}

// placeFaults are the files that lie where none belongs.
func placeFaults(files []string) []string {
	var faults []string
	for _, name := range files {
		top, rest, _ := strings.Cut(name, "/")
		dir, base := path.Split(rest)
		fault := func(why string) { faults = append(faults, name+": "+why) }
		if !strings.HasPrefix(top, ".") && !slices.Contains(rootEntries, top) {
			fault("the root holds only dot files and " + strings.Join(rootEntries, ", "))
		}
		if (top == "host" || top == "runtime") && dir == "" && path.Ext(base) == ".go" {
			fault(top + "/ holds sub-packages only")
		}
	}
	return faults
}

// maxFiles is the largest number of files in a folder, those of its subfolders not counted.
const maxFiles = 45

// crowdedFaults are the folders with more than maxFiles files.
func crowdedFaults(files []string) (faults []string) {
	count := map[string]int{}
	for _, name := range files {
		count[path.Dir(name)]++
	}
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		if n := count[dir]; n > maxFiles {
			faults = append(faults, fmt.Sprintf("%s has %d files (expected at most %d): split it by subject", dir, n, maxFiles))
		}
	}
	return faults
}

// readmeFaults are the entries of a folder that its README should name and does not: every sub-folder, every C file
// below native/, every Go file in native/, every Lua file of stdlib/, and every Lua file below scripts/.
func readmeFaults(top, readme string, files []string) []string {
	listed := map[string]string{"native": ".c", "stdlib": ".lua"}
	if strings.HasPrefix(top, "native/") {
		listed[top] = ".c"
	}
	entries := map[string]bool{}
	for _, name := range files {
		rest, below := strings.CutPrefix(name, top+"/")
		if !below {
			continue
		}
		entry, _, folder := strings.Cut(rest, "/")
		goFace := top == "native" && path.Ext(entry) == ".go" && !strings.HasSuffix(entry, "_test.go")
		if folder || goFace || listed[top] != "" && path.Ext(entry) == listed[top] {
			entries[entry] = true
		}
		if top == "scripts" && path.Ext(rest) == ".lua" {
			entries[path.Base(rest)] = true
		}
	}
	delete(entries, "testdata")
	var faults []string
	for entry := range entries {
		word := regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(entry) + `\b`)
		if !word.MatchString(readme) {
			faults = append(faults, fmt.Sprintf("%s/README.md does not name %s", top, entry))
		}
	}
	slices.Sort(faults)
	return faults
}

func isFolder(files []string, name string) bool {
	return slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, name+"/") })
}
