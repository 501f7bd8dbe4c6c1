package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
)

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
	for _, section := range bindings.Reference() {
		for _, n := range section.Names {
			name := n.Name[strings.LastIndexByte(n.Name, '.')+1:] // without the library
			use := regexp.MustCompile(`[.:]` + name + `\b`)
			if section.Kind == "globals" {
				use = regexp.MustCompile(`\b` + name + `\b`)
			}
			if !use.MatchString(all.String()) {
				t.Errorf("%s: no script in testdata uses %s", section.Name, name)
			}
		}
	}
}
