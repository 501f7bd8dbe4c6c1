package spec

import "fmt"

// Key is a key of the configuration, as used by the parser, the reference and the schema.
type Key struct {
	Name     string
	Type     keyType
	Items    keyType  // element type of a list
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
}

// keyType is the type of a key, in the words of the reference.
type keyType string

const (
	typeInteger     keyType = "integer"
	typePositive    keyType = "number above 0"
	typeProbability keyType = "number 0..1"
	typeBoolean     keyType = "true or false"
	typeText        keyType = "text"
	typeFilled      keyType = "text that is not empty"
	typeChoice      keyType = "choice"
	typeDuration    keyType = "duration (`2us`) or number"
	typeRate        keyType = "rate (`10Gbit/s`) or number"
	typeMAC         keyType = "Ethernet address"
	typeIPv4        keyType = "IPv4 address"
	typeIPv6        keyType = "IPv6 address"
	typeAddress     keyType = "IPv4 or IPv6 address"
	typeIPv4Prefix  keyType = "IPv4 address or prefix"
	typeIPv6Prefix  keyType = "IPv6 address or prefix"
	typePorts       keyType = "port or range (`1000-1010`)"
	typeEndpoint    keyType = "URI"
	typeMap         keyType = "map"
	typeList        keyType = "list"
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

// variant returns the variant with this value of the key type, or nil.
func (s *Section) variant(kind string) *Section {
	for _, v := range s.Variants {
		if v.index["type"].Choices[0] == kind {
			return v
		}
	}
	return nil
}

// find returns the row of a key, or nil.
func (s *Section) find(name string) *Key { return s.index[name] }

// key returns the row of a key. It panics if there is none.
func (s *Section) key(name string) *Key {
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

// otherwise returns the default of a key.
func otherwise[T any](k *Key) (v T) {
	if k.Default != nil {
		v = k.Default.(T)
	}
	return v
}
