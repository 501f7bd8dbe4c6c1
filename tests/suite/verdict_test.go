package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/levels"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// ends are the events of a test that ends so.
func ends(test, action string, output ...string) string {
	var b strings.Builder
	for _, text := range output {
		fmt.Fprintf(&b, `{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", test, text+"\n")
	}
	fmt.Fprintf(&b, `{"Action":%q,"Package":"p","Test":%q}`+"\n", action, test)
	return b.String()
}

func verdictOf(t *testing.T, events string) *verdict {
	t.Helper()
	v, err := newVerdict(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerdictCounts(t *testing.T) {
	v := verdictOf(t, ends("TestA", "pass")+ends("TestB", "fail", "wrong")+ends("TestC", "skip", "    c_test.go:1: nc: not installed")+
		ends("TestD/x", "fail", "first")+ends("TestD", "fail")+"a message of the go command\n"+
		ends("TestD/x", "pass")+ends("TestD", "pass"))
	if p, f, s := v.counts(); p != 3 || f != 1 || s != 1 {
		t.Errorf("%d passed, %d failed, %d skipped", p, f, s)
	}
	flaky := v.flaky()
	if !slices.Equal(flaky, []testName{{"p", "TestD/x"}}) {
		t.Errorf("flaky: %v", flaky)
	}
	if text := v.flakyReport(flaky); !strings.Contains(text, "== p TestD/x: fail, pass\nfirst\n") {
		t.Errorf("report: %q", text)
	}
	if reason := v.skips[testName{"p", "TestC"}]; reason != "nc: not installed" {
		t.Errorf("reason: %q", reason)
	}
}

func TestVerdictFaults(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(".ci", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(".ci/skips", []byte("# none but\nTestB/.*: not installed # why\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	many := ""
	for i := range levels.Floor[levels.Test] {
		many += ends(fmt.Sprint("Test", i), "pass")
	}
	flaky := ""
	for i := range mostFlaky {
		flaky += ends(fmt.Sprint("TestF", i), "fail") + ends(fmt.Sprint("TestF", i), "pass")
	}
	for _, c := range []struct {
		name, ci, events string
		failed           error
		want             string // a part of the errors; "": none
	}{
		{"all passed", "true", many, nil, ""},
		{"below the floor", "true", ends("TestA", "pass"), nil, "1 tests passed, at least"},
		{"below the floor, by hand", "", ends("TestA", "pass"), nil, ""},
		{"nothing passed", "", ends("TestA", "skip", "x"), nil, "no test passed"},
		{"one failed", "", many + ends("TestA", "fail"), nil, "1 tests failed"},
		{"a package did not build", "", many, errors.New("exit status 1"), "did not build"},
		{"a package failed outside of its tests, and passed with none", "", many + `{"Action":"fail","Package":"p"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n", nil,
			"p failed outside of its tests"},
		{"a package failed by a flaky test", "", many + ends("TestA", "fail") + `{"Action":"fail","Package":"p"}` + "\n" + ends("TestA", "pass") +
			`{"Action":"pass","Package":"p"}` + "\n", nil, ""},
		{"an allowed skip", "true", many + ends("TestB/c", "skip", "b_test.go:2: nc: not installed"), nil, ""},
		{"for another reason", "true", many + ends("TestB/c", "skip", "b_test.go:2: no luck"), nil, "p TestB/c skipped, which .ci/skips does not allow: no luck"},
		{"another test", "true", many + ends("TestC", "skip", "nc: not installed"), nil, "p TestC skipped"},
		{"as many flaky tests as may be", "true", many + flaky, nil, ""},
		{"one more", "true", many + flaky + ends("TestG", "fail") + ends("TestG", "fail") + ends("TestG", "pass"), nil, "4 tests are flaky"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			v := verdictOf(t, c.events)
			reasons := errors.Join(v.reasons(levels.Test, v.flaky(), c.failed)...)
			if c.want == "" && reasons != nil || !strings.Contains(fmt.Sprint(reasons), c.want) {
				t.Errorf("%v, want %q", reasons, c.want)
			}
		})
	}
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
	if _, err := readSkips(name + "x"); err == nil {
		t.Error("a list that is not there is read")
	}
}

// TestRerun: a test that fails once is run again by its name, and found to be flaky; one that fails again fails the run.
func TestRerun(t *testing.T) {
	if _, err := tool(context.Background(), "tests/tools", "gotestsum"); err != nil {
		t.Skip("gotestsum: ", err)
	}
	const script = `#!/bin/sh
# Prints the events of two tests, of which the second fails at first; called again it runs that one alone.
echo "$*" >>"$0.calls"
event() { echo "{\"Action\":\"$1\",\"Package\":\"p#tag\",\"Test\":\"$2\"}"; }
[ $# = 0 ] && event pass TestA
if [ $# = 0 ] || [ "$LASTS" ]; then event fail TestB/c; event fail TestB; echo '{"Action":"fail","Package":"p#tag"}'; exit 1; fi
event pass TestB/c; event pass TestB; echo '{"Action":"pass","Package":"p#tag"}'
`
	for _, c := range []struct {
		lasts, flaky string
		passes       bool
		calls        string
	}{
		{"", "", true, "\n-test.run=^TestB$/^c$ p#tag\n"},
		{"1", "", false, "\n-test.run=^TestB$/^c$ p#tag\n-test.run=^TestB$/^c$ p#tag\n"},
		{"", "0", false, "\n"},
	} {
		dir := t.TempDir()
		program, json := filepath.Join(dir, "raw"), filepath.Join(dir, "events.json")
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("LASTS", c.lasts)
		t.Setenv("FLAKY", c.flaky)
		err := throughGotestsum(context.Background(), json, program)
		if (err == nil) != c.passes {
			t.Errorf("%+v: %v", c, err)
		}
		if calls, _ := os.ReadFile(program + ".calls"); string(calls) != c.calls {
			t.Errorf("%+v: calls %q", c, calls)
		}
		v, err := readVerdict(json)
		if err != nil {
			t.Fatal(err)
		}
		if flaky := v.flaky(); (len(flaky) == 1 && flaky[0].test == "TestB/c") != c.passes {
			t.Errorf("%+v: flaky %v", c, flaky)
		}
	}
}

// TestGroups: every test of the project runs in some group of a level, and those of the level deep are there.
func TestGroups(t *testing.T) {
	t.Chdir(tree.Root)
	packages, err := testedPackages(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tests/structure", "runtime/session/contract", "bindings"} {
		if !slices.Contains(packages, want) {
			t.Errorf("%s is no tested package of %d", want, len(packages))
		}
	}
	for _, apart := range levels.Apart {
		in := slices.ContainsFunc(levels.Selections(levels.Test), func(s levels.Selection) bool { return slices.Contains(s.Packages, apart) }) ||
			levels.Of(apart, "TestAnything") == levels.Deep
		if slices.Contains(packages, apart) || !in {
			t.Errorf("%s runs twice, or in no selection", apart)
		}
	}
	for _, d := range levels.DeepOnly {
		ran := slices.ContainsFunc(levels.Selections(levels.Deep), func(s levels.Selection) bool {
			return slices.Contains(s.Packages, d.Package) && (s.Run != "" || d.Package == "tests/vm")
		})
		if !ran {
			t.Errorf("the level deep does not run %s %s", d.Package, d.Pattern)
		}
	}
	files, err := testsByFile("tests/cli")
	if err != nil || len(files) < 15 || !slices.Contains(files["limits_test.go"], "TestLimits") || slices.Contains(files["cli_test.go"], "TestMain") {
		t.Errorf("%d files, %v", len(files), err)
	}
}
