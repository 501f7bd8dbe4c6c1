package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestUnitsThatSee follows includes of the C units: those of a folder come first, and a document reaches none.
func TestUnitsThatSee(t *testing.T) {
	t.Chdir(tree.Root)
	for _, c := range []struct {
		edited      string
		first, with string
		without     string
	}{
		{"native/core/ring.h", "ring", "queue", "-"},
		{"native/core/ring.c", "ring", "burst", "-"},
		{"native/gpunetio/device/gn_sem.h", "gn_sem", "gn_rings", "capture_file"},
		{"tests/native/capture/capture_file_test.c", "capture_file", "capture_file", "ring"},
		{"tests/native/gn_rig.h", "gn_rings", "gn_wait", "ring"},
	} {
		units := unitsThatSee([]string{c.edited})
		if !slices.Contains(units, c.first) || !slices.Contains(units, c.with) || slices.Contains(units, c.without) {
			t.Errorf("%s: %v", c.edited, units)
		}
	}
	if units := unitsThatSee([]string{"README.md", "runtime/spec/spec.go"}); len(units) != 0 {
		t.Errorf("no C file: %v", units)
	}
}

// TestChosen: the packages that an edit reaches run, the nearest first, as far as there is time; the others are named.
func TestChosen(t *testing.T) {
	packages := []listed{
		{"a", nil, nil, true},
		{"b", []string{"a"}, []string{"a"}, true},
		{"c", []string{"b"}, []string{"a", "b"}, true},
		{"d", nil, nil, true},
		{"untested", []string{"a"}, []string{"a"}, false},
		{"tests/cli", []string{"c"}, []string{"a", "b", "c"}, true},
	}
	h := &history{took: map[string]cost{}, new: map[string]cost{}}
	near, left := chosen(packages, []string{"a/x.go"}, h)
	if !slices.Equal(near, []string{"a", "b", "c"}) || !slices.Equal(left, []string{"tests/cli"}) {
		t.Errorf("%v, left %v", near, left)
	}
	h.took[tree.Module+"/b"] = cost{Seconds: (checkBudget + time.Second).Seconds()}
	near, left = chosen(packages, []string{"a/x.go"}, h)
	if !slices.Equal(near, []string{"a", "c"}) || !slices.Equal(left, []string{"b", "tests/cli"}) {
		t.Errorf("b is slow: %v, left %v", near, left)
	}
	if near, _ := chosen(packages, []string{"README.md"}, h); len(near) != 0 {
		t.Errorf("a document: %v", near)
	}
}

// TestCheckFormat: a file that is not formatted is named.
func TestCheckFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"good.go": "package p\n", "bad.go": "package  p\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkFormat(context.Background(), []string{"good.go", "gone.go", "a.md"}); err != nil {
		t.Error(err)
	}
	err := checkFormat(context.Background(), []string{"good.go", "bad.go"})
	if err == nil || !strings.Contains(err.Error(), "bad.go") || strings.Contains(err.Error(), "good.go") {
		t.Errorf("%v", err)
	}
}

// TestHistory: what two runs measured is kept.
func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seconds.json")
	for name, seconds := range map[string]time.Duration{"a": time.Second, "b": 2 * time.Second} {
		h := &history{file: file, took: map[string]cost{}, new: map[string]cost{}}
		h.add(name, seconds, time.Second)
		h.save()
	}
	h := &history{file: file, took: map[string]cost{}, new: map[string]cost{}}
	h.read()
	if h.last("a", 0) != time.Second || h.last("b", 0) != 2*time.Second || h.last("c", time.Hour) != time.Hour {
		t.Errorf("%v", h.took)
	}
}

// TestTimes: parts that take little share a row, and sums of others have none.
func TestTimes(t *testing.T) {
	var b strings.Builder
	printTimes(&b, map[string]cost{
		"step build": {10, 20}, tree.Module + "/a": {70, 79}, tree.Module + "/b": {3, 1}, "step test go tests": {80, 99}, "level test": {90, 100},
	})
	const want = "| step, or group of tests | seconds | CPU seconds | share |\n|---|---|---|---|\n| a | 70 | 79 | 79 % |\n| step build | 10 | 20 | 20 % |\n| 1 others | 3 | 1 | 1 % |\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
