package spec

import (
	"fmt"
	"sort"
	"strings"
)

// Pos is a place in a source of configuration. Line and Column count from 1; both are 0
// in a source without lines, such as a Lua table or an override.
type Pos struct {
	File   string // file name, "table", or the override as the user wrote it
	Line   int
	Column int
}

// String gives file:line:column, or the file alone when the source has no lines.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Source says where a part of the configuration was written. Every entity carries one, so
// that later layers can report a fault of theirs (a core that does not exist) at its line.
type Source struct {
	Pos  Pos
	Path string // such as interfaces[0].rx.queues[1]; empty for the whole configuration
	keys map[string]Pos
}

// Key narrows a source to one of its keys. A key that was not written keeps the position
// of the entity.
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

// Errorf makes an error at this place.
func (s Source) Errorf(format string, args ...any) Issue {
	return Issue{Pos: s.Pos, Path: s.Path, Text: fmt.Sprintf(format, args...)}
}

func (s Source) index(i int) string { return fmt.Sprintf("%s[%d]", s.Path, i) }

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Issue is one fault or one warning: where, which key, which rule.
type Issue struct {
	Pos  Pos
	Path string
	Text string
}

// Error gives "file:line:column: path: rule".
func (i Issue) Error() string {
	if i.Path == "" || i.Pos.Line == 0 && strings.HasSuffix(i.Pos.File, " "+i.Path) {
		return i.Pos.String() + ": " + i.Text
	}
	return i.Pos.String() + ": " + i.Path + ": " + i.Text
}

// Errors is what a parse returns when the configuration is faulty: every fault, sorted by
// position.
type Errors struct {
	Issues []Issue
}

// Error gives one line per fault.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Issues))
	for i, is := range e.Issues {
		lines[i] = is.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults one by one to errors.As and errors.Is.
func (e *Errors) Unwrap() []error {
	errs := make([]error, len(e.Issues))
	for i, is := range e.Issues {
		errs[i] = is
	}
	return errs
}

// sortIssues orders by position; sources without lines come last, in the order found.
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
