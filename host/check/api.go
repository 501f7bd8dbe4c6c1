package check

import (
	"fmt"
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// section is a module or type with its members by name.
type section struct {
	row.Section
	members map[string]*row.Name
	names   []string
}

// api is the API reference indexed by name.
type api struct {
	modules, types map[string]*section
	shapes         map[string]row.Shape
}

// reference builds the index, once.
var reference = sync.OnceValue(func() *api {
	a := &api{modules: map[string]*section{}, types: map[string]*section{}, shapes: map[string]row.Shape{}}
	for _, s := range bindings.Reference() {
		sec := &section{Section: s, members: map[string]*row.Name{}}
		for i := range s.Names {
			sec.members[s.Names[i].Name] = &sec.Names[i]
			sec.names = append(sec.names, s.Names[i].Name)
		}
		switch s.Kind {
		case "module":
			a.modules[s.Name] = sec
		case "type":
			a.types[s.Name] = sec
		}
	}
	for _, s := range row.Shapes() {
		a.shapes[s.Name] = s
	}
	return a
})

// section returns the section of a value; nil if its members are unknown.
func (a *api) section(v value) *section {
	if v.kind == isModule {
		return a.modules[v.name]
	}
	return a.types[v.kind]
}

// unknown returns the text of an error about a name that is not in known.
func unknown(what, name string, known []string) string {
	known = slices.Sorted(slices.Values(known))
	text := fmt.Sprintf("unknown %s '%s'", what, name)
	if near := suggest.Nearest(name, known); near != "" {
		text += fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return text
}
