package lua51

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// directive is one % directive of a format string, as in C.
type directive struct {
	flags     string
	width     int // -1: none
	precision int // -1: none
	verb      byte
}

// Arguments gives access to the arguments of a call; methods that check one raise if it is wrong.
type Arguments interface {
	Arg(n int) lua.LValue
	Count() int
	Text(n int, what string) string // a string, or a number as one
	Wanted(n int, what string)      // raises: what was expected
	ArgError(n int, format string, args ...any)
}

// Format returns the result of string.format: like Lua 5.1's; in addition, %d, %u, %x, %X, %o and %s accept userdata with a method Uint64.
func Format(L *lua.LState, c Arguments) string {
	text := c.Text(1, "format text")
	var out strings.Builder
	for n := 2; ; n++ {
		plain, rest, found := strings.Cut(text, "%")
		Reserve(L, uint64(out.Len()+len(plain)))
		out.WriteString(plain)
		if !found {
			return out.String()
		}
		if strings.HasPrefix(rest, "%") {
			out.WriteByte('%')
			text, n = rest[1:], n-1
			continue
		}
		d, tail, err := parseDirective(rest)
		if err != nil {
			c.ArgError(1, "%v", err)
		}
		if n > c.Count() {
			c.ArgError(n, "no value for %%%c", d.verb)
		}
		piece := d.render(L, c, n)
		Reserve(L, uint64(out.Len()+len(piece)))
		out.WriteString(piece)
		text = tail
	}
}

func parseDirective(s string) (d directive, rest string, err error) {
	i := 0
	for i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	d.flags = s[:i]
	number := func() int {
		start := i
		for i < len(s) && i-start < 2 && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if start == i {
			return -1
		}
		n, _ := strconv.Atoi(s[start:i])
		return n
	}
	d.width, d.precision = number(), -1
	if i < len(s) && s[i] == '.' {
		i++
		d.precision = max(number(), 0)
	}
	if i == len(s) {
		return d, "", fmt.Errorf("'%%%s' is unfinished", s)
	}
	d.verb = s[i]
	if strings.IndexByte("cdiouxXeEfgGqs", d.verb) < 0 {
		return d, "", fmt.Errorf("unknown directive '%%%s'", s[:i+1])
	}
	return d, s[i+1:], nil
}

// spec returns the directive in the notation of package fmt, with another verb.
func (d directive) spec(verb string) string {
	s := "%" + d.flags
	if d.width >= 0 {
		s += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		s += "." + strconv.Itoa(d.precision)
	}
	return s + verb
}

func (d directive) render(L *lua.LState, c Arguments, n int) string {
	switch d.verb {
	case 'q':
		s := c.Text(n, "a string")
		Reserve(L, 4*uint64(len(s)))
		return quote(s)
	case 's':
		s := L.ToStringMeta(c.Arg(n)).String()
		if d.precision >= 0 && d.precision < len(s) {
			s = s[:d.precision]
		}
		return d.pad(s)
	case 'c':
		return d.pad(string([]byte{byte(int64(FormatNumber(c, n)))}))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(FormatNumber(c, n))
	}
	return d.integer(c, n)
}

// float formats like C: Go's %g has no default precision, and inf is spelt differently.
func (d directive) float(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return d.pad(strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+")))
	}
	if d.precision < 0 {
		d.precision = 6
	}
	return fmt.Sprintf(d.spec(string(d.verb)), f)
}

func (d directive) integer(c Arguments, n int) string {
	verb := d.verb
	if d.precision >= 0 {
		d.flags = strings.ReplaceAll(d.flags, "0", "")
	}
	signed := verb == 'd' || verb == 'i'
	if !signed {
		d.flags = strings.NewReplacer("+", "", " ", "").Replace(d.flags)
	}
	if signed || verb == 'u' {
		verb = 'd'
	}
	if ud, ok := c.Arg(n).(*lua.LUserData); ok {
		if u, ok := ud.Value.(interface{ Uint64() uint64 }); ok {
			return d.whole(verb, u.Uint64())
		}
	}
	f := FormatNumber(c, n)
	switch {
	case f >= math.MaxUint64 || f < math.MinInt64 || math.IsNaN(f):
		c.ArgError(n, "%v does not fit into 64 bits", f)
	case f >= math.MaxInt64:
		return d.whole(verb, uint64(f))
	case signed:
		return fmt.Sprintf(d.spec("d"), int64(f))
	}
	return d.whole(verb, uint64(int64(f)))
}

// whole formats an unsigned number. Go's # and 0 exclude the prefix from the width, and add a prefix to 0.
func (d directive) whole(verb byte, u uint64) string {
	if verb != 'x' && verb != 'X' || !strings.Contains(d.flags, "#") {
		return fmt.Sprintf(d.spec(string(verb)), u)
	}
	prefix := "0" + string(verb)
	if u == 0 {
		prefix = ""
	}
	d.flags = strings.ReplaceAll(d.flags, "#", "")
	if strings.Contains(d.flags, "0") && !strings.Contains(d.flags, "-") {
		d.precision = max(d.width-len(prefix), 1)
	}
	digits := d
	digits.flags, digits.width = "", -1
	return d.pad(prefix + fmt.Sprintf(digits.spec(string(verb)), u))
}

// FormatNumber returns argument n with Lua's conversion: a number, or a string that is one.
func FormatNumber(c Arguments, n int) float64 {
	v, ok := ToNumber(c.Arg(n))
	if !ok {
		c.Wanted(n, "number")
	}
	return v
}

func (d directive) pad(s string) string {
	fill := strings.Repeat(" ", max(d.width-len(s), 0))
	if strings.Contains(d.flags, "-") {
		return s + fill
	}
	return fill + s
}

// quote formats a string as a Lua string literal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch ch := s[i]; ch {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(ch)
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(ch)
		}
	}
	b.WriteByte('"')
	return b.String()
}
