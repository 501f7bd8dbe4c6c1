package row

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// MaxInt is the largest magnitude below which a Lua number represents every integer exactly.
const MaxInt = 1 << 53

// Userdata returns the Go value of v if it is a T.
func Userdata[T any](v lua.LValue) (T, bool) {
	if ud, ok := v.(*lua.LUserData); ok {
		t, ok := ud.Value.(T)
		return t, ok
	}
	var zero T
	return zero, false
}

// Describe returns the type name of a value for error messages.
func Describe(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LNilType:
		return "no value"
	case *lua.LUserData:
		if n, ok := v.Value.(Object); ok {
			return "a " + n.LuaType()
		}
	case lua.LString:
		return fmt.Sprintf("the string %q", Clip(string(v), 40))
	case lua.LNumber:
		return "the number " + v.String()
	}
	return "a " + v.Type().String()
}

// Object is implemented by the Go value of every userdata of the API.
type Object interface{ LuaType() string }

// Clip returns at most n bytes of s, with an ellipsis if it is longer.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// WholeNumber converts v to an integer in lo..hi.
func WholeNumber(v lua.LValue, lo, hi int64) (int64, error) {
	f, ok := v.(lua.LNumber)
	switch {
	case !ok:
		return 0, fmt.Errorf("a whole number expected, got %s", Describe(v))
	case float64(f) != math.Trunc(float64(f)):
		return 0, fmt.Errorf("%s is not a whole number", f)
	case float64(f) < float64(lo) || float64(f) > float64(hi):
		return 0, fmt.Errorf("%s is outside %d..%d", f, lo, hi)
	}
	return int64(f), nil
}

// U64 is a 64-bit unsigned integer in Lua, for values above a number's precision.
type U64 uint64

// LuaType returns "u64".
func (U64) LuaType() string { return "u64" }

// Uint64 returns the number.
func (u U64) Uint64() uint64 { return uint64(u) }

// Unsigned converts a number or u64 that fits width bits.
func Unsigned(v lua.LValue, width int) (uint64, error) {
	if u, ok := Userdata[U64](v); ok {
		if width < 64 && uint64(u)>>width != 0 {
			return 0, fmt.Errorf("%d does not fit into %d bits", uint64(u), width)
		}
		return uint64(u), nil
	}
	hi := int64(MaxInt)
	if width < 53 {
		hi = 1<<width - 1
	}
	n, err := WholeNumber(v, 0, hi)
	return uint64(n), err
}

// Unknown returns the text of an error about an unknown name, with a suggestion where a known name is close.
func Unknown(what, name string, known []string) string {
	text := fmt.Sprintf("unknown %s '%s'", what, name)
	if s := suggest.Nearest(name, known); s != "" {
		text += fmt.Sprintf(" (did you mean '%s'?)", s)
	}
	return text
}

// Suggestion returns a known name that is close to name, as the end of an error; "" if there is none.
func Suggestion(name string, known []string) string {
	if s := suggest.Nearest(name, known); s != "" {
		return fmt.Sprintf(" (did you mean %q?)", s)
	}
	return ""
}
