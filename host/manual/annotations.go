package manual

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// Annotations returns docs/api/daqiri.d.lua: the Lua API in the notation of the Lua language server.
func Annotations() string {
	w := &annotations{types: map[string]bool{}}
	w.line("---@meta daqiri")
	w.line("-- daqiri-run's Lua API for editors, written by `make docs` from the program's tables. docs/api/README.md describes how to use it.")
	sections, shapes := bindings.Reference(), row.Shapes()
	for _, s := range sections {
		w.types[s.Name] = s.Kind == "type"
	}
	for _, s := range shapes {
		w.types[s.Name] = true
	}
	for _, s := range shapes {
		w.shape(&s)
	}
	for _, s := range sections {
		w.section(&s)
	}
	w.line("\nreturn daqiri")
	return w.b.String()
}

type annotations struct {
	b     strings.Builder
	types map[string]bool // type names of the API
}

func (w *annotations) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// comment writes words as comment lines.
func (w *annotations) comment(words string) {
	for p := range strings.SplitSeq(words, "\n\n") {
		w.line("---%s\n---", fold(plain(code(p)), 120, "---"))
	}
}

func (w *annotations) shape(s *row.Shape) {
	if s.Name == "failure" { // three results, see returns
		return
	}
	w.line("")
	w.comment(s.Words)
	if s.Type != "" {
		w.line("---@alias daqiri.%s %s", s.Name, w.kind(s.Type))
		return
	}
	w.line("---@class daqiri.%s", s.Name)
	w.fields(s.Keys)
}

func (w *annotations) fields(list []row.Value) {
	for _, v := range list {
		optional := ""
		if v.Optional && !v.OfMore() {
			optional = "?"
		}
		w.line("---@field %s%s %s%s", v.Name, optional, w.kind(v.Type), remark(&v))
	}
}

func (w *annotations) section(s *row.Section) {
	for _, n := range s.Names {
		if len(n.Options) > 0 {
			w.line("\n---@class (exact) %s", optionClass(s, &n))
			w.fields(n.Options)
		}
	}
	w.line("")
	w.comment(s.Words)
	owner := map[string]string{"type": "daqiri." + s.Name, "module": s.Name}[s.Kind]
	if owner != "" {
		w.line("---@class %s", owner)
	}
	for _, n := range s.Names {
		if n.Field {
			v := n.Results[0]
			line := plain(code(n.Words))
			if more := plain(meaning(&v)); more != "" {
				line += " (" + more + ")"
			}
			w.line("---@field %s %s %s", n.Name, w.kind(v.Type), line)
		}
	}
	w.fields(s.Elements)
	for _, o := range s.Operators {
		w.line("---@operator %s(%s): %s", strings.TrimPrefix(o.Name, "__"), w.kind(o.Args[0].Type), w.kind(o.Results[0].Type))
	}
	switch {
	case s.Name == "bit": // also a global
		w.line("bit = {}")
	case owner != "":
		w.line("local %s = {}", s.Name)
	}
	for _, n := range s.Names {
		if !n.Field {
			w.function(s, &n)
		}
	}
}

func optionClass(s *row.Section, n *row.Name) string {
	return "daqiri." + s.Name + "." + n.Name + ".options"
}

func (w *annotations) function(s *row.Section, n *row.Name) {
	w.line("")
	w.comment(n.Words)
	w.line("---```lua\n---%s\n---```", strings.ReplaceAll(n.Example, "\n", "\n---"))
	var names []string
	for _, a := range n.Args {
		optional := ""
		if a.Optional && a.Name != "..." {
			optional = "?"
		}
		names = append(names, a.Name)
		w.line("---@param %s%s %s%s", a.Name, optional, w.kind(a.Type), remark(&a))
	}
	if len(n.Options) > 0 {
		optional := "?"
		if slices.ContainsFunc(n.Options, func(o row.Value) bool { return !o.Optional }) {
			optional = ""
		}
		names = append(names, "options")
		w.line("---@param options%s %s", optional, optionClass(s, n))
	}
	for _, r := range n.Results {
		w.returns(&r)
	}
	prefix := map[string]string{"type": s.Name + ":", "module": s.Name + "."}[s.Kind]
	w.line("function %s%s(%s) end", prefix, n.Name, strings.Join(names, ", "))
}

// returns writes a result; an expected failure adds two more.
func (w *annotations) returns(r *row.Value) {
	kind, fails := strings.CutSuffix(r.Type, " | failure")
	many := strings.HasPrefix(kind, "...")
	kind = w.kind(strings.TrimPrefix(kind, "..."))
	switch {
	case many:
		kind += " ..."
	case fails:
		kind += "|nil"
	}
	if more := remark(r); more != "" {
		kind += " #" + more
	}
	w.line("---@return %s", kind)
	if fails {
		w.line("---@return string|nil status\n---@return string|nil text")
	}
}

var luaName = regexp.MustCompile(`"[^"]*"|[a-z_0-9]+:?`)

// kind converts a type to the notation of the language server.
func (w *annotations) kind(text string) string {
	text = strings.ReplaceAll(text, " | ", "|")
	return luaName.ReplaceAllStringFunc(text, func(name string) string {
		if w.types[name] {
			return "daqiri." + name
		}
		return name
	})
}

// remark formats a value's unit, words and default, which follow its type.
func remark(v *row.Value) string {
	text := plain(meaning(v))
	if v.Default != "" {
		text = strings.Trim(text+" (default: "+v.Default+")", " ")
	}
	if text == "" {
		return ""
	}
	return " " + text
}
