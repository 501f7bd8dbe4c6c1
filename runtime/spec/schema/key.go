// Package schema holds the keys of a configuration: a table of rows for each kind of map, with types, ranges, defaults and descriptions, and the
// reference and the JSON Schema that are generated from them.
package schema

import "fmt"

// Key is a key of the configuration, as used by the parser, the reference and the schema.
type Key struct {
	Name     string
	Type     Type
	Items    Type     // element type of a list
	Map      *Section // keys of a map, or of the maps in a list
	Lo, Hi   int64    // inclusive range of integers
	Choices  []string // words of a choice; for other types, additional words
	AnyCase  bool     // words may be in upper case
	Default  any      // string, int, bool or []string; nil: the zero value
	Required bool     // absence is an error
	When     string   // condition of Required, if any
	Unit     string
	Where    string // interfaces or engines that the key applies to; empty: all
	Words    string // description; empty: none
	NoEffect string // warning if it has no effect: "has no effect…"

	// Of keys of queues:
	Engine    bool   // the engine reads the integer, or the words of the list, as members of dq_queue_conf with their names
	NotSocket string // why a queue of an endpoint can't have it; empty: it can
	LeaveOut  string // description of option --no-WORD of config generate, which lists the WORD otherwise
}

// Type is the type of a key, in the words of the reference.
type Type string

const (
	TypeInteger     Type = "integer"
	TypePositive    Type = "number above 0"
	TypeProbability Type = "number 0..1"
	TypeBoolean     Type = "true or false"
	TypeText        Type = "text"
	TypeFilled      Type = "text that is not empty"
	TypeChoice      Type = "choice"
	TypeDuration    Type = "duration (`2us`) or number"
	TypeRate        Type = "rate (`10Gbit/s`) or number"
	TypeMAC         Type = "Ethernet address"
	TypeIPv4        Type = "IPv4 address"
	TypeIPv6        Type = "IPv6 address"
	TypeAddress     Type = "IPv4 or IPv6 address"
	TypeIPv4Prefix  Type = "IPv4 address or prefix"
	TypeIPv6Prefix  Type = "IPv6 address or prefix"
	TypePorts       Type = "port or range (`1000-1010`)"
	TypeEndpoint    Type = "URI"
	TypeMap         Type = "map"
	TypeList        Type = "list"
)

// Section is a kind of map in the configuration.
type Section struct {
	Name     string
	Words    string
	Examples []string // YAML for the map that contains this one
	Keys     []Key
	Variants []*Section // sections by value of the key type, which is the first key of each
	Flat     *Section   // of a variant: the same with the nested map's keys next to type

	index map[string]*Key
}

// section returns a section with these keys.
func section(name, words string, examples []string, keys ...Key) *Section {
	s := &Section{Name: name, Words: words, Examples: examples, Keys: keys, index: make(map[string]*Key, len(keys))}
	for i := range keys {
		if s.index[keys[i].Name] != nil {
			panic(fmt.Sprintf("spec: %s has two rows of %s", name, keys[i].Name))
		}
		s.index[keys[i].Name] = &keys[i]
	}
	return s
}

// with returns the section with the keys of another appended.
func (s *Section) with(more *Section) *Section {
	keys := append([]Key(nil), s.Keys...)
	for _, k := range more.Keys {
		if s.index[k.Name] == nil {
			keys = append(keys, k)
		}
	}
	return section(s.Name, s.Words, s.Examples, keys...)
}

// Variant returns the variant with this value of the key type, or nil.
func (s *Section) Variant(kind string) *Section {
	for _, v := range s.Variants {
		if v.index["type"].Choices[0] == kind {
			return v
		}
	}
	return nil
}

// Find returns the row of a key, or nil.
func (s *Section) Find(name string) *Key { return s.index[name] }

// Key returns the row of a key. It panics if there is none.
func (s *Section) Key(name string) *Key {
	k := s.index[name]
	if k == nil {
		panic(fmt.Sprintf("spec: %s has no row of %s", s.Name, name))
	}
	return k
}

// Names returns the names of the keys.
func (s *Section) Names() []string {
	list := make([]string, len(s.Keys))
	for i := range s.Keys {
		list[i] = s.Keys[i].Name
	}
	return list
}

// DefaultOf returns the default of a key.
func DefaultOf[T any](k *Key) (v T) {
	if k.Default != nil {
		v = k.Default.(T)
	}
	return v
}
