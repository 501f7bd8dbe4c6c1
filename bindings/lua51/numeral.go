package lua51

import (
	"errors"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// ReadNumber parses text like Lua's tonumber: C's strtod, with only space after the number. gopher-lua's own conversion reads "010" as octal and
// rejects "1e3".
func ReadNumber(s string) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if strings.Contains(s, "_") { // accepted by Go's parser
		return 0, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(digits) > 1 && (digits[1] == 'x' || digits[1] == 'X') && !strings.ContainsAny(digits, "pP") {
		s += "p0"
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// ToNumber converts v like lua_tonumber: a number, or a string that is one.
func ToNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ReadNumber(string(v))
	}
	return 0, false
}
