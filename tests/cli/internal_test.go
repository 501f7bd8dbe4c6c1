package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// internalFaults are put into the program that TestExitInternal builds, each instead of the text before it.
var internalFaults = []struct{ file, before, after string }{
	{"runtime/session/account/lines.go", "In: r.In,", "In: r.In + 1,"},
	{"host/cli/version.go", "_, err := io.WriteString(g.Stdout, versionText())", "panic(\"a fault on purpose\")\n_, err := io.WriteString(g.Stdout, versionText())"},
}

// TestExitInternal runs a whole program that has errors: one whose ledger does not add up, whatever else went wrong, and one
// that panics, ends with 70.
func TestExitInternal(t *testing.T) {
	dir := t.TempDir()
	program := faulty(t, dir)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.lua", `local s = require("daqiri").open() s:run{ seconds = 0.01 }`)
	bad := write("bad.lua", `local s = require("daqiri").open() s:run{ seconds = 0.01 } error("of the script")`)
	exits := write("exits.lua", `local s = require("daqiri").open() s:run{ seconds = 0.01 } os.exit(9)`)
	for _, c := range []struct {
		args, want string
		ledger     bool
	}{
		{good, "in - out - held - dropped = 1", true},
		{bad, "of the script", true},
		{exits, "in - out - held - dropped = 1", true},
		{"version", "please report: a fault on purpose", false},
	} {
		args, summary := []string{c.args}, filepath.Join(dir, filepath.Base(c.args)+".json")
		if c.ledger {
			args = []string{"--summary-json", summary, c.args}
		}
		out, err := exec.Command(program, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 70 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want exit code 70 and %q:\n%s", c.args, err, c.want, out)
		}
		if !c.ledger {
			continue
		}
		var found struct {
			ExitCode int `json:"exit_code"`
			Cause    string
			Sessions []struct{ Imbalance []string }
		}
		text, err := os.ReadFile(summary)
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		if err != nil || found.ExitCode != 70 || found.Cause != "internal" || len(found.Sessions) != 1 || len(found.Sessions[0].Imbalance) == 0 {
			t.Errorf("%s: summary %+v, %v", c.args, found, err)
		}
	}
}

// faulty is the path of a program with internalFaults.
func faulty(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for _, f := range internalFaults {
		text := tree.Read(t, f.file)
		if strings.Count(text, f.before) != 1 {
			t.Fatalf("%s does not have %q once: put the fault elsewhere", f.file, f.before)
		}
		copied := filepath.Join(dir, filepath.Base(f.file))
		if err := os.WriteFile(copied, []byte(strings.Replace(text, f.before, f.after, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, f.file)] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "daqiri-run")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", list, "-o", program, "./cmd/daqiri-run")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}
