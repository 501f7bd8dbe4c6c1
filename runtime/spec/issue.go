package spec

import (
	"fmt"
	"sort"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Pos is a position in a configuration source. Line and Column start at 1; both are 0 for sources without lines, such as a Lua table or an override.
type Pos struct {
	File   string // file name, "table", or the override as written
	Line   int
	Column int
}

// String returns file:line:column, or the file alone if the source has no lines.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Source is the position of a part of the configuration. Every entity has one, so that other layers can report their errors (such as a core that does
// not exist) at its line.
type Source struct {
	Pos  Pos
	Path string // path such as interfaces[0].rx.queues[1]; empty for the whole configuration
	keys map[string]Pos
}

// Key returns the source of a key. A key that was not written has the position of the entity.
func (s Source) Key(name string) Source {
	k := Source{Pos: s.Pos, Path: joinPath(s.Path, name)}
	if pos, ok := s.keys[name]; ok {
		k.Pos = pos
	}
	return k
}

// Has reports whether the key was written.
func (s Source) Has(name string) bool {
	_, ok := s.keys[name]
	return ok
}

// Errorf returns an error at this position.
func (s Source) Errorf(format string, args ...any) Issue {
	return Issue{Pos: s.Pos, Path: s.Path, Text: fmt.Sprintf(format, args...)}
}

// Wrap prefixes an error with this position; it returns nil for nil.
func (s Source) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", s.Errorf("").Error(), err)
}

func (s Source) index(i int) string { return fmt.Sprintf("%s[%d]", s.Path, i) }

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Issue is an error or a warning: position, key and rule.
type Issue struct {
	Pos  Pos
	Path string
	Text string
}

// Error returns "file:line:column: path: rule".
func (i Issue) Error() string {
	if i.Path == "" || i.Pos.Line == 0 && strings.HasSuffix(i.Pos.File, " "+i.Path) {
		return i.Pos.String() + ": " + i.Text
	}
	return i.Pos.String() + ": " + i.Path + ": " + i.Text
}

// Errors is the error of an invalid configuration: all issues, sorted by position.
type Errors struct {
	Issues []Issue
}

// Error returns one line per issue.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Issues))
	for i, is := range e.Issues {
		lines[i] = is.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the issues for errors.As and errors.Is.
func (e *Errors) Unwrap() []error {
	errs := make([]error, len(e.Issues))
	for i, is := range e.Issues {
		errs[i] = is
	}
	return errs
}

// sortIssues sorts by position; sources without lines come last, in the order found.
func sortIssues(list []Issue) {
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i].Pos, list[j].Pos
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line == 0
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}

// didYouMean returns the end of an error message: empty, or `; did you mean "batch_size"?`.
func didYouMean(name string, known []string) string {
	if s := suggest.Nearest(name, known); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}
