package golden

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestVerdicts checks the verdict of one script per case, with the golden files next to it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		files  map[string]string
		status Status
		reason string   // complete line
		report []string // parts of the report
	}{
		{"same", map[string]string{"a.lua": "echo hi", "a.golden": "hi\n"}, Passed, "", []string{"ok   ", "1 passed, 0 failed\n"}},
		{"stdout", map[string]string{"a.lua": "echo one; echo 2; echo why >&2", "a.golden": "one\ntwo\n"}, Failed, "stdout differs",
			[]string{"FAIL ", "    --- a.golden\n    +++ output\n    @@ -1,2 +1,2 @@\n     one\n    -two\n    +2\n", "    stderr:\n      why\n"}},
		{"no newline", map[string]string{"a.lua": "printf hi", "a.golden": "hi\n"}, Failed, "stdout differs",
			[]string{"    -hi\n", `\ no newline at the end`}},
		{"exit code", map[string]string{"a.lua": "exit 3", "a.golden": ""}, Failed, "exit code 3, want 0", nil},
		{"wanted exit code", map[string]string{"a.lua": "exit 3", "a.golden": "", "a.exit": "3\n"}, Passed, "", nil},
		{"bad exit file", map[string]string{"a.lua": "", "a.golden": "", "a.exit": "three"}, Failed,
			`DIR/a.exit: "three" is not an exit code (0..255)`, nil},
		{"both", map[string]string{"a.lua": "echo x; exit 1", "a.golden": ""}, Failed, "exit code 1, want 0; stdout differs", nil},
		{"skipped", map[string]string{"a.lua": "echo no GPU; exit 77", "a.golden": "x"}, Skipped, "no GPU",
			[]string{"skip ", "0 passed, 0 failed, 1 skipped\n"}},
		{"signal", map[string]string{"a.lua": "echo last words; kill -SEGV $$", "a.golden": "last words\n"}, Failed,
			"killed by signal 11 (segmentation fault)", []string{"stdout until then:\n", "last words"}},
		{"arguments", map[string]string{"a.lua": `for a in "$@"; do echo "[$a]"; done; echo $SPEED`, "a.golden": "[-x]\n[two words]\n9\n",
			"a.args": "-x\nenv SPEED=9\ntwo words\n"}, Passed, "", nil},
		{"free port", map[string]string{"a.lua": `[ "$1" = "$P" ] && echo $1`, "a.golden": "{{[0-9]{4,5}}}\n", "a.args": "{{port}}\nenv P={{port}}\n"}, Passed, "", nil},
		{"bad env line", map[string]string{"a.lua": "", "a.golden": "", "a.args": "env SPEED\n"}, Failed,
			`DIR/a.args:1: "env SPEED" is not of the form env KEY=VALUE`, nil},
		{"too much", map[string]string{"a.lua": "while echo 0123456789012345678901234567890123456789012345678901234567890123456789; do :; done",
			"a.golden": ""}, Failed, "wrote more than 8 MiB to one stream", []string{"of stdout:"}},
		{"left behind", map[string]string{"a.lua": "sleep 1000 & echo $! >&2", "a.golden": ""}, Failed,
			"left a process behind that held its output open; it was killed", nil},
		{"file that leaves", map[string]string{"a.lua": "", "a.golden": "", "a.files": "../x\n"}, Failed,
			`DIR/a.files:1: "../x" leaves the folder that the script runs in`, nil},
		{"file not written", map[string]string{"a.lua": "", "a.golden": "", "a.files": "x\n", "a.files.d/x": ""}, Failed,
			"did not write x", nil},
		{"text file", map[string]string{"a.lua": "echo 1 > x", "a.golden": "", "a.files": "x\n", "a.files.d/x": "2\n"}, Failed,
			"x differs", []string{"    -2\n    +1\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, c.files)
			res, report := runTests(t, dir, nil)
			if len(res.Tests) != 1 {
				t.Fatalf("%d tests, want 1", len(res.Tests))
			}
			got := res.Tests[0]
			if got.Status != c.status || got.Reason != strings.ReplaceAll(c.reason, "DIR", dir) {
				t.Errorf("status %v, reason %q; want %v, %q\n%s", got.Status, got.Reason, c.status, c.reason, report)
			}
			contains(t, report, c.report...)
		})
	}
}

// TestSandbox checks that a script has only the documented environment and an empty folder, which is removed afterwards.
func TestSandbox(t *testing.T) {
	t.Setenv("DAQIRI_GOLDEN_LEAK", "1")
	dir := tree(t, map[string]string{"a.golden": "", "a.lua": `
		env | sed 's/=.*//' | sort | grep -v '^_$' | tr '\n' ' '; echo
		[ "$PWD" = "$HOME" ] && [ "$(pwd)" = "$HOME" ] && echo home
		[ -z "$(ls -A)" ] && [ -d "$TMPDIR" ] && echo empty
		touch "$TMPDIR/x" y; echo "$HOME" >&2`})
	runTests(t, dir, func(o *Options) { o.Update = true })
	want := "DAQIRI_TEST HOME PATH PWD TMPDIR \nhome\nempty\n"
	if diff := cmp.Diff(want, readFile(t, dir, "a.golden")); diff != "" {
		t.Error(diff)
	}
	res, _ := runTests(t, dir, nil)
	home := strings.TrimSpace(res.Tests[0].Stderr)
	if _, err := os.Stat(filepath.Dir(home)); !os.IsNotExist(err) {
		t.Errorf("%s: still there (%v)", home, err)
	}
}

// TestTimeout checks that a hanging test and its child processes are killed.
func TestTimeout(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.golden": "", "a.lua": "sleep 1000 & echo $!; wait"})
	res, report := runTests(t, dir, func(o *Options) { o.Timeout = 300 * time.Millisecond })
	test := res.Tests[0]
	if test.Status != Failed || test.Reason != "timed out after 300ms and was killed" {
		t.Fatalf("%v %q\n%s", test.Status, test.Reason, report)
	}
	_, text, _ := strings.Cut(test.Detail, "then:\n")
	child, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Skipf("the script did not come to print its child's id in time: %q", test.Detail)
	}
	for range 10000 { // the adopting process may be slow to reap it
		if syscall.Kill(child, 0) != nil || zombie(child) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("process %d lives on", child)
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.golden": "", "a.lua": "sleep 1000", "b.golden": "", "b.lua": "sleep 1000"})
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped by a signal")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(ctx, Options{Exe: exe, SearchPath: os.Getenv("PATH"), Paths: []string{dir}, Jobs: 1, Stdout: &strings.Builder{}})
	if !errors.Is(err, stopped) || err.Error() != "tests stopped after 0 of 2: stopped by a signal" || len(res.Tests) != 0 {
		t.Errorf("error %v, tests %v", err, res.Tests)
	}
}

// TestOrderAndSearch checks that results are sorted by name regardless of their duration, that subfolders are searched, and that golden files are
// not taken for tests.
func TestOrderAndSearch(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"a.lua": "sleep 0.2", "a.golden": "", "b.lua": "", "b.golden": "", "sub/c.lua": "", "sub/c.golden": "",
		"d.lua": "exit 1", ".git/e.lua": "", ".git/e.golden": "", "b.files.d/f.lua": "", "b.files.d/f.golden": "",
	})
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"all", func(o *Options) { o.Jobs = 4 }, []string{"a.lua", "b.lua", "c.lua"}},
		{"filter", func(o *Options) { o.Filter = regexp.MustCompile("sub/") }, []string{"c.lua"}},
		{"file", func(o *Options) { o.Paths = []string{filepath.Join(dir, "b.lua")} }, []string{"b.lua"}},
		{"twice", func(o *Options) { o.Paths = []string{dir, filepath.Join(dir, "b.lua"), dir + "/sub"} }, []string{"a.lua", "b.lua", "c.lua"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, report := runTests(t, dir, c.change)
			if diff := cmp.Diff(c.want, names(res)); diff != "" || res.Failed > 0 {
				t.Errorf("%s\n%s", diff, report)
			}
		})
	}
}

func TestNothingToRun(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.lua": "", "b.lua": "", "b.golden": "", "empty/x": ""})
	for _, c := range []struct {
		name, path, filter, want string
	}{
		{"empty folder", "empty", "", "no tests found: a test is a NAME.lua with"},
		{"no golden", "a.lua", "", "a.lua: no tests found: it has no golden output beside it (--update writes it)"},
		{"filter", ".", "zz", `no tests found with a name that matches "zz"`},
		{"absent", "none", "", "none: no such file or directory"},
		{"no script", "empty/x", "", "empty/x: no tests found: not a folder and not a .lua script"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := tryTests(t, filepath.Join(dir, c.path), func(o *Options) {
				if c.filter != "" {
					o.Filter = regexp.MustCompile(c.filter)
				}
			})
			if !errors.Is(err, ErrNoTests) {
				t.Fatalf("error %v", err)
			}
			contains(t, err.Error(), c.want)
		})
	}
}

func TestTAPAndJUnit(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.lua": "", "a.golden": "", "b#.lua": "echo x; printf '\\001' >&2", "b#.golden": "",
		"c.lua": "echo no card; exit 77", "c.golden": ""})
	junit := filepath.Join(dir, "report.xml")
	_, report := runTests(t, dir, func(o *Options) { o.TAP, o.JUnit = true, junit })
	report = regexp.MustCompile(`duration_ms: \d+`).ReplaceAllString(strings.ReplaceAll(report, dir, "DIR"), "duration_ms: N")
	want := `TAP version 13
1..3
ok 1 - DIR/a.lua
not ok 2 - DIR/b\#.lua
  ---
  message: "stdout differs"
  duration_ms: N
  detail: |2
    --- b#.golden
    +++ output
    @@ -0,0 +1 @@
    +x
  stderr: |2
    \x01
  ...
ok 3 - DIR/c.lua # SKIP no card
`
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
	var suite junitSuite
	if err := xml.Unmarshal([]byte(readFile(t, junit)), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 3 || suite.Failures != 1 || suite.Skipped != 1 || suite.Cases[1].Failure.Message != "stdout differs" ||
		suite.Cases[1].Name != "b#.lua" || suite.Cases[1].Class != dir || suite.Cases[2].Skipped.Message != "no card" {
		t.Errorf("suite = %+v", suite)
	}
}

func TestColor(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.lua": "echo x", "a.golden": "y\n"})
	_, report := runTests(t, dir, func(o *Options) { o.Color = true })
	contains(t, report, red+"FAIL"+plain, red+"-y"+plain, green+"+x"+plain, red+"0 passed, 1 failed"+plain)
	_, report = runTests(t, dir, nil)
	if strings.Contains(report, "\x1b") {
		t.Errorf("unrequested colour: %q", report)
	}
}
