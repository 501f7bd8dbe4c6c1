package language

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

var update = flag.Bool("update", false, "write the rule Terms and the budget")

const (
	rules      = ".vale/styles/daqiri/"
	termsFile  = rules + "Terms.yml"
	budgetFile = "tests/language/budget.txt"
	updating   = "go test ./tests/language -update"
)

// TestGlossary: the rule Terms is up to date with the glossary, and the other rules that it names exist.
func TestGlossary(t *testing.T) {
	list, err := parseGlossary(tree.Read(t, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.rule != "" && !slices.Contains(tree.Files(t), rules+s.rule+".yml") {
			t.Errorf("docs/glossary.md: %s: no rule %s in %s", s.term, s.rule, rules)
		}
	}
	want := termsRule(list)
	if *update {
		write(t, termsFile, want)
	}
	if tree.Read(t, termsFile) != want {
		t.Errorf("%s is not up to date with docs/glossary.md: %s", termsFile, updating)
	}
}

// TestLanguage: the project has exactly the findings that budget.txt allows.
func TestLanguage(t *testing.T) {
	files := slices.DeleteFunc(slices.Clone(tree.Files(t)), func(name string) bool { return !covered(name) })
	found, err := lint(valeOf(t), tree.Root, files)
	if err != nil {
		t.Fatal(err)
	}
	report := saveReport(t, found)
	if *update {
		write(t, budgetFile, count(found).String())
	}
	allowed, err := parseBudget(tree.Read(t, budgetFile))
	if err != nil {
		t.Fatal(err)
	}
	more, fewer := compare(allowed, count(found))
	for _, p := range more {
		of := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.place() != p })
		t.Errorf("%s: %d findings, %d allowed; all of them are in %s, the last ones:", p, len(of), allowed[p], report)
		for _, f := range of[max(0, len(of)-10):] {
			t.Log(f)
		}
	}
	for _, p := range fewer {
		t.Errorf("%s: %d findings, fewer than the %d allowed: %s", p, count(found)[p], allowed[p], updating)
	}
}

// valeOf returns the path of vale, or ends t.
func valeOf(t *testing.T) string {
	t.Helper()
	vale, err := command()
	if err != nil {
		require.Lack(t, "vale", err.Error())
	}
	return vale
}

// saveReport writes all findings to a file of the folder build and returns its name.
func saveReport(t *testing.T, found []finding) string {
	t.Helper()
	const name = "build/language.txt"
	if err := os.MkdirAll(filepath.Join(tree.Root, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintln(&b, f)
	}
	write(t, name, b.String())
	return name
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(tree.Root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
