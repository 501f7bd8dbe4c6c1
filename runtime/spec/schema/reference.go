package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Place is a section and its paths in a configuration.
type Place struct {
	*Section
	Paths []string // paths such as interfaces[].rx.queues[]; empty for the whole configuration
}

// Places returns all sections, each once, after the one that contains it. Variants follow their section.
func Places() []Place {
	var list []Place
	add := func(s *Section, path string) {
		i := slices.IndexFunc(list, func(p Place) bool { return p.Section == s })
		if i < 0 {
			i, list = len(list), append(list, Place{Section: s})
		}
		list[i].Paths = append(list[i].Paths, path)
	}
	var walk func(s *Section, path string)
	walk = func(s *Section, path string) {
		add(s, path)
		for _, k := range s.Keys {
			if k.Map != nil {
				walk(k.Map, k.below(path))
			}
		}
		for _, v := range s.Variants {
			walk(v, path)
		}
	}
	walk(ConfigSection, "")
	return list
}

// below returns the path of the key's maps in a section.
func (k *Key) below(path string) string {
	if path != "" {
		path += "."
	}
	path += k.Name
	if k.Type == TypeList {
		path += "[]"
	}
	return path
}

// Rows returns the keys of a section in the reference: its own and, for a variant, the keys of its flat form only.
func (s *Section) Rows() []Key {
	rows := slices.Clone(s.Keys)
	if s.Flat == nil {
		return rows
	}
	for _, k := range s.Flat.Keys {
		inMap := func(m Key) bool { return m.Map != nil && m.Map.index[k.Name] != nil }
		if s.index[k.Name] == nil && !slices.ContainsFunc(s.Keys, inMap) {
			rows = append(rows, k)
		}
	}
	return rows
}

// Takes returns a description of the key's values, with range and unit.
func (k *Key) Takes() string {
	text := k.takes(k.Type)
	switch {
	case k.Type == TypeList:
		text = "list of " + map[Type]string{TypeMap: "maps", TypeFilled: "texts", TypeText: "texts"}[k.Items]
		if k.Items != TypeMap && k.Items != TypeText {
			text = "list: " + k.takes(k.Items)
		}
	case k.Type != TypeChoice && len(k.Choices) > 0:
		text += ", or " + quoted(k.Choices)
	}
	if k.Unit != "" {
		text += ", " + k.Unit
	}
	return text
}

func (k *Key) takes(t Type) string {
	switch {
	case t == TypeChoice:
		return quoted(k.Choices)
	case t != TypeInteger:
		return string(t)
	case k.Lo == k.Hi:
		return fmt.Sprintf("integer %d", k.Lo)
	case k.Hi == math.MaxInt64:
		return fmt.Sprintf("integer from %d on", k.Lo)
	}
	return fmt.Sprintf("integer %d..%d", k.Lo, k.Hi)
}

// quoted formats words as code.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		if w == "" {
			w = `""`
		}
		list[i] = "`" + w + "`"
	}
	return JoinOr(list)
}

// Need returns whether the key is required, and otherwise its default.
func (k *Key) Need() string {
	def := ""
	switch d := k.Default.(type) {
	case nil:
	case []string:
		def = "default `[" + strings.Join(d, ", ") + "]`"
	default:
		def = fmt.Sprintf("default `%v`", d)
	}
	switch {
	case k.When != "" && def != "":
		return "required " + k.When + ", else " + def
	case k.When != "":
		return "required " + k.When
	case k.Required:
		return "required"
	case def != "":
		return def
	}
	return "optional"
}

// Does returns a description of the key's effect and of the interfaces that it applies to.
func (k *Key) Does() string {
	text := k.Words
	if k.NoEffect != "" {
		text = strings.TrimSpace(text + " It " + k.NoEffect + ".")
	}
	if k.Where != "" {
		text = "(" + k.Where + ") " + text
	}
	return text
}

// JoinOr lists words: "a, b or c".
func JoinOr(words []string) string {
	s := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			s += " or " + w
		} else {
			s += ", " + w
		}
	}
	return s
}
