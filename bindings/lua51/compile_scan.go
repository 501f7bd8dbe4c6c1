package lua51

import (
	"strings"
)

// maxBrackets is the maximum number of open brackets and blocks in the source: more than maxLevels, which counts differently, and few enough for
// the parser's stack of 300 bytes per level.
const maxBrackets = 1000

// scan checks source text before parsing for constructs that grow the parser's stack without bound: nested brackets and blocks, and chains of
// operators.
func scan(name, source string) error {
	s := &scanner{text: source, line: 1}
	for s.at < len(s.text) {
		s.token()
		switch {
		case s.depth > maxBrackets:
			return syntaxError(name, s.line, "chunk has too many syntax levels (at most %d things inside each other)", maxLevels)
		case s.runs[max(s.depth, 0)] > maxChain:
			return syntaxError(name, s.line, "more than %d operators in a row: take it apart", maxChain)
		}
	}
	return nil
}

// scanner reads source text token by token; it leaves errors to the parser.
type scanner struct {
	text  string
	at    int
	line  int
	depth int
	runs  [maxBrackets + 2]int // operators so far in the expression at each depth
}

func (s *scanner) token() {
	c := s.text[s.at]
	s.at++
	switch {
	case c == '\n':
		s.line++
	case c == '"' || c == '\'':
		s.quoted(c)
	case c == '-' && strings.HasPrefix(s.text[s.at:], "-"):
		s.at++
		if !s.long() {
			s.skip(strings.IndexByte(s.text[s.at:], '\n'))
		}
	case c == '[':
		s.at--
		if !s.long() {
			s.at++
			s.open(1)
		}
	case c == '(' || c == '{':
		s.open(1)
	case c == ')' || c == '}' || c == ']':
		s.open(-1)
	case isWord(c):
		start := s.at - 1
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		s.word(s.text[start:s.at])
	default:
		s.sign(c)
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (s *scanner) sign(c byte) {
	switch c {
	case ',', ';':
		s.run(-1)
	case '=', '<', '>', '~':
		if strings.HasPrefix(s.text[s.at:], "=") {
			s.at++
			c = '~'
		}
		if c == '=' {
			s.run(-1)
		} else {
			s.run(1)
		}
	case '+', '-', '*', '/', '%', '^', '#':
		s.run(1)
	case '.':
		if strings.HasPrefix(s.text[s.at:], ".") {
			s.at++
			s.run(1)
		}
	}
}

// run counts an operator, or resets the count if by is negative.
func (s *scanner) run(by int) {
	if d := max(s.depth, 0); by < 0 {
		s.runs[d] = 0
	} else {
		s.runs[d]++
	}
}

// open changes the nesting depth.
func (s *scanner) open(by int) {
	if s.depth += by; by > 0 && s.depth > 0 {
		s.runs[s.depth] = 0
	}
}

func (s *scanner) word(w string) {
	switch w {
	case "and", "or", "not":
		s.run(1)
	case "do", "function", "if", "repeat":
		s.open(1)
	case "end", "until":
		s.open(-1)
		s.run(-1)
	case "else", "elseif", "then", "in", "local", "return", "while", "for":
		s.run(-1)
	}
}

// quoted skips a string.
func (s *scanner) quoted(quote byte) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == quote:
			return
		case c == '\n':
			s.line++
			return // unterminated
		case c == '\\' && s.at < len(s.text):
			if s.text[s.at] == '\n' {
				s.line++
			}
			s.at++
		}
	}
}

// long skips text in long brackets, if it begins here.
func (s *scanner) long() bool {
	rest := s.text[s.at:]
	if !strings.HasPrefix(rest, "[") {
		return false
	}
	level := 1
	for level < len(rest) && rest[level] == '=' {
		level++
	}
	if level == len(rest) || rest[level] != '[' {
		return false
	}
	end := "]" + strings.Repeat("=", level-1) + "]"
	s.skip(strings.Index(rest, end))
	s.at = min(s.at+len(end), len(s.text))
	return true
}

// skip advances by n bytes, or to the end of the text if n is negative.
func (s *scanner) skip(n int) {
	if n < 0 {
		n = len(s.text) - s.at
	}
	s.line += strings.Count(s.text[s.at:s.at+n], "\n")
	s.at += n
}
