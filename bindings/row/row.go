package row

import (
	"fmt"
	"regexp"
	"strings"
)

// A row describes a name of the API: lines of text, parsed when the reference is requested.
//
//	- name type = default, unit: words     an argument, in order; name?: optional
//	. name type = default, unit: words     a key of the table of options that is the last argument; a field of a type of tables
//	-> type, unit: words                   a result, or the content of a field; "failure" stands for nil, status, text
//	words                                  sentences; an empty line begins a paragraph, 'code' is formatted as code
//	> code                                 the example, a line of Lua
//
// A line that begins with two spaces continues the previous line. Leading tabs are ignored.

// A Value is an argument, an option or a result.
type Value struct {
	Name, Type, Default, Unit, Words string
	Optional                         bool // may be omitted
}

// OfMore reports whether the value stands for any further key ("[string]" of options) and has no name.
func (v *Value) OfMore() bool { return strings.HasPrefix(v.Name, "[") }

// A Name is a function, field or constant of the Lua API, as described by its row.
type Name struct {
	Name    string
	Field   bool // a field or constant; Results has its value
	Args    []Value
	Options []Value // keys of the table that is the last argument
	Results []Value
	Words   string // paragraphs, with an empty line between them
	Example string // Lua, maybe several lines
}

var valueName = regexp.MustCompile(`^(\.\.\.|\[[a-z]+\]|[a-z_][a-z0-9_]*)(\??) (.+)$`)

// Parse parses the row of a name.
func Parse(name, text string) (Name, error) {
	n := Name{Name: name}
	var words, example []string
	for _, line := range joined(text) {
		kind, rest, _ := strings.Cut(line, " ")
		var err error
		switch kind {
		case "-":
			n.Args, err = appendValue(n.Args, rest)
		case ".":
			n.Options, err = appendValue(n.Options, rest)
		case "->":
			v := Value{}
			v.Type, v.Default, v.Unit, v.Words = parts(rest)
			n.Results = append(n.Results, v)
		case ">":
			example = append(example, rest)
		default:
			words = append(words, line)
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", name, err)
		}
	}
	n.Words = strings.TrimSpace(strings.ReplaceAll(strings.Join(words, " "), "  ", "\n\n"))
	n.Example = strings.Join(example, "\n")
	return n, nil
}

// joined returns the lines of a text without leading tabs, each joined with its continuation lines.
func joined(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(strings.TrimLeft(line, "\t"), "\n")
		if more, ok := strings.CutPrefix(line, "  "); ok && len(lines) > 0 {
			lines[len(lines)-1] += " " + more
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func appendValue(list []Value, text string) ([]Value, error) {
	m := valueName.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q: a name and a type expected", text)
	}
	v := Value{Name: m[1]}
	v.Type, v.Default, v.Unit, v.Words = parts(m[3])
	v.Optional = m[2] != "" || v.Default != "" || v.Name == "..."
	return append(list, v), nil
}

// parts splits "type = default, unit: words".
func parts(text string) (kind, missing, unit, words string) {
	text, words = cutOutside(text, ": ")
	text, unit = cutOutside(text, ", ")
	kind, missing = cutOutside(text, " = ")
	return kind, missing, unit, words
}

// cutOutside cuts at the first sep outside brackets and quotes.
func cutOutside(text, sep string) (before, after string) {
	depth, quoted := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && strings.HasPrefix(text[i:], sep):
			return text[:i], text[i+len(sep):]
		case strings.IndexByte("([{<", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0 || c == '>' && depth > 0:
			depth--
		}
	}
	return text, ""
}

// mostShown is the maximum number of options in Call; if there are more, only required options are listed.
const mostShown = 8

// Call returns the call without its prefix ("q:", "daqiri."): "alloc(n)", "get_burst{timeout_us}", "name".
func (n *Name) Call() string {
	if n.Field {
		return n.Name
	}
	var args []string
	for _, a := range n.Args {
		args = append(args, a.Name)
	}
	if len(n.Options) == 0 {
		return n.Name + "(" + strings.Join(args, ", ") + ")"
	}
	var keys []string
	for _, o := range n.Options {
		if o.OfMore() {
			continue
		}
		if len(n.Options) <= mostShown || !o.Optional {
			keys = append(keys, o.Name)
		}
	}
	if len(n.Options) > mostShown {
		keys = append(keys, "…")
	}
	options := "{" + strings.Join(keys, ", ") + "}"
	if len(args) == 0 {
		return n.Name + options
	}
	return n.Name + "(" + strings.Join(append(args, options), ", ") + ")"
}
