package bindings

// Reference describes everything that Lua can call or read, from the tables that register it.
func Reference() []Section {
	var all []Section
	for _, m := range modules {
		s := Section{Name: m.name, Kind: "module"}
		s.describe(m.doc)
		s.addNames(parsed(m.entry, m.constants))
		all = append(all, s)
	}
	for _, def := range typeDefs {
		s := Section{Name: def.name, Kind: "type", Self: def.self}
		s.describe(def.doc)
		s.addNames(parsed(def.methods, def.fields))
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
		names := parsed(lib.entry, nil)
		for k := range names {
			if lib.library != "" {
				names[k].Name = lib.library + "." + names[k].Name
			}
		}
		s.addNames(names)
	}
	return append(all, s)
}

// parsed returns the rows of functions and fields.
func parsed(entries []entry, fields []field) []Name {
	var names []Name
	for _, e := range entries {
		names = append(names, mustParse(e.name, e.doc))
	}
	for _, f := range fields {
		n := mustParse(f.name, f.doc)
		n.Field = true
		names = append(names, n)
	}
	return names
}
