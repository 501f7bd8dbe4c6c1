package bindings

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

// Reference describes everything that Lua can call or read, from the tables that register it.
func Reference() []Section {
	var all []Section
	for _, m := range modules {
		s := Section{Name: m.name, Kind: "module"}
		s.describe(m.doc)
		s.add(m.entry, m.constants)
		all = append(all, s)
	}
	for _, def := range typeDefs {
		s := Section{Name: def.name, Kind: "type", Self: def.self}
		s.describe(def.doc)
		s.add(def.methods, def.fields)
		for _, m := range def.meta {
			if m.doc != "" {
				s.Operators = append(s.Operators, mustParse(m.name, m.doc))
			}
		}
		all = append(all, s)
	}
	s := Section{Name: "globals", Kind: "globals"}
	s.describe(globalsDoc)
	for _, lib := range globalFunctions {
		from := len(s.Names)
		s.add(lib.entry, nil)
		for k := range s.Names[from:] {
			if lib.library != "" {
				s.Names[from+k].Name = lib.library + "." + s.Names[from+k].Name
			}
		}
	}
	return append(all, s)
}

// Shapes lists the named types of arguments and results.
func Shapes() []Shape {
	var all []Shape
	for _, f := range shapes {
		n := mustParse(f.name, f.doc)
		s := Shape{Name: n.Name, Keys: n.Options, Words: n.Words, Example: n.Example}
		if len(n.Results) > 0 {
			s.Type = n.Results[0].Type
		}
		all = append(all, s)
	}
	return all
}

// describe sets title, words and elements from the description of a type or module; the title is the first line.
func (s *Section) describe(text string) {
	title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	n := mustParse(s.Name, rest)
	s.Title, s.Words, s.Elements = title, n.Words, n.Options
}

// add appends names in sorted order.
func (s *Section) add(entries []entry, fields []field) {
	from := len(s.Names)
	for _, e := range entries {
		s.Names = append(s.Names, mustParse(e.name, e.doc))
	}
	for _, f := range fields {
		n := mustParse(f.name, f.doc)
		n.Field = true
		s.Names = append(s.Names, n)
	}
	slices.SortFunc(s.Names[from:], func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
}

// mustParse parses a row; a test parses all rows, so errors panic.
func mustParse(name, text string) Name {
	n, err := parseRow(name, text)
	if err != nil {
		panic("bindings: " + err.Error())
	}
	return n
}
