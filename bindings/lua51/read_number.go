package lua51

import (
	"bufio"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// readNumber reads a number like C's fscanf with %lf: the longest prefix that may begin a number; nil if that is not a number.
func readNumber(L *lua.LState, r *bufio.Reader) (lua.LValue, error) {
	n := numeral{L: L, r: r}
	for n.take(" \t\n\v\f\r") {
		n.text = n.text[:0]
	}
	n.take("+-")
	if !n.word("infinity") && !n.word("nan") {
		n.digits()
	}
	if unlessEnd(n.err) != nil {
		return nil, n.err
	}
	if v, ok := ReadNumber(string(n.text)); ok {
		return lua.LNumber(v), nil
	}
	return lua.LNil, nil
}

// numeral is the text of a number being read.
type numeral struct {
	L    *lua.LState
	r    *bufio.Reader
	text []byte
	err  error
}

// take consumes the next byte if it is in set.
func (n *numeral) take(set string) bool {
	next, err := n.r.Peek(1)
	if err != nil {
		n.err = err
		return false
	}
	if strings.IndexByte(set, next[0]) < 0 {
		return false
	}
	if len(n.text) == cap(n.text) {
		Reserve(n.L, uint64(2*cap(n.text)))
	}
	n.text = append(n.text, next[0])
	_, _ = n.r.Discard(1) // was peeked
	return true
}

// takeAll consumes bytes while they are in set and returns their number.
func (n *numeral) takeAll(set string) (count int) {
	for n.take(set) {
		count++
	}
	return count
}

// word consumes the longest matching prefix of a word, ignoring case.
func (n *numeral) word(word string) bool {
	for i := range word {
		if !n.take(word[i:i+1] + strings.ToUpper(word[i:i+1])) {
			return i > 0
		}
	}
	return true
}

// digits consumes digits, hexadecimal after 0x, and an exponent.
func (n *numeral) digits() {
	const decimal = "0123456789"
	digits, exponent, count := decimal, "eE", 0
	if n.take("0") {
		if n.take("xX") {
			digits, exponent = decimal+"abcdefABCDEF", "pP"
		} else {
			count = 1
		}
	}
	count += n.takeAll(digits)
	if n.take(".") {
		count += n.takeAll(digits)
	}
	mantissa := len(n.text)
	if count > 0 && n.take(exponent) {
		n.take("+-")
		if n.takeAll(decimal) == 0 {
			n.text = n.text[:mantissa]
		}
	}
}
