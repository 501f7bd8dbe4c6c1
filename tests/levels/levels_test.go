package levels

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		pkg, pattern string
		want         Level
	}{
		{"./tests/gpunetio", "^TestGnOrder$/^whole$", Test},
		{"./tests/cli", "TestArm64", Deep},
		{"./tests/units", "^TestNative$/^plain$/^ring$", Deep},
		{"./tests/units", "^TestNative$/^asan+ubsan$/^ring$", Test},
		{"./tests/units", "TestNative", Test},
		{"./tests/vm", "TestRDMA", Deep},
		{"./bindings/suite", "TestMembers/virtual", Deep},
		{"./bindings/suite", "TestMembersOf", Test},
		{"./tests/language", "TestGlossary", Test},
		{"./tests/language", "TestLanguageRules", Deep},
		{"./runtime/spec", ".", Test},
	} {
		if got := Of(c.pkg, c.pattern); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.pkg, c.pattern, got, c.want)
		}
	}
}

// TestFuzzed: each fuzz target of the tree is run by the deep level.
func TestFuzzed(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	var found []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			pkg, _ := filepath.Rel("../..", filepath.Dir(path))
			found = append(found, pkg+" "+m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, f := range Fuzzed {
		listed = append(listed, f.Package+" "+f.Target)
	}
	slices.Sort(found)
	if !slices.Equal(found, listed) {
		t.Errorf("the tree has %q, Fuzzed %q", found, listed)
	}
}
