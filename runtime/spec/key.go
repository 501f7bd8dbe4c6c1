package spec

import "fmt"

// Key is a key of the configuration: what the parser, the reference and the schema know of it.
type Key struct {
	Name     string
	Type     keyType
	Items    keyType  // of a list: what it has
	Map      *Section // of a map, and of a list of maps: the keys in it
	Lo, Hi   int64    // the range of integers, both included
	Choices  []string // the words of a choice; of another type words that may stand instead
	AnyCase  bool     // the choice may be in capitals
	Default  any      // string, int, bool or []string; nil: the zero value
	Required bool     // absent is a fault
	When     string   // where it is required, if not everywhere
	Unit     string
	Where    string // which interfaces or engines it is for; empty: all that can have it
	Words    string // what it does; empty: nothing
	NoEffect string // where it does nothing, the warning: "has no effect…"
}

// keyType is what a key takes, as the reference says it.
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
	Examples []string // YAML that stands in the map above this one
	Keys     []Key
	Variants []*Section // what it is by the value of the key type, which each of them has first
	Flat     *Section   // of a variant: the same with the keys of its map beside type

	index map[string]*Key
}

// section makes a section with these keys.
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

// with returns the section with the keys of another beside its own, which come first.
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

// key returns the row of a key that the parser reads, which has to be there.
func (s *Section) key(name string) *Key {
	k := s.index[name]
	if k == nil {
		panic(fmt.Sprintf("spec: %s has no row of %s", s.Name, name))
	}
	return k
}

// Names lists the keys.
func (s *Section) Names() []string {
	list := make([]string, len(s.Keys))
	for i := range s.Keys {
		list[i] = s.Keys[i].Name
	}
	return list
}

// otherwise is a key's value where it is absent.
func otherwise[T any](k *Key) (v T) {
	if k.Default != nil {
		v = k.Default.(T)
	}
	return v
}
