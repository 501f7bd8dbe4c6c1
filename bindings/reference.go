package bindings

import (
	"github.com/daqiri/daqiri-run/bindings/row"
)

// Reference describes everything that Lua can call or read, from the tables that register it.
func Reference() []row.Section {
	var all []row.Section
	for _, m := range modules {
		s := row.Section{Name: m.name, Kind: "module"}
		s.Describe(m.doc)
		s.Add(parsed(m.entry, m.constants))
		all = append(all, s)
	}
	for _, def := range typeDefs {
		s := row.Section{Name: def.name, Kind: "type", Self: def.self}
		s.Describe(def.doc)
		s.Add(parsed(def.methods, def.fields))
		for _, m := range def.meta {
			if m.doc != "" {
				s.Operators = append(s.Operators, row.MustParse(m.name, m.doc))
			}
		}
		all = append(all, s)
	}
	s := row.Section{Name: "globals", Kind: "globals"}
	s.Describe(globalsDoc)
	for _, lib := range globalFunctions {
		names := parsed(lib.entry, nil)
		for k := range names {
			if lib.library != "" {
				names[k].Name = lib.library + "." + names[k].Name
			}
		}
		s.Add(names)
	}
	return append(all, s)
}

// parsed returns the rows of functions and fields.
func parsed(entries []entry, fields []field) []row.Name {
	var names []row.Name
	for _, e := range entries {
		names = append(names, row.MustParse(e.name, e.doc))
	}
	for _, f := range fields {
		n := row.MustParse(f.name, f.doc)
		n.Field = true
		names = append(names, n)
	}
	return names
}
