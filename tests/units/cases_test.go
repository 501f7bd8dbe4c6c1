package units

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/cunit"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestCases compares the stages of blocks and of heaps with models in Python: random streams with loss, repeated and displaced
// packets, wrong numbers, sources that come late, and senders that restart, with and without silence; each aggregate, and what
// counts as missing, cut, late, duplicate, outlier, resync and so on.
func TestCases(t *testing.T) { testCases(t, "asan+ubsan", 3, 500) }

// TestManyCases does so for 40,000 streams of each.
func TestManyCases(t *testing.T) { testCases(t, "plain", 8, 5000) }

func testCases(t *testing.T, variant string, parts, each int) {
	v := cunit.Named(variant).Ready(t)
	dir := t.TempDir()
	objects := v.CompileEngine(t, dir)
	for _, stage := range []string{"reorder", "heaps"} {
		source := filepath.Join(tree.Root, "tests/cases", stage+"_cases")
		program := filepath.Join(dir, stage)
		if err := v.Link(program, source+".c", objects); err != nil {
			t.Fatal(err)
		}
		for part := range parts {
			t.Run(fmt.Sprint(stage, " seed ", part), func(t *testing.T) {
				dir := t.TempDir()
				cases, answers := filepath.Join(dir, "cases"), filepath.Join(dir, "answers")
				model := exec.Command("/usr/bin/python3", source+".py", fmt.Sprint(part), fmt.Sprint(each), cases, answers)
				if out, err := model.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				v := v
				v.Args = []string{cases}
				out, err := v.Output(program)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				compareCases(t, cases, answers, out)
			})
		}
	}
}

// compareCases names the first case whose answer is not the model's.
func compareCases(t *testing.T, cases, answers, got string) {
	t.Helper()
	var lines [2][]string
	for k, file := range []string{cases, answers} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[k] = strings.Split(string(text), "\n")
	}
	have := strings.Split(got, "\n")
	if len(have) != len(lines[1]) || len(have) < 100 {
		t.Fatalf("%d answers of %d cases", len(have)-1, len(lines[1])-1)
	}
	for k := range have {
		if have[k] != lines[1][k] {
			t.Fatalf("case %d, %s\n got %s\nwant %s", k, lines[0][k], have[k], lines[1][k])
		}
	}
}
