package check

import "strings"

// kinds of alternatives other than type names
const (
	aLiteral  = "literal" // a string constant
	aList     = "list"    // T[]
	aMap      = "map"     // table<K, V>
	aHandler  = "handler" // fun(name: T, ...)
	anUnknown = ""
)

// typ is the type of a value in the notation of rows: a list of alternatives.
type typ []alternative

type alternative struct {
	kind     string // type name, or one of the constants above
	word     string // literal: its string
	key, val typ    // of a map; list: val only
	params   []typ  // handler: its parameters
}

// parseType parses "string | burst[] | fun(b: burst) | table<string, place> | "word"".
func parseType(text string) (t typ) {
	for _, part := range splitOutside(text, " | ") {
		t = append(t, parseAlternative(strings.TrimPrefix(part, "...")))
	}
	return t
}

func parseAlternative(text string) alternative {
	if word, ok := strings.CutPrefix(text, `"`); ok {
		return alternative{kind: aLiteral, word: strings.TrimSuffix(word, `"`)}
	}
	if elem, ok := strings.CutSuffix(text, "[]"); ok {
		return alternative{kind: aList, val: parseType(elem)}
	}
	if inner, ok := strings.CutPrefix(text, "table<"); ok {
		if kv := splitOutside(strings.TrimSuffix(inner, ">"), ", "); len(kv) == 2 {
			return alternative{kind: aMap, key: parseType(kv[0]), val: parseType(kv[1])}
		}
	}
	if inner, ok := strings.CutPrefix(text, "fun("); ok {
		a := alternative{kind: aHandler}
		inner, _, _ = strings.Cut(inner, ")")
		for _, p := range splitOutside(inner, ", ") {
			_, of, _ := strings.Cut(p, ": ")
			a.params = append(a.params, parseType(of))
		}
		return a
	}
	return alternative{kind: text}
}

// splitOutside splits at each sep outside brackets and quotes.
func splitOutside(text, sep string) (parts []string) {
	depth, quoted, from := 0, false, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && strings.HasPrefix(text[i:], sep):
			parts = append(parts, text[from:i])
			from = i + len(sep)
		case c == '(' || c == '<':
			depth++
		case c == ')' || c == '>':
			depth--
		}
	}
	return append(parts, text[from:])
}

// only returns the alternative of a successful result; unknown if there are several.
func (t typ) only() alternative {
	var found []alternative
	for _, a := range t {
		if a.kind != "failure" && a.kind != "nil" && a.kind != "false" {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return alternative{}
	}
	return found[0]
}

// plain expands the names of shapes in a type.
func (a *api) plain(t typ) (all typ) {
	for _, alt := range t {
		if s, ok := a.shapes[alt.kind]; ok && s.Type != "" {
			all = append(all, a.plain(parseType(s.Type))...)
		} else {
			all = append(all, alt)
		}
	}
	return all
}
