package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// TestRows checks that each name has words and an example, that each argument, option and result has a known type, and that arguments and options
// have a unit or words.
func TestRows(t *testing.T) {
	known := knownTypes()
	for _, s := range bindings.Reference() {
		if s.Title == "" || s.Words == "" {
			t.Errorf("%s has no title or no words", s.Name)
		}
		for _, n := range s.Names {
			for _, problem := range rowErrors(&n, known) {
				t.Errorf("%s%s: %s", s.Prefix(&n), n.Name, problem)
			}
		}
		for _, v := range s.Elements {
			for _, problem := range typeErrors(&v, known) {
				t.Errorf("%s: element %s: %s", s.Name, v.Name, problem)
			}
		}
	}
	for _, s := range row.Shapes() {
		n := row.Name{Words: s.Words, Example: s.Example, Options: s.Keys, Results: []row.Value{{Type: s.Type}}}
		if s.Type == "" {
			n.Results = nil
		}
		for _, problem := range rowErrors(&n, known) {
			t.Errorf("type %s: %s", s.Name, problem)
		}
	}
}

func knownTypes() []string {
	known := []string{"any", "boolean", "function", "fun", "integer", "nil", "number", "string", "table", "true", "false"}
	for _, s := range bindings.Reference() {
		known = append(known, s.Name)
	}
	for _, s := range row.Shapes() {
		known = append(known, s.Name)
	}
	return known
}

func rowErrors(n *row.Name, known []string) (problems []string) {
	if n.Words == "" {
		problems = append(problems, "no words")
	}
	if n.Example == "" {
		problems = append(problems, "no example")
	}
	if n.Field && len(n.Results) != 1 {
		problems = append(problems, "a field holds one value")
	}
	for _, v := range slices.Concat(n.Args, n.Options) {
		for _, problem := range typeErrors(&v, known) {
			problems = append(problems, v.Name+": "+problem)
		}
		if v.Unit == "" && v.Words == "" {
			problems = append(problems, v.Name+": neither unit nor words")
		}
	}
	for _, v := range n.Results {
		problems = append(problems, typeErrors(&v, known)...)
	}
	return problems
}

var (
	typeText  = regexp.MustCompile(`"[^"]*"`)
	parameter = regexp.MustCompile(`[a-z_]+: `) // in fun(b: burst)
	typeName  = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)
)

// typeErrors returns what is wrong with the type of the value: it is missing, or names an unknown type.
func typeErrors(v *row.Value, known []string) (problems []string) {
	if v.Type == "" {
		problems = append(problems, "no type")
	}
	for _, name := range typeName.FindAllString(parameter.ReplaceAllString(typeText.ReplaceAllString(v.Type, ""), ""), -1) {
		if !slices.Contains(known, name) {
			problems = append(problems, fmt.Sprintf("%q is not a type", name))
		}
	}
	return problems
}

// TestRowErrors checks that missing parts of a row are detected.
func TestRowErrors(t *testing.T) {
	for text, want := range map[string]string{
		"> x()":                                   "no words",
		"Words.":                                  "no example",
		"- a \nWords.\n> x()":                     "a: no type",
		"- a strin: one\nWords.\n> x()":           `a: "strin" is not a type`,
		". key string\nWords.\n> x()":             "key: neither unit nor words",
		"-> burst | failed\nWords.\n> x()":        `"failed" is not a type`,
		"- f fun(b: brst): a\nWords.\n> x()":      `f: "brst" is not a type`,
		"- a \"x\" | size: one\nWords.\n> x()":    "",
		"- a table<string, place>: one\nW\n> x()": "",
	} {
		n, err := row.Parse("x", text)
		got := strings.Join(rowErrors(&n, knownTypes()), "; ")
		if err != nil {
			got = "a: no type"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestOptionsRead checks that the code reads every option listed in a row (unlisted options are refused).
func TestOptionsRead(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	below, err2 := filepath.Glob("../*/*.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	files = append(files, below...)
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(readScript(t, file))
		}
	}
	text := regexp.MustCompile("(?s)`[^`]*`").ReplaceAllString(code.String(), "")
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			for _, o := range n.Options {
				if !o.OfMore() && !strings.Contains(text, `"`+o.Name+`"`) {
					t.Errorf("%s%s: the option %s is never read", s.Prefix(&n), n.Name, o.Name)
				}
			}
		}
	}
}

// TestExamples runs the example of every name with the objects of testdata/api/example.lua. None may raise.
func TestExamples(t *testing.T) {
	source := readScript(t, "testdata/api/example.lua")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(memoryDir(t))                    // examples write to "captures"
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // and have sockets there
	path := lua.LString(here + "/testdata/?.lua")
	example := func(name, kind, text string) {
		t.Run(name, func(t *testing.T) {
			if text == "" {
				t.Fatal("no example")
			}
			o := onStand(t, "example.lua", source, map[string]lua.LValue{"example_kind": lua.LString(kind), "example": lua.LString(text), "module_path": path})
			if _, asked := o.shared.Exit(); o.err != nil && !(asked && name == "os.exit") {
				t.Errorf("%s\n%v\nit printed:\n%s", text, o.err, o.out)
			}
			if strings.Contains(o.log, "error:") {
				t.Error(o.log)
			}
			balanced(t, o)
		})
	}
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			kind := "virtual"
			if s.Name == "connection" || s.Name == "lease" || n.Name == "connect" || n.Name == "on_connection" {
				kind = "tcp"
			}
			if s.Name == "semaphore" || s.Name == "kernel" && (n.Name == "start" || n.Name == "stop" || n.Name == "wait") {
				kind = "loop"
			}
			example(s.Prefix(&n)+n.Name, kind, n.Example)
		}
	}
	for _, s := range row.Shapes() {
		example(s.Name, "virtual", s.Example)
	}
}
