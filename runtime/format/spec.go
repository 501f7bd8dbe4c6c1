// Package format describes packet headers as data. A Spec lists the fields of a header, as declared by a Lua table or a struct text. Compile checks a
// Spec and returns a Format, which decodes and encodes single packets, resolves its field names for the text grammar, and generates documents and a
// dissector.
//
// The package is pure: it imports the standard library and runtime/expr. A Format is immutable and safe for concurrent use.
package format

import "fmt"

// Kind is the type of a field.
type Kind int

// Types of fields. MAC, IPv4 and IPv6 are numbers or bytes formatted as addresses.
const (
	Unsigned Kind = iota
	Signed
	Float
	Bytes
	MAC
	IPv4
	IPv6
)

// number reports whether the type is an integer, which conditions and columns support.
func (k Kind) number() bool { return k == Unsigned || k == Signed || k == MAC || k == IPv4 }

// A Value is a named number of a field.
type Value struct {
	Number uint64
	Name   string
}

// A Row is a field, reserved bits, a conditional group of rows, or a list of items.
type Row struct {
	Line     int    // line of the source; 0: unknown
	Name     string // empty: a group or reserved bits
	Reserved bool   // ignored bits, encoded as 0
	Bits     int
	Kind     Kind
	Little   bool // bits are numbered from the least significant bit of the first byte
	Doc      string
	Unit     string
	Scale    float64 // displayed as number * Scale + Offset; 0: 1
	Offset   float64
	Hex      bool // displayed in hexadecimal
	Values   []Value
	BitNames []Value // names of single bits, numbered from the least significant one
	Const    *uint64 // constant value in every packet of the format
	Is       string  // default value to encode: a number as text
	At       string  // position in bits from the start of the header; empty: after the previous row
	When     string  // condition of its presence

	Group bool              // Rows are present if When holds
	List  string            // name of a list of items, with Rows each
	Count string            // number of items, a number as text
	Key   string            // field that identifies an item,
	Match map[string]uint64 // together with these field values
	Items []Value           // named items by key; the value is the last field
	Rows  []Row
}

// Spec is a declared format.
type Spec struct {
	File      string // source file
	Line      int
	Name      string
	Title     string
	Document  string   // reference document of the layout
	Layer     string   // one of Layers
	Where     string   // condition on common fields that selects packets of this format
	Sequence  string   // field with a sequence number
	Per       []string // fields with a separate sequence per value; none: one sequence for the whole stream
	Place     string   // options of a reorder stage for such packets, an example as text
	Data      string   // condition: false for packets that carry no data
	Payload   string   // length of the payload in bytes, a number as text; empty: the rest of the packet
	Samples   *Samples // nil: none
	UDPPort   int      // port that dissectors register for; 0: none
	Ethertype int
	Rows      []Row
}

// Layers names the possible starts of a header: the packet, the network header, the transport header, the innermost payload.
var Layers = []string{"frame", "network", "transport", "payload"}

// Error is an error in a declared format.
type Error struct {
	File, Format, Field string
	Line                int
	Msg                 string
}

func (f *Error) Error() string {
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
