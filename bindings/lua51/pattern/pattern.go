// Package pattern matches Lua patterns as defined by the Lua 5.1 reference manual. gopher-lua's own matcher uses a Go stack frame for each character
// of a repetition, finds all matches before it returns the first, and cannot be interrupted. The package is pure; it imports the standard library. A
// Matcher must be used by one goroutine.
package pattern

import (
	"errors"
	"strings"
)

const (
	maxCaptures  = 32
	maxDepth     = 200     // nesting of match, as in later versions of Lua
	interruptive = 1 << 16 // steps between two calls of ask
)

// Capture is a part of the subject: Start to End, or the position Start alone if End is Position.
type Capture struct{ Start, End int }

// Special values of a capture's End.
const (
	Position = -1
	unclosed = -2
)

// Matcher matches one pattern against one subject.
type Matcher struct {
	src, pat string
	ask      func() error
	captures [maxCaptures]Capture
	level    int // number of captures in use
	depth    int
	steps    int
}

// New returns a matcher of the pattern, in which a leading ^ is an ordinary character. ask, which may be nil, is called periodically; if it returns
// an error the match ends.
func New(src, pat string, ask func() error) *Matcher { return &Matcher{src: src, pat: pat, ask: ask} }

// Plain reports whether a pattern has no special characters.
func Plain(pat string) bool { return !strings.ContainsAny(pat, "^$*+?.([%-") }

// At matches the pattern at position s only, and returns the end of the match, or -1 if there is none. It returns an error for a malformed pattern,
// or the error of ask.
func (m *Matcher) At(s int) (end int, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ours := r.(failure)
			if !ours {
				panic(r)
			}
			end, err = -1, f.error
		}
	}()
	m.level, m.depth = 0, 0
	if end = m.match(s, 0); end >= 0 {
		m.checkClosed()
	}
	return end, nil
}

// Find calls At for s and all later positions up to the end of the subject.
func (m *Matcher) Find(s int) (start, end int, err error) {
	for ; s <= len(m.src); s++ {
		if end, err = m.At(s); end >= 0 || err != nil {
			return s, end, err
		}
	}
	return s, -1, nil
}

// Captures returns the captures of the last match. They are valid until the next one.
func (m *Matcher) Captures() []Capture { return m.captures[:m.level] }

// failure is the panic value of a malformed pattern or an interrupted match.
type failure struct{ error }

func malformed(text string) { panic(failure{errors.New(text)}) }

func (m *Matcher) checkClosed() {
	for _, c := range m.captures[:m.level] {
		if c.End == unclosed {
			malformed("unfinished capture")
		}
	}
}

// step counts a step and calls ask periodically.
func (m *Matcher) step() {
	if m.steps++; m.steps%interruptive == 0 && m.ask != nil {
		if err := m.ask(); err != nil {
			panic(failure{err})
		}
	}
}

// match matches the pattern from p on at s. It recurses only for the rest of a pattern after captures and repetitions.
func (m *Matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		malformed("pattern too complex")
	}
	end := m.items(s, p)
	m.depth--
	return end
}

func (m *Matcher) items(s, p int) int {
	for p < len(m.pat) {
		m.step()
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, Position)
			}
			return m.open(s, p+1, unclosed)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				if next, end, special := m.escape(s, p); special {
					if end < 0 {
						return -1
					}
					s, p = end, next
					continue
				}
			}
		}
		ep := m.itemEnd(p)
		if ep < len(m.pat) {
			switch m.pat[ep] {
			case '?':
				if m.single(s, p, ep) {
					if end := m.match(s+1, ep+1); end >= 0 {
						return end
					}
				}
				p = ep + 1
				continue
			case '*':
				return m.most(s, p, ep, 0)
			case '+':
				return m.most(s, p, ep, 1)
			case '-':
				return m.least(s, p, ep)
			}
		}
		if !m.single(s, p, ep) {
			return -1
		}
		s, p = s+1, ep
	}
	return s
}

// escape matches items that begin with % and are not classes: %b, %f and back references. next is the position of the rest of the pattern.
func (m *Matcher) escape(s, p int) (next, end int, special bool) {
	switch c := m.pat[p+1]; {
	case c == 'b':
		return p + 4, m.balance(s, p+2), true
	case c == 'f':
		next, end = m.frontier(s, p+2)
		return next, end, true
	case c >= '0' && c <= '9':
		return p + 2, m.again(s, c), true
	}
	return 0, 0, false
}

// itemEnd returns the end of the item at p, without its repetition character.
func (m *Matcher) itemEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p == len(m.pat) {
			malformed("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				malformed("malformed pattern (missing ']')")
			}
			if m.pat[p] == '%' {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

// single reports whether the item p..ep matches the character at s.
func (m *Matcher) single(s, p, ep int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, ep-1)
	}
	return c == m.pat[p]
}

// inSet reports whether c is in the set that begins at p with '[' and ends at end with ']'.
func (m *Matcher) inSet(c byte, p, end int) bool {
	in := true
	p++
	if m.pat[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if inClass(c, m.pat[p]) {
				return in
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether c belongs to the class %class.
func inClass(c, class byte) (in bool) {
	lower := class | 0x20
	letter := c|0x20 >= 'a' && c|0x20 <= 'z'
	digit := c >= '0' && c <= '9'
	switch lower {
	case 'a':
		in = letter
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > ' ' && c < 0x7f && !letter && !digit
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = letter || digit
	case 'x':
		in = digit || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return c == class
	}
	return in == (class >= 'a')
}

// most matches as many repetitions as possible, then fewer and fewer, but at least least.
func (m *Matcher) most(s, p, ep, least int) int {
	n := 0
	for m.single(s+n, p, ep) {
		n++
		m.step()
	}
	for ; n >= least; n-- {
		if end := m.match(s+n, ep+1); end >= 0 {
			return end
		}
	}
	return -1
}

// least matches as few repetitions as the rest of the pattern allows.
func (m *Matcher) least(s, p, ep int) int {
	for {
		if end := m.match(s, ep+1); end >= 0 {
			return end
		}
		if !m.single(s, p, ep) {
			return -1
		}
		s++
	}
}

// open starts a capture and matches the rest of the pattern.
func (m *Matcher) open(s, p, what int) int {
	if m.level == maxCaptures {
		malformed("too many captures")
	}
	m.captures[m.level] = Capture{s, what}
	m.level++
	end := m.match(s, p)
	if end < 0 {
		m.level--
	}
	return end
}

// close ends the innermost open capture and matches the rest of the pattern.
func (m *Matcher) close(s, p int) int {
	k := m.level - 1
	for k >= 0 && m.captures[k].End != unclosed {
		k--
	}
	if k < 0 {
		malformed("invalid pattern capture")
	}
	m.captures[k].End = s
	end := m.match(s, p)
	if end < 0 {
		m.captures[k].End = unclosed
	}
	return end
}

// balance matches %bxy; p is the position of x.
func (m *Matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		malformed("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	for open := 1; ; {
		s++
		m.step()
		switch {
		case s >= len(m.src):
			return -1
		case m.src[s] == m.pat[p+1]:
			if open--; open == 0 {
				return s + 1
			}
		case m.src[s] == m.pat[p]:
			open++
		}
	}
}

// frontier matches %f[set]; p is the position of the set.
func (m *Matcher) frontier(s, p int) (next, end int) {
	if p >= len(m.pat) || m.pat[p] != '[' {
		malformed("missing '[' after '%f' in pattern")
	}
	next = m.itemEnd(p)
	var before, at byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		at = m.src[s]
	}
	if m.inSet(before, p, next-1) || !m.inSet(at, p, next-1) {
		return next, -1
	}
	return next, s
}

// again matches the text of capture number c.
func (m *Matcher) again(s int, c byte) int {
	k := int(c) - '1'
	if k < 0 || k >= m.level || m.captures[k].End == unclosed {
		malformed("invalid capture index")
	}
	if m.captures[k].End == Position {
		return -1
	}
	text := m.src[m.captures[k].Start:m.captures[k].End]
	if !strings.HasPrefix(m.src[s:], text) {
		return -1
	}
	return s + len(text)
}
