package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	onePass  = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	oneSkip  = `{"Action":"output","Package":"p","Test":"TestB/c","Output":"    b_test.go:2: nc: not installed\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestB/c"}` + "\n"
	packages = `{"Action":"pass","Package":"p","Elapsed":0}` + "\n"
)

func TestDemands(t *testing.T) {
	for _, c := range []struct {
		name, in, skips string
		floor           int
		want            string // a part of the error; "": none
	}{
		{"nothing passed", packages, "", 1, "no test passed"},
		{"only a skip", oneSkip + packages, "", 1, "no test passed"},
		{"nothing passed, no floor", packages, "", 0, "no test passed"},
		{"at the floor", onePass + onePass + packages, "", 2, ""},
		{"below the floor", onePass + onePass + packages, "", 3, "2 tests passed, and at least 3 have to"},
		{"no list", onePass + oneSkip, "", 1, ""},
		{"listed", onePass + oneSkip, "TestB/.*: not installed # why", 1, ""},
		{"an empty list", onePass + oneSkip, "# none", 1, "TestB/c skipped, which the list of skips does not know: nc: not installed"},
		{"listed for another reason", onePass + oneSkip, "TestB/.*: no root", 1, "TestB/c skipped"},
		{"another test is listed", onePass + oneSkip, "TestB: not installed", 1, "TestB/c skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := demands{floor: c.floor}
			if c.skips != "" {
				d.skips = listOf(t, c.skips)
			}
			p, err := report(strings.NewReader(c.in), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(d.check(p))
			if c.want == "" && said != "<nil>" || !strings.Contains(said, c.want) {
				t.Errorf("%s, want %q", said, c.want)
			}
		})
	}
}

func listOf(t *testing.T, text string) []skip {
	t.Helper()
	name := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := readSkips(name)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestReadSkips(t *testing.T) {
	name := filepath.Join(t.TempDir(), "skips")
	for _, c := range []struct{ text, want string }{
		{"# all is well\n\nTestA: nc", ""},
		{"TestA", `skips:1: no "TEST: REASON"`},
		{"\nTest(A: nc", "skips:2: error parsing regexp"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readSkips(name); c.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if list := listOf(t, "#"); list == nil || len(list) != 0 {
		t.Errorf("%v: an empty list allows nothing, and no list anything", list)
	}
	if _, err := readSkips(name + "x"); err == nil {
		t.Error("a list that is not there is read")
	}
}

// TestReportFails runs the command as the Makefile does, on a module of its own: what it ends with is what stops `make test`.
func TestReportFails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.24\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\nfunc TestB(t *testing.T) { t.Skip(\"no luck\") }\nfunc TestC(t *testing.T) { t.Error() }\n",
		"skips":     "TestB: no luck\n",
		"none":      "# none\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "report")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		args string
		ok   bool
		want string
	}{
		{"-- -run TestA .", true, "1 passed, 0 failed, 0 skipped"},
		{"-- -run TestNobody .", false, "report: no test passed"},
		{"-- -run TestB .", false, "report: no test passed"},
		{"-floor 2 -- -run Test[AB] .", false, "report: 1 tests passed, and at least 2 have to"},
		{"-floor 1 -skips skips -- -run Test[AB] .", true, "1 passed, 0 failed, 1 skipped"},
		{"-floor 1 -skips none -- -run Test[AB] .", false, "report: TestB skipped"},
		{"-floor 1 -skips skips -- .", false, "go test: exit status 1"},
		{"-skips nowhere -- -run TestA .", false, "report: open nowhere"},
	} {
		cmd := exec.Command(program, strings.Fields(c.args)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %v and %q:\n%s", c.args, err, c.ok, c.want, out)
		}
	}
}
