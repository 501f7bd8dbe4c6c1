package structure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestArchitectureRules feeds each rule something bad, so that the tests above can fail, and its good neighbour.
func TestArchitectureRules(t *testing.T) {
	const ownImport = `package p; import _ "` + tree.Module
	goFiles := []struct{ name, file, text, want string }{
		{"downwards", "host/cli/run.go", ownImport + `/bindings"`, ""},
		{"skips a layer", "host/cli/run.go", ownImport + `/native"`, `imports "` + tree.Module + `/native": host/ may import`},
		{"upwards", "runtime/session/s.go", ownImport + `/bindings"`, "runtime/ may import native"},
		{"sideways", "native/a.go", ownImport + `/stdlib"`, "native/ may import"},
		{"downwards in bindings", "bindings/format/a.go", ownImport + `/bindings/row"`, ""},
		{"upwards in bindings", "bindings/row/a.go", ownImport + `/bindings/format"`, "bindings/row/ may import bindings/lua51"},
		{"from a package of bindings to all of it", "bindings/value/a.go", ownImport + `/bindings"`, "bindings/value/ may import"},
		{"same package of bindings", "bindings/lua51/a.go", ownImport + `/bindings/lua51/pattern"`, ""},
		{"same folder", "runtime/session/s.go", ownImport + `/runtime/spec"`, ""},
		{"name with the same start", "cmd/x/main.go", ownImport + `/hostile"`, "cmd/ may import host"},
		{"tests reach in", "tests/cli/x_test.go", ownImport + `/runtime/session"`, "tests/ may import host/cli"},
		{"cgo above native", "runtime/session/a.go", `package p; import "C"`, "only native/ may"},
		{"a folder of native", "runtime/session/a.go", ownImport + `/native/core"`, "are native's"},
		{"a folder of native in the baselines", baselines + "/a.go", ownImport + `/native/core"`, ""},
		{"C in the benchmark", "cmd/daqiri-bench/internal/bench/a.go", `package p; import "C"`, "only native/ may"},
		{"a library of the benchmark", "cmd/daqiri-bench/internal/command/a.go", `package p; import _ "github.com/spf13/cobra"`, ""},
		{"a folder of native in native", "native/a.go", ownImport + `/native/core"`, ""},
		{"cgo", "native/a.go", `package p; import "C"`, ""},
		{"module in its layer", "runtime/spec/a.go", `package p; import _ "gopkg.in/yaml.v3"`, ""},
		{"module elsewhere", "native/a.go", `package p; import _ "gopkg.in/yaml.v3"`, `"gopkg.in/yaml.v3": native/ may`},
		{"test package", "host/cli/run.go", `package p; import _ "testing"`, "outside a test"},
		{"test package in a test", "host/cli/run_test.go", `package p; import _ "testing"`, ""},
		{"Go where none belongs", "captures/a.go", `package p; import _ "fmt"`, "no Go package belongs in captures"},
		{"exit", "host/cli/run.go", `package p; import "os"; func f() { os.Exit(1) }`, "uses os.Exit"},
		{"exit, renamed", "bindings/a.go", `package p; import x "os"; func f() { x.Exit(1) }`, "uses x.Exit"},
		{"print", "bindings/a.go", `package p; import "fmt"; func f() { fmt.Println() }`, "uses fmt.Println"},
		{"format only", "bindings/a.go", `package p; import "fmt"; var _ = fmt.Sprint()`, ""},
		{"process edge", "host/state/a.go", `package p; import "os"; var _ = os.Stdin`, ""},
		{"long main", "cmd/x/main.go", "package main\n" + strings.Repeat("var _ = 0\n", 15), "has 16 lines"},
		{"long comment", "cmd/x/main.go", "package main\n" + strings.Repeat("// why\n", 20), ""},
		{"include of a source", "native/a.go", "package p\n// #include \"x.c\"\nimport \"C\"", `includes "x.c"`},
		{"include", "native/a.go", "package p\n// #include \"dq.h\"\nimport \"C\"", ""},
	}
	for _, c := range goFiles {
		t.Run(c.name, func(t *testing.T) { wantFault(t, goFaults(c.file, c.text), c.want) })
	}
	places := []struct{ name, file, want string }{
		{"package named host", "host/a.go", "sub-packages only"},
		{"stray root file", "notes.txt", "the root holds only"},
		{"dot file", ".clang-format", ""},
	}
	for _, c := range places {
		t.Run(c.name, func(t *testing.T) { wantFault(t, placeFaults([]string{c.file}), c.want) })
	}
	readmes := []struct{ name, top, readme, file, want string }{
		{"unnamed folder", "host", "`client`", "host/cli/a.go", "does not name cli"},
		{"named folder", "host", "`cli/`: the command line", "host/cli/a.go", ""},
		{"unnamed C file", "native", "`spring.c`", "native/ring.c", "does not name ring.c"},
		{"unnamed C file of a folder", "native/core", "`spring.c`", "native/core/ring.c", "does not name ring.c"},
		{"named C file", "native/core", "| `ring.c` |", "native/core/ring.c", ""},
	}
	for _, c := range readmes {
		t.Run(c.name, func(t *testing.T) { wantFault(t, readmeFaults(c.top, c.readme, []string{c.file}), c.want) })
	}
}

func TestCrowdedFolders(t *testing.T) {
	full := make([]string, maxFiles)
	for k := range full {
		full[k] = fmt.Sprintf("host/a/%d.go", k)
	}
	wantFault(t, crowdedFaults(append(full, "host/a/b/c.go")), "")
	wantFault(t, crowdedFaults(append(full, "host/a/c.go")), "host/a has 46 files")
}

// wantFault checks that exactly one error was found and contains want, or none where want is empty.
func wantFault(t *testing.T, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) != 0:
		t.Errorf("got %q, want no fault", faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("got %q, want one fault with %q", faults, want)
	}
}
