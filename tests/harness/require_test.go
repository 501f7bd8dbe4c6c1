package harness

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/cunit"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// requireReader finds a use of DAQIRI_REQUIRE beside the one reader that each language has.
var requireReader = regexp.MustCompile(`etenv\("DAQIRI_REQUIRE"\)`)

// requireCall finds what C units ask for.
var requireCall = regexp.MustCompile(`dq_(?:lack|required)\("([^"]*)"`)

func TestRequire(t *testing.T) {
	vocabulary := tree.Read(t, "tests/README.md")
	for _, name := range require.Names {
		if !strings.Contains(vocabulary, "`"+name+"`") {
			t.Errorf("tests/README.md does not name %s", name)
		}
		if probes[name] == nil {
			t.Errorf("nothing probes for %s", name)
		}
	}
	if len(probes) != len(require.Names) {
		t.Errorf("%d probes, and tests/require lists %d names", len(probes), len(require.Names))
	}
	for _, name := range require.List() {
		t.Run(name, func(t *testing.T) {
			p, ok := probes[name]
			if !ok {
				t.Fatal("DAQIRI_REQUIRE names something that no test probes for: see tests/README.md")
			}
			if err := p(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRequireReaders: one reader of DAQIRI_REQUIRE a language, so that a name means the same everywhere.
func TestRequireReaders(t *testing.T) {
	readers := map[string]string{".go": "tests/require/require.go", ".c": "tests/native/dqtest.h", ".h": "tests/native/dqtest.h"}
	for _, name := range tree.Files(t) {
		reader, ok := readers[path.Ext(name)]
		if !ok {
			continue
		}
		text := tree.Read(t, name)
		if name != reader && requireReader.MatchString(text) {
			t.Errorf("%s reads DAQIRI_REQUIRE: %s does", name, reader)
		}
		if path.Ext(name) == ".go" {
			continue
		}
		for _, m := range requireCall.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(require.Names, m[1]) {
				t.Errorf("%s asks for %q, which tests/require does not list", name, m[1])
			}
		}
	}
}

// TestRequireInC: C units read the list as Go tests do.
func TestRequireInC(t *testing.T) {
	const source = `#include "dqtest.h"
int main(void) { dq_lack("ip", "not here"); }`
	for _, c := range []struct{ list, want string }{
		{"", "exit status 77"}, {"root,ipv6", "exit status 77"}, {"zip", "exit status 77"},
		{"ip", "exit status 1"}, {"root, ip,ipv6", "exit status 1"}, {"ipv6 ip", "exit status 1"},
	} {
		t.Setenv("DAQIRI_REQUIRE", c.list)
		out, err := cunit.Named("plain").Try(t.TempDir(), source)
		if err == nil || err.Error() != c.want || !strings.Contains(out, "skip: ip: not here") {
			t.Errorf("%q: %v, want %s:\n%s", c.list, err, c.want, out)
		}
	}
}
