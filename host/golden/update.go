package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// update rewrites the golden files from a script's behavior and returns the names of the changed files. Patterns that still match are kept,
// counters keep their selected keys (an empty object selects counted), and NAME.args and NAME.files are never changed.
func update(c testCase, want expectation, got outcome, box sandbox) ([]string, error) {
	u := updater{c: c}
	u.stdout(want, got)
	u.exit(got)
	u.files(want, box)
	if want.counters != nil {
		u.counters(want, box)
	}
	return u.changed, errors.Join(u.errs...)
}

// updater collects the changed files and errors of an update.
type updater struct {
	c       testCase
	changed []string
	errs    []error
}

// write replaces the file at path unless its content is the same.
func (u *updater) write(path string, data []byte) {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.errs = append(u.errs, err)
		return
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		u.errs = append(u.errs, err)
		return
	}
	rel, err := filepath.Rel(filepath.Dir(u.c.base), path)
	if err != nil {
		rel = path
	}
	u.changed = append(u.changed, rel)
}

func (u *updater) stdout(want expectation, got outcome) {
	text, err := keepPatterns(u.c.base+".golden", want.stdout, got.stdout)
	if err != nil {
		u.errs = append(u.errs, err)
		return
	}
	u.write(u.c.base+".golden", []byte(text))
}

// keepPatterns returns got with each line that a pattern of want matches replaced by the pattern.
func keepPatterns(file, want, got string) (string, error) {
	golden, actual := splitAfter(want), splitAfter(got)
	patterns, err := compilePatterns(file, golden)
	if err != nil {
		return "", err
	}
	from, shift := 0, 0
	for i, re := range patterns {
		if re == nil {
			continue
		}
		if j := placeOf(re, actual, from, i+shift); j < len(actual) {
			actual[j], from, shift = golden[i], j+1, j-i
		}
	}
	return strings.Join(actual, ""), nil
}

func (u *updater) exit(got outcome) {
	path := u.c.base + ".exit"
	if got.exit != 0 {
		u.write(path, fmt.Appendf(nil, "%d\n", got.exit))
		return
	}
	if err := os.Remove(path); err == nil {
		u.changed = append(u.changed, filepath.Base(path)+" (removed)")
	} else if !os.IsNotExist(err) {
		u.errs = append(u.errs, err)
	}
}

// files copies the script's output files and removes golden files that NAME.files does not list.
func (u *updater) files(want expectation, box sandbox) {
	dir := u.c.base + ".files.d"
	listed := map[string]bool{}
	for _, name := range want.files {
		listed[filepath.Join(dir, name)] = true
		data, err := os.ReadFile(filepath.Join(box.work, name))
		if err != nil {
			u.errs = append(u.errs, fmt.Errorf("did not write %s", name))
			continue
		}
		u.write(filepath.Join(dir, name), data)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || listed[path] {
			return err
		}
		u.changed = append(u.changed, filepath.Base(path)+" (removed)")
		return os.Remove(path)
	})
	if err != nil && !os.IsNotExist(err) {
		u.errs = append(u.errs, err)
	}
}

func (u *updater) counters(want expectation, box sandbox) {
	summary, err := readSummary(box)
	if err != nil {
		u.errs = append(u.errs, err)
		return
	}
	golden, err := decodeJSON(want.counters)
	chosen := counted.of(summary)
	if object, ok := golden.(map[string]any); err == nil && (!ok || len(object) > 0) {
		if len(diffJSON("", golden, summary)) == 0 {
			return // unchanged: keep the author's layout
		}
		chosen = project(golden, summary)
	}
	data, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		u.errs = append(u.errs, err)
		return
	}
	u.write(u.c.base+".counters", append(data, '\n'))
}
