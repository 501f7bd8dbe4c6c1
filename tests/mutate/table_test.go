package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestTable: every fault of the table still applies, and the tests that should see it are there.
func TestTable(t *testing.T) {
	faults, err := readTable(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		text, err := os.ReadFile(filepath.Join(root, f.file))
		if err != nil {
			t.Errorf("%s: %v", f.where, err)
			continue
		}
		if _, err := f.apply(string(text)); err != nil {
			t.Error(err)
		}
		for _, s := range f.sees {
			if why := missing(t, s); why != "" {
				t.Errorf("%s: %s: %s", f.where, f.name, why)
			}
		}
	}
	t.Logf("%d faults", len(faults))
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// missing reports what a sight lacks, or "".
func missing(t *testing.T, s sight) string {
	there := func(name string) string {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return err.Error()
		}
		return ""
	}
	switch s.kind {
	case "c":
		for _, below := range []string{"", "*/", "*/*/"} {
			if found, _ := filepath.Glob(filepath.Join(root, "tests/native", below, s.args[0]+"_test.c")); len(found) == 1 {
				return ""
			}
		}
		return "no C unit " + s.args[0]
	case "golden":
		return there(strings.TrimSuffix(s.args[0], ".lua") + ".golden")
	}
	first, _, _ := strings.Cut(s.args[1], "/")
	pattern, err := regexp.Compile(first)
	if err != nil {
		return err.Error()
	}
	sources, err := filepath.Glob(filepath.Join(root, s.args[0], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			if pattern.MatchString(m[1]) {
				return ""
			}
		}
	}
	return s.args[0] + " has no test that matches " + first
}

func TestParseTable(t *testing.T) {
	const good = "# words\n\nlost: a packet is lost\nfile a.c\n-\tn = 1;\n-\n-x\n+\tn = 2;\nsee c ring\nsee go ./tests TestA/b\n"
	faults, err := parseTable("a.txt", good)
	if err != nil || len(faults) != 1 {
		t.Fatal(faults, err)
	}
	f := faults[0]
	if f.name != "lost" || f.before != "\tn = 1;\n\nx" || f.after != "\tn = 2;" || len(f.sees) != 2 || f.where != "a.txt:3" {
		t.Errorf("%+v", f)
	}
	if got, err := f.apply("y\n\tn = 1;\n\nx\n"); err != nil || got != "y\n\tn = 2;\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"\tn = 1;\n\nx\tn = 1;\n\nx", "nothing of it"} {
		if _, err := f.apply(text); err == nil {
			t.Errorf("applies to %q", text)
		}
	}
	for _, bad := range []string{
		"lost a packet\n",
		"lost: no file\n-a\n+b\nsee c ring\n",
		"lost: no change\nfile a.c\n-a\n+a\nsee c ring\n",
		"lost: nobody sees it\nfile a.c\n-a\n+b\n",
		"lost: a word too many\nfile a.c\n-a\n+b\nsee c ring buffer\n",
		"lost: an unknown line\nfile a.c\nx\n-a\n+b\nsee c ring\n",
	} {
		if faults, err := parseTable("a.txt", bad); err == nil {
			t.Errorf("%q: %+v", bad, faults)
		}
	}
}

// TestJudge: a fault counts as seen only where the test was built, was run, and passes without the fault.
func TestJudge(t *testing.T) {
	s := sight{"go", []string{"./tests", "TestA"}}
	failed := os.ErrInvalid
	for _, c := range []struct {
		output string
		failed error
		sound  error
		seen   bool
	}{
		{"--- FAIL: TestA", failed, nil, true},
		{"--- FAIL: TestA", failed, failed, false},
		{"ok", nil, nil, false},
		{"--- SKIP: TestA", nil, nil, false},
		{"native/ring.c:7:3: error: x", failed, nil, false},
		{"FAIL tests [build failed]", failed, nil, false},
	} {
		b := &bench{sound: map[string]error{s.String(): c.sound}}
		if seen, how := b.judge("", s, c.output, c.failed); seen != c.seen {
			t.Errorf("%+v: %v, %s", c, seen, how)
		}
	}
}
