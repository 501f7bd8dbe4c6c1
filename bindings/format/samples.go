package format

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/format"
)

var sampleKeys = []string{"complex", "count", "frequency", "levels", "offset", "rate", "scale", "shape", "time", "type"}

// VLBI are the levels of 1-bit and of 2-bit samples of VLBI data.
var VLBI = [][]float64{{-1, 1}, {-3.316505, -1, 1, 3.316505}}

// samples reads { type = NAME | { of = TEXT, [NUMBER] = NAME, … } | { from = FORMAT }, … }.
func (d *declaration) samples(v lua.LValue) error {
	none := format.Row{}
	t, ok := v.(*lua.LTable)
	if !ok {
		if v == lua.LNil {
			return nil
		}
		return d.errorf(none, "samples: a table with type expected, got %s", row.Describe(v))
	}
	if odd := strange(t, sampleKeys); odd != "" {
		return d.errorf(none, "samples: %s", odd)
	}
	s := &format.Samples{}
	d.spec.Samples = s
	texts := map[string]*string{"complex": &s.Complex, "count": &s.Count, "frequency": &s.Frequency, "offset": &s.Offset, "rate": &s.Rate,
		"scale": &s.Scale, "time": &s.Time}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		v := t.RawGetString(key)
		if v == lua.LNil {
			continue
		}
		if *texts[key], ok = numberText(v); !ok {
			return d.errorf(none, "samples: %s: a number, or one as text, expected, got %s", key, row.Describe(v))
		}
	}
	if s.FullScale = s.Scale == "full"; s.FullScale {
		s.Scale = ""
	}
	if n, constant := format.Number(s.Scale); s.Scale != "" && constant && n == 0 {
		return d.errorf(none, "samples: scale: 0 is not a valid scale (expected another number, a text or \"full\")")
	}
	if err := d.sampleType(t.RawGetString("type")); err != nil {
		return err
	}
	if err := d.sampleShape(t.RawGetString("shape")); err != nil {
		return err
	}
	return d.sampleLevels(t.RawGetString("levels"))
}

// numberText returns a number as text.
func numberText(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), v != ""
	case lua.LNumber:
		return strconv.FormatFloat(float64(v), 'f', -1, 64), !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
	}
	return "", false
}

func (d *declaration) sampleType(v lua.LValue) error {
	s, none := d.spec.Samples, format.Row{}
	switch v := v.(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		s.Type = string(v)
		return nil
	case *lua.LTable:
		if odd := strange(v, []string{"from", "of"}); odd != "" {
			return d.errorf(none, "samples: type: %s", odd)
		}
		of, from := v.RawGetString("of"), v.RawGetString("from")
		ofText, isOf := of.(lua.LString)
		fromText, isFrom := from.(lua.LString)
		s.Of, s.From = string(ofText), string(fromText)
		if isOf == isFrom || isOf != (of != lua.LNil) || isFrom != (from != lua.LNil) {
			break
		}
		if err := d.listedTypes(v); err != nil {
			return err
		}
		if (len(s.Types) > 0) == isOf {
			return nil
		}
	}
	return d.errorf(none, "samples: type: a type's name, { of = FIELD, [NUMBER] = TYPE, … } or { from = FORMAT } expected, got %s", row.Describe(v))
}

// listedTypes reads the names of types by number.
func (d *declaration) listedTypes(t *lua.LTable) (err error) {
	s := d.spec.Samples
	t.ForEach(func(k, v lua.LValue) {
		if _, key := k.(lua.LString); key {
			return
		}
		name, ok := v.(lua.LString)
		n, bad := row.WholeNumber(k, 0, row.MaxInt)
		if (!ok || bad != nil) && err == nil {
			err = d.errorf(format.Row{}, "samples: type: [%s] = %s: a number and the name of a type expected", k, row.Describe(v))
		}
		s.Types = append(s.Types, format.Value{Number: uint64(n), Name: string(name)})
	})
	slices.SortFunc(s.Types, func(a, b format.Value) int { return cmp.Compare(a.Number, b.Number) })
	return err
}

func (d *declaration) sampleShape(v lua.LValue) error {
	t, ok := v.(*lua.LTable)
	if v == lua.LNil {
		return nil
	}
	if !ok || t.Len() == 0 {
		return d.errorf(format.Row{}, "samples: shape: a list of dimensions, numbers, fields or \"*\", expected, got %s", row.Describe(v))
	}
	for i := 1; i <= t.Len(); i++ {
		dim, ok := numberText(t.RawGetInt(i))
		if !ok {
			return d.errorf(format.Row{}, "samples: shape[%d]: a number, a field or \"*\" expected, got %s", i, row.Describe(t.RawGetInt(i)))
		}
		d.spec.Samples.Shape = append(d.spec.Samples.Shape, dim)
	}
	return nil
}

// sampleLevels reads a list of numbers, or "vlbi".
func (d *declaration) sampleLevels(v lua.LValue) error {
	s := d.spec.Samples
	if v == lua.LString("vlbi") {
		s.Levels = VLBI
		return nil
	}
	t, ok := v.(*lua.LTable)
	if v == lua.LNil {
		return nil
	}
	if !ok {
		return d.errorf(format.Row{}, "samples: levels: a list of numbers, or \"vlbi\", expected, got %s", row.Describe(v))
	}
	levels := make([]float64, t.Len())
	for i := range levels {
		n, ok := t.RawGetInt(i + 1).(lua.LNumber)
		if !ok || math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
			return d.errorf(format.Row{}, "samples: levels[%d]: a number expected, got %s", i+1, row.Describe(t.RawGetInt(i+1)))
		}
		levels[i] = float64(n)
	}
	s.Levels = [][]float64{levels}
	return nil
}
