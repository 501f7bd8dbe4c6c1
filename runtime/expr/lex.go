package expr

import (
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokLiteral
	tokName
	tokOperator // including parentheses and the words and, or, not, in
)

type token struct {
	kind tokenKind
	at   Pos
	text string
	lit  node // for tokLiteral
}

type lexer struct {
	text string
	off  int
	at   Pos
}

// operators lists all operators, longer ones before their prefixes.
var operators = []string{
	"==", "~=", "!=", "<=", ">=", "<<", ">>", "//",
	"<", ">", "|", "~", "&", "+", "-", "*", "/", "%", "^", "(", ")",
}

// foreign maps operators of other languages to the equivalent ones.
var foreign = map[string]string{"&&": "and", "||": "or", "!": "not", "=": "=="}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isWord(c byte) bool  { return isDigit(c) || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// run returns the number of bytes from off on that satisfy ok.
func (l *lexer) run(off int, ok func(byte) bool) int {
	n := 0
	for off+n < len(l.text) && ok(l.text[off+n]) {
		n++
	}
	return n
}

// take consumes and returns n bytes of one line.
func (l *lexer) take(n int) string {
	s := l.text[l.off : l.off+n]
	l.off += n
	l.at.Col += utf8.RuneCountInString(s)
	return s
}

func (l *lexer) skipSpace() {
	for l.off < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.off]) >= 0 {
		if l.text[l.off] == '\n' {
			l.at.Line++
			l.at.Col = 0
		}
		l.take(1)
	}
}

func (l *lexer) next() (token, error) {
	l.skipSpace()
	at := l.at
	if l.off == len(l.text) {
		return token{kind: tokEnd, at: at}, nil
	}
	c := l.text[l.off]
	switch {
	case l.startsAddress():
		lit, err := l.address()
		return token{tokLiteral, at, "", lit}, err
	case isDigit(c) || c == '.' && l.run(l.off+1, isDigit) > 0:
		lit, err := l.number()
		return token{tokLiteral, at, "", lit}, err
	case isWord(c):
		return l.word(), nil
	}
	return l.operator()
}

// startsAddress reports whether an address follows: two colons, or digits with three dots.
func (l *lexer) startsAddress() bool {
	n := l.run(l.off, func(c byte) bool { return isHex(c) || c == ':' || c == '.' })
	s := l.text[l.off : l.off+n]
	if strings.Count(s, ":") >= 2 {
		return true
	}
	return isDigit(l.text[l.off]) && strings.Count(s, ".") == 3
}

func (l *lexer) address() (node, error) {
	at := l.at
	text := l.take(l.run(l.off, func(c byte) bool { return isWord(c) || c == ':' || c == '.' }))
	length := ""
	if strings.HasPrefix(l.text[l.off:], "/") && l.run(l.off+1, isDigit) > 0 {
		l.take(1)
		length = l.take(l.run(l.off, isDigit))
	}
	return parseAddress(at, text, length)
}

// number consumes digits and, as unit, all letters that follow; "bit/s" is one unit.
func (l *lexer) number() (node, error) {
	at, start := l.at, l.off
	if strings.HasPrefix(strings.ToLower(l.text[l.off:]), "0x") {
		l.take(2)
		l.take(l.run(l.off, isHex))
	} else {
		l.take(l.run(l.off, func(c byte) bool { return isDigit(c) || c == '.' }))
		l.exponent()
	}
	digits := l.text[start:l.off]
	unit := l.take(l.run(l.off, isWord))
	if strings.HasSuffix(unit, "bit") && strings.HasPrefix(l.text[l.off:], "/s") && l.run(l.off+2, isWord) == 0 {
		unit += l.take(2)
	}
	return parseNumber(at, digits, unit)
}

// exponent consumes an exponent such as e-6, but leaves an e without digits to the unit.
func (l *lexer) exponent() {
	rest := l.text[l.off:]
	if rest == "" || rest[0]|0x20 != 'e' {
		return
	}
	n := 1
	if len(rest) > 1 && (rest[1] == '-' || rest[1] == '+') {
		n++
	}
	if digits := l.run(l.off+n, isDigit); digits > 0 {
		l.take(n + digits)
	}
}

// word consumes a name including dots, or an operator that is a word.
func (l *lexer) word() token {
	at := l.at
	text := l.take(l.run(l.off, isWord))
	switch text {
	case "and", "or", "not", "in":
		return token{tokOperator, at, text, nil}
	}
	for strings.HasPrefix(l.text[l.off:], ".") {
		n := l.run(l.off+1, isWord)
		if n == 0 {
			break
		}
		text += l.take(1 + n)
	}
	return token{tokName, at, text, nil}
}

func (l *lexer) operator() (token, error) {
	at, rest := l.at, l.text[l.off:]
	for _, op := range operators {
		if strings.HasPrefix(rest, op) && !(op == "&" && strings.HasPrefix(rest, "&&")) &&
			!(op == "|" && strings.HasPrefix(rest, "||")) {
			l.take(len(op))
			if op == "!=" {
				op = "~="
			}
			return token{tokOperator, at, op, nil}, nil
		}
	}
	for _, n := range []int{2, 1} {
		if len(rest) >= n && foreign[rest[:n]] != "" {
			return token{}, errorAt(at, "unexpected '%s' (did you mean '%s'?)", rest[:n], foreign[rest[:n]])
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, errorAt(at, "unexpected character %q", r)
}
