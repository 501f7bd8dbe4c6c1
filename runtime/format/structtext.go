package format

import (
	"fmt"
	"strings"
)

// structCodes maps the type characters of Python's struct module that have a fixed size.
var structCodes = map[byte]struct {
	bits int
	kind Kind
}{
	'b': {8, Signed}, 'B': {8, Unsigned}, '?': {8, Unsigned}, 'c': {8, Bytes},
	'h': {16, Signed}, 'H': {16, Unsigned}, 'i': {32, Signed}, 'I': {32, Unsigned}, 'l': {32, Signed}, 'L': {32, Unsigned},
	'q': {64, Signed}, 'Q': {64, Unsigned}, 'f': {32, Float}, 'd': {64, Float},
}

// ParseStruct parses a text of Python's struct module, such as ">IBBHHIH", into rows without names; 'x' becomes reserved bits. Sizes are the standard
// ones, so the text must begin with '>', '!' or '<'. The prefix '=' is rejected because it means the machine's byte order.
func ParseStruct(text string) ([]Row, error) {
	if text == "" || strings.IndexByte("><!", text[0]) < 0 {
		return nil, fmt.Errorf("%q begins with the byte order: '>' or '!' for big endian, '<' for little endian", text)
	}
	little := text[0] == '<'
	var rows []Row
	count, counted := 0, false
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ':
			continue
		case c >= '0' && c <= '9':
			if count, counted = count*10+int(c-'0'), true; count > 1<<16 {
				return nil, fmt.Errorf("%q: the count %d is more than 65536", text, count)
			}
			continue
		}
		n := 1
		if counted {
			n = count
		}
		count, counted = 0, false
		if c == 's' || c == 'x' {
			if n > 0 {
				rows = append(rows, Row{Bits: 8 * n, Kind: Bytes, Little: little, Reserved: c == 'x'})
			}
			continue
		}
		code, ok := structCodes[c]
		if !ok {
			return nil, fmt.Errorf("%q: '%c' is not a code with a fixed size: b B ? c h H i I l L q Q f d, s and x", text, c)
		}
		for range n {
			rows = append(rows, Row{Bits: code.bits, Kind: code.kind, Little: little})
		}
	}
	if counted {
		return nil, fmt.Errorf("%q ends with a count", text)
	}
	return rows, nil
}
