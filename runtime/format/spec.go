// Package format holds headers of packets as data: a Spec says which fields one has, as a Lua table or a struct text
// declares them, and Compile checks it and makes a Format, which decodes and encodes single packets, gives the names of
// its fields to the text grammar, and writes documents and a dissector.
//
// It is pure: it imports the standard library and runtime/expr. A Format is immutable and safe for concurrent use.
package format

import "fmt"

// Kind is what the bits of a field are.
type Kind int

// The kinds. MAC, IPv4 and IPv6 are numbers or bytes that are shown as addresses.
const (
	Unsigned Kind = iota
	Signed
	Float
	Bytes
	MAC
	IPv4
	IPv6
)

// number says whether the bits are a whole number, which conditions and columns know.
func (k Kind) number() bool { return k == Unsigned || k == Signed || k == MAC || k == IPv4 }

// A Value is a number of a field that has a name.
type Value struct {
	Number uint64
	Name   string
}

// A Row is a field, reserved bits, a group of rows that are there or not, or a list of items.
type Row struct {
	Line     int    // in the source; 0: not known
	Name     string // empty: a group, or reserved bits
	Reserved bool   // bits that mean nothing: 0 when encoded
	Bits     int
	Kind     Kind
	Little   bool // bits count from the least significant one of the first byte
	Doc      string
	Unit     string
	Scale    float64 // shown as number * Scale + Offset; 0: 1
	Offset   float64
	Values   []Value
	Const    *uint64 // what it is in every such packet
	Is       string  // what encode gives it where nobody says: a number as text
	At       string  // where it lies, bits from the header's start; empty: behind the row before
	When     string  // the condition under which it is there

	Group bool              // Rows are there where When holds
	List  string            // the name of a list of items, Rows each
	Count string            // how many, a number as text
	Key   string            // the field of an item that says what it is,
	Match map[string]uint64 // where these fields of it have these values
	Items []Value           // names for items by their key: their value is the last field
	Rows  []Row
}

// Spec is a declared format.
type Spec struct {
	File      string // where it is declared
	Line      int
	Name      string
	Title     string
	Document  string   // what its bits are taken from
	Layer     string   // one of Layers
	Where     string   // a condition on fields that every packet has: which packets are of this format
	Sequence  string   // the field that counts packets
	Per       []string // fields for each of whose values Sequence begins again; none: it numbers the whole stream
	Place     string   // options of a reorder stage that place such packets, an example as text
	Data      string   // a condition: packets for which it is false carry none of the data
	Payload   string   // bytes of the payload behind the header, a number as text; empty: all that is there
	UDPPort   int      // where dissectors look for it; 0: nowhere
	Ethertype int
	Rows      []Row
}

// Layers are where a header begins: the packet, the network header, the transport header, the innermost payload.
var Layers = []string{"frame", "network", "transport", "payload"}

// Fault is what is wrong with a declared format.
type Fault struct {
	File, Format, Field string
	Line                int
	Msg                 string
}

func (f *Fault) Error() string {
	at := ""
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d: ", f.File, f.Line)
	}
	what := "format"
	if f.Format != "" {
		what += " " + f.Format
	}
	if f.Field != "" {
		what += ": field '" + f.Field + "'"
	}
	return at + what + ": " + f.Msg
}
