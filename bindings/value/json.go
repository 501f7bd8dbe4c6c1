package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

const (
	MaxNesting = 100
	maxJSON    = 64 << 20 // bytes of text; a table that contains others many times reaches it quickly
)

var errLongJSON = fmt.Errorf("its JSON is longer than %d MiB", maxJSON>>20)

// DecodedBytes is an upper bound of the memory that a byte of JSON takes as a Lua value.
const DecodedBytes = 40

// ParseJSON decodes one value, with numbers as json.Number.
func ParseJSON(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		err = Finite(v)
	}
	if err != nil {
		return nil, err
	}
	if _, err = d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text behind the value")
	}
	return v, nil
}

// Finite returns an error for a number outside the range of a Lua number.
func Finite(v any) (err error) {
	switch v := v.(type) {
	case json.Number:
		_, err = v.Float64()
	case []any:
		for _, x := range v {
			err = errors.Join(err, Finite(x))
		}
	case map[string]any:
		for _, x := range v {
			err = errors.Join(err, Finite(x))
		}
	}
	return err
}

// jsonAppender is implemented by objects of the API that have a JSON form.
type jsonAppender interface {
	AppendJSON(out []byte) ([]byte, error)
}

// AppendJSON appends a value as JSON on one line, with sorted keys. depth is 0.
func AppendJSON(out []byte, v lua.LValue, depth int) ([]byte, error) {
	if depth > MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels (a table that contains itself?)", MaxNesting)
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return append(out, "null"...), nil
	case lua.LBool:
		return strconv.AppendBool(out, bool(v)), nil
	case lua.LNumber:
		return appendNumber(out, float64(v))
	case lua.LString:
		return AppendText(out, string(v))
	case *lua.LTable:
		if len(out) > maxJSON {
			return nil, errLongJSON
		}
		return appendTable(out, v, depth)
	case *lua.LUserData:
		switch x := v.Value.(type) {
		case row.U64:
			return strconv.AppendUint(out, uint64(x), 10), nil
		case jsonAppender:
			return x.AppendJSON(out)
		}
		if _, ours := v.Value.(row.Object); !ours {
			text, err := json.Marshal(v.Value) // configuration data
			return append(out, text...), err
		}
	}
	return nil, fmt.Errorf("%s has no JSON form", row.Describe(v))
}

func appendNumber(out []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("%v has no JSON form", f)
	case f == math.Trunc(f) && math.Abs(f) <= row.MaxInt:
		return strconv.AppendInt(out, int64(f), 10), nil
	}
	return strconv.AppendFloat(out, f, 'g', -1, 64), nil
}

// AppendText appends a string as JSON.
func AppendText(out []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("a string that is not UTF-8 has no JSON form (daqiri.hex shows bytes)")
	}
	if len(out)+len(s) > maxJSON {
		return nil, errLongJSON
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}

// appendTable writes an array if the keys are 1..n, otherwise an object; an empty table is {}.
func appendTable(out []byte, t *lua.LTable, depth int) ([]byte, error) {
	length, n := t.Len(), 0
	values := map[string]lua.LValue{}
	var failed error
	t.ForEach(func(k, v lua.LValue) {
		n++
		switch k := k.(type) {
		case lua.LString:
			values[string(k)] = v
		case lua.LNumber:
			values[k.String()] = v
		default:
			failed = fmt.Errorf("a table with %s as a key has no JSON form", row.Describe(k))
		}
	})
	if failed != nil {
		return nil, failed
	}
	if length > 0 && n == length {
		out = append(out, '[')
		for i := 1; i <= length; i++ {
			if i > 1 {
				out = append(out, ',')
			}
			if out, failed = AppendJSON(out, t.RawGetInt(i), depth+1); failed != nil {
				return nil, failed
			}
		}
		return append(out, ']'), nil
	}
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	out = append(out, '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		if out, failed = AppendText(out, k); failed != nil {
			return nil, failed
		}
		if out, failed = AppendJSON(append(out, ':'), values[k], depth+1); failed != nil {
			return nil, failed
		}
	}
	return append(out, '}'), nil
}

// FromGo converts decoded JSON or YAML to a Lua value; integer converts a 64-bit number. A null becomes nil, which leaves a hole in a list.
func FromGo(L *lua.LState, v any, integer func(uint64) lua.LValue) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case json.Number:
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return integer(n)
		}
		f, _ := v.Float64()
		return lua.LNumber(f)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case int:
		return lua.LNumber(v)
	case uint64:
		return integer(v)
	case []any:
		t := L.CreateTable(len(v), 0)
		for i, x := range v {
			t.RawSetInt(i+1, FromGo(L, x, integer))
		}
		return t
	case map[string]any:
		t := L.CreateTable(0, len(v))
		for k, x := range v {
			t.RawSetString(k, FromGo(L, x, integer))
		}
		return t
	}
	return lua.LNil
}
