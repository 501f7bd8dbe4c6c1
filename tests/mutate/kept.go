package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// keptFile has a line for each fault that was tried, so that a run that was ended continues where it was.
const keptFile = "build/mutate.jsonl"

// A keptResult is one line of keptFile.
type keptResult struct {
	Tree    string // of the project's files, without documents and this table
	Fault   string // of the fault's entry
	Name    string
	Seen    bool
	Level   levels.Level
	How     string
	Seconds float64
}

// kept is what earlier runs found out about faults in the same state of the project.
type kept struct {
	tree string
	past map[string]keptResult // by keptResult.Fault
}

func readKept() (*kept, error) {
	tree, err := treeSum()
	if err != nil {
		return nil, err
	}
	k := &kept{tree: tree, past: map[string]keptResult{}}
	f, err := os.Open(keptFile)
	if os.IsNotExist(err) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r keptResult
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Tree == tree {
			k.past[r.Fault] = r
		}
	}
	return k, nil
}

// result is what became of f in an earlier run.
func (k *kept) result(f fault) (result, bool) {
	r, ok := k.past[f.sum()]
	return result{fault: f, seen: r.Seen, level: r.Level, how: r.How, took: time.Duration(r.Seconds * float64(time.Second))}, ok
}

func (k *kept) add(r result) error {
	text, err := json.Marshal(keptResult{k.tree, r.fault.sum(), r.fault.name, r.seen, r.level, r.how, r.took.Seconds()})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(keptFile), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(keptFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// sum identifies an entry.
func (f *fault) sum() string {
	return fmt.Sprintf("%.16x", sha256.Sum256(fmt.Append(nil, f.name, f.file, "\n", f.before, "\n", f.after, "\n", f.sees)))
}

// treeSum identifies the state of the project's files, without documents and the table of faults.
func treeSum() (string, error) {
	names, err := projectFiles()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		if filepath.Ext(name) == ".md" || strings.HasPrefix(name, "tests/mutate/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return fmt.Sprintf("%.16x", sum.Sum(nil)), nil
}
