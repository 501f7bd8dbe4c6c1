package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// A fault is one entry of the table: a small change that makes the program wrong, and who should notice.
type fault struct {
	name    string
	meaning string // what a user would meet
	file    string // slash separated, from the root
	before  string // occurs exactly once in the file
	after   string
	sees    []sight
	where   string // FILE:LINE of the table
}

// A sight is a test that should see a fault.
type sight struct {
	kind string   // c, go or golden
	args []string // c: the unit; go: package and pattern; golden: the script
}

func (s sight) String() string { return s.kind + " " + strings.Join(s.args, " ") }

// goTest is the package and the pattern of the go test that a sight of kind c or go is.
func (s sight) goTest() (pkg, pattern string) {
	if s.kind == "c" {
		return "./tests/units", "^TestNative$/^asan.ubsan$/^" + s.args[0] + "$"
	}
	return s.args[0], s.args[1]
}

// level is the level of the suite that runs the test.
func (s sight) level() levels.Level {
	if s.kind == "golden" {
		return levels.Test
	}
	return levels.Of(s.goTest())
}

// level is the first level of the suite that should see the fault.
func (f *fault) level() levels.Level {
	for _, s := range f.sees {
		if s.level() == levels.Test {
			return levels.Test
		}
	}
	return levels.Deep
}

// sightArgs is how many words each kind takes.
var sightArgs = map[string]int{"c": 1, "go": 2, "golden": 1}

var heading = regexp.MustCompile(`^([a-z0-9_]+): (.+)$`)

// readTable reads all tables of a folder.
func readTable(dir string) ([]fault, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []fault
	seen := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		faults, err := parseTable(filepath.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		for _, f := range faults {
			if other := seen[f.name]; other != "" {
				return nil, fmt.Errorf("%s: the name %s is that of %s, too", f.where, f.name, other)
			}
			seen[f.name] = f.where
		}
		all = append(all, faults...)
	}
	return all, nil
}

// parseTable reads blocks of lines, which blank lines separate.
func parseTable(name, text string) ([]fault, error) {
	var faults []fault
	var open *fault
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, where := lines.Text(), fmt.Sprintf("%s:%d", name, n)
		switch {
		case line == "":
			open = nil
		case strings.HasPrefix(line, "#"):
		case open == nil:
			m := heading.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("%s: a block begins with NAME: WHAT A USER WOULD MEET", where)
			}
			faults = append(faults, fault{name: m[1], meaning: m[2], where: where})
			open = &faults[len(faults)-1]
		default:
			if err := open.addLine(line); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
		}
	}
	for i := range faults {
		f := &faults[i]
		f.before, f.after = strings.TrimPrefix(f.before, "\n"), strings.TrimPrefix(f.after, "\n")
		if f.file == "" || f.before == "" || f.before == f.after || len(f.sees) == 0 {
			return nil, fmt.Errorf("%s: %s lacks a file, a change or a test that sees it", f.where, f.name)
		}
	}
	return faults, lines.Err()
}

// addLine takes one line below the heading of a block.
func (f *fault) addLine(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line[0] == '-':
		f.before += "\n" + line[1:]
	case line[0] == '+':
		f.after += "\n" + line[1:]
	case word == "file":
		f.file = rest
	case word == "see":
		words := strings.Fields(rest)
		if len(words) == 0 || len(words)-1 != sightArgs[words[0]] {
			return errors.New("want see c UNIT, see go PACKAGE PATTERN or see golden SCRIPT")
		}
		f.sees = append(f.sees, sight{words[0], words[1:]})
	default:
		return fmt.Errorf("%q is not a line of the table", line)
	}
	return nil
}

// apply is the text of f's file with the fault in it.
func (f *fault) apply(text string) (string, error) {
	if n := strings.Count(text, f.before); n != 1 {
		return "", fmt.Errorf("%s: %s: the text before is %d times in %s, not once", f.where, f.name, n, f.file)
	}
	return strings.Replace(text, f.before, f.after, 1), nil
}
