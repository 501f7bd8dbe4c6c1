package row

import (
	"slices"
	"strings"
)

// A Section of the reference is a module, a type of objects, or the replaced Lua functions.
type Section struct {
	Name      string // "queue", "daqiri", "globals"
	Kind      string // "module", "type" or "globals"
	Self      string // name of an object in examples: "q"
	Title     string // one line
	Words     string // paragraphs
	Elements  []Value
	Names     []Name // in order
	Operators []Name // metamethods: "__add"
}

// A Shape is a named type of arguments and results: an alias of plain types, or a table with these keys.
type Shape struct {
	Name, Type string // Type is empty for a table
	Keys       []Value
	Words      string
	Example    string
}

// Prefix returns the text before a name: "q:" or "q." of a type, "daqiri." of a module, "math." of a library, or "".
func (s *Section) Prefix(n *Name) string {
	switch {
	case s.Kind == "module":
		return s.Name + "."
	case s.Kind == "globals":
		return ""
	case n.Field:
		return s.Self + "."
	}
	return s.Self + ":"
}

// Shapes lists the named types of arguments and results.
func Shapes() []Shape {
	var all []Shape
	for _, f := range shapes {
		n := MustParse(f.name, f.doc)
		s := Shape{Name: n.Name, Keys: n.Options, Words: n.Words, Example: n.Example}
		if len(n.Results) > 0 {
			s.Type = n.Results[0].Type
		}
		all = append(all, s)
	}
	return all
}

// Describe sets title, words and elements from the description of a type or module; the title is the first line.
func (s *Section) Describe(text string) {
	title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	n := MustParse(s.Name, rest)
	s.Title, s.Words, s.Elements = title, n.Words, n.Options
}

// Add appends names in sorted order.
func (s *Section) Add(names []Name) {
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
	s.Names = append(s.Names, names...)
}

// MustParse parses a row; a test parses all rows, so errors panic.
func MustParse(name, text string) Name {
	n, err := Parse(name, text)
	if err != nil {
		panic("row: " + err.Error())
	}
	return n
}
