package bindings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// column is a copy of one field of every packet of a burst; it outlives the burst. Hot.
type column struct {
	name   string
	values session.Numbers
	has    []uint8 // 0: the packet lacks the field; nil: all packets have it
	signed bool
}

func (*column) LuaType() string { return "column" }

func (col *column) present(i int) bool { return col.has == nil || col.has[i] != 0 }

var columnType = &typeDef{
	name: "column",
	self: "col",
	doc: `a column
		One field of every packet of a burst ('b:column'). It is a copy and outlives the burst; '#col' is the number of packets.
		. [integer] integer | nil: the value of a packet, nil where it lacks the field; raises above 2^53`,
	fields: []field{
		{"name", `-> string
			The field, or the text, that it is of.
			> print(col.name)`},
	},
	get: func(rt *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
		col := self.(*column)
		if n, ok := key.(lua.LNumber); ok {
			if i := int(n) - 1; i >= 0 && i < col.values.Len() && float64(n) == float64(i+1) {
				return col.at(L, i)
			}
			return lua.LNil // like the element after the last, so that ipairs ends
		}
		if key == lua.LString("name") {
			return lua.LString(col.name)
		}
		return nil
	},
	methods: []entry{
		{"histogram", columnHistogram, `. bins integer = 10: how many, 1 to 65536
			. min? number: the lower end, from 0 on; by default the smallest value
			. max? number: the upper end, from 0 on; by default the largest value
			-> table: counts (a list), min, max, width, below, above
			Counts the values in bins of equal width. What lies outside is in 'below' and 'above'.
			> local hist = col:histogram{ bins = 4, min = 0, max = 1500 }
			> print(hist.counts[1], hist.above)`},
		{"max", columnMax, `-> integer | u64 | nil
			The largest value; nil where no packet has the field.
			> print(col:max())`},
		{"mean", columnMean, `-> number | nil
			The mean of the values; nil where no packet has the field.
			> print(col:mean())`},
		{"min", columnMin, `-> integer | u64 | nil
			The smallest value; nil where no packet has the field.
			> print(col:min())`},
		{"sum", columnSum, `-> integer | u64
			The sum of the values: a u64 above 2^53; raises where 64 bits do not hold it.
			> print(col:sum())`},
		{"text", columnText, `- i integer: which packet, from 1
			-> string | nil
			A value as text: addresses as such, anything else in decimal; nil where the packet lacks the field.
			> print(col:text(1))`},
		{"u64", columnU64, `- i integer: which packet, from 1
			-> u64 | nil
			A value with all its bits; nil where the packet lacks the field.
			> print(col:u64(1))`},
		{"unique", columnUnique, `-> any[]: numbers, and u64s above 2^53
			The different values, in order.
			> print(#col:unique())`},
	},
	meta: []entry{
		{name: "__len", fn: func(c *call) int {
			col, _ := row.Userdata[*column](c.L.Get(1))
			return c.Push(lua.LNumber(col.values.Len()))
		}},
		{name: "__tostring", fn: func(c *call) int {
			col, _ := row.Userdata[*column](c.L.Get(1))
			return c.Push(lua.LString(fmt.Sprintf("column %s of %d packets", col.name, col.values.Len())))
		}},
		{name: "__show", fn: columnShow},
	},
}

// burstColumn implements b:column of a field, or of an expression over fields.
func burstColumn(c *call) int {
	b := selfBurst(c)
	format := c.formatArg(2)
	if text, ok := c.Arg(1).(lua.LString); ok {
		if _, named := session.FieldNamed(string(text)); !named && strings.ContainsAny(string(text), " ()+-*/%&|~<>") {
			return c.numberColumn(b, string(text), format)
		}
	}
	if text, ok := c.Arg(1).(lua.LString); ok && format.Moves(string(text)) {
		return c.numberColumn(b, string(text), format)
	}
	name, f := luaformat.FieldArg(&c.Call, 1, format)
	values, has := c.rt.columnRoom(b.b.N())
	n, err := b.b.Column(f, values, has)
	c.Check(err)
	return c.Push(c.rt.newObject(newColumn(name, values, has, n, f.Flags&session.FieldSigned != 0)))
}

// numberColumn evaluates an expression such as "payload_len // 8" for each packet.
func (c *call) numberColumn(b *burst, text string, f *luaformat.Format) int {
	known := &c.rt.numbers
	if f != nil {
		known = &f.Numbers
	}
	number, err := luaformat.Cached(known, text, f.Fields(), session.CompileNumber)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	values, has := c.rt.columnRoom(b.b.N())
	n, err := b.b.Eval(number, values, has)
	c.Check(err)
	return c.Push(c.rt.newObject(newColumn(text, values, has, n, number.Signed)))
}

// columnRoom returns scratch space for a column of n packets, reused between calls to stay in the cache.
func (rt *Runtime) columnRoom(n int) (values []uint64, has []uint8) {
	if len(rt.columnHas) < n {
		rt.columnValues, rt.columnHas = make([]uint64, n), make([]uint8, n)
	}
	return rt.columnValues[:n], rt.columnHas[:n]
}

// newColumn copies values; n of them are present.
func newColumn(name string, values []uint64, has []uint8, n int, signed bool) *column {
	col := &column{name: name, values: session.NewNumbers(values), signed: signed}
	if n < len(values) {
		col.has = slices.Clone(has)
	}
	return col
}

// at returns value i as a Lua number, or nil if the packet lacks the field.
func (col *column) at(L *lua.LState, i int) lua.LValue {
	switch v := col.values.At(i); {
	case !col.present(i):
		return lua.LNil
	case col.signed && absolute(int64(v)) <= row.MaxInt:
		return lua.LNumber(int64(v))
	case v > row.MaxInt:
		lua51.Raise(L, "%s of packet %d is above 2^53, where a number would lose bits: use col:u64(%d)", col.name, i+1, i+1)
		return nil
	default:
		return lua.LNumber(v)
	}
}

func absolute(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

// each calls fn for every present value.
func (col *column) each(fn func(v uint64)) {
	for i := range col.values.Len() {
		if col.present(i) {
			fn(col.values.At(i))
		}
	}
}

// float converts a value to a double, rounding values above 2^53.
func (col *column) float(v uint64) float64 {
	if col.signed {
		return float64(int64(v))
	}
	return float64(v)
}

func (rt *Runtime) columnValue(col *column, v uint64) lua.LValue {
	if col.signed {
		return lua.LNumber(int64(v))
	}
	return rt.integer(v)
}

func columnU64(c *call) int {
	col := receiver[*column](c, "column")
	i := c.Index(1, "packet", col.values.Len())
	if !col.present(i) {
		return c.Push(lua.LNil)
	}
	return c.Push(c.rt.newU64(col.values.At(i)))
}

// columnText implements tostring of a column: addresses in their notation, other values in decimal.
func columnText(c *call) int {
	col := receiver[*column](c, "column")
	i := c.Index(1, "packet", col.values.Len())
	if !col.present(i) {
		return c.Push(lua.LNil)
	}
	return c.Push(lua.LString(luaformat.FieldText(col.name, col.values.At(i), col.signed)))
}

// columnSum returns the sum as a number, or as a u64 above 2^53.
func columnSum(c *call) int {
	col := receiver[*column](c, "column")
	var sum uint64
	exact := 0.0
	col.each(func(v uint64) { sum += v; exact += col.float(v) })
	if exact > math.MaxUint64 {
		c.Raise("the sum of %s does not fit into 64 bits", col.name)
	}
	return c.Push(c.rt.columnValue(col, sum))
}

func columnMean(c *call) int {
	col := receiver[*column](c, "column")
	sum, n := 0.0, 0
	col.each(func(v uint64) { sum += col.float(v); n++ })
	if n == 0 {
		return c.Push(lua.LNil)
	}
	return c.Push(lua.LNumber(sum / float64(n)))
}

func columnMin(c *call) int {
	return extreme(c, func(col *column, a, b uint64) bool { return col.less(a, b) })
}

func columnMax(c *call) int {
	return extreme(c, func(col *column, a, b uint64) bool { return col.less(b, a) })
}

func (col *column) less(a, b uint64) bool {
	if col.signed {
		return int64(a) < int64(b)
	}
	return a < b
}

func extreme(c *call, better func(col *column, a, b uint64) bool) int {
	col := receiver[*column](c, "column")
	var best uint64
	found := false
	col.each(func(v uint64) {
		if !found || better(col, v, best) {
			best, found = v, true
		}
	})
	if !found {
		return c.Push(lua.LNil)
	}
	return c.Push(c.rt.columnValue(col, best))
}

// columnUnique returns the distinct values in ascending order.
func columnUnique(c *call) int {
	col := receiver[*column](c, "column")
	var values []uint64
	col.each(func(v uint64) { values = append(values, v) })
	slices.SortFunc(values, func(a, b uint64) int {
		switch {
		case col.less(a, b):
			return -1
		case col.less(b, a):
			return 1
		}
		return 0
	})
	t := c.L.NewTable()
	for _, v := range slices.Compact(values) {
		t.Append(c.rt.columnValue(col, v))
	}
	return c.Push(t)
}

// columnHistogram implements col:histogram: counts in equal bins from min to max, by default those of the column.
func columnHistogram(c *call) int {
	col := receiver[*column](c, "column")
	o := c.options(1)
	lo, hi := math.Inf(1), math.Inf(-1)
	col.each(func(v uint64) { lo, hi = min(lo, col.float(v)), max(hi, col.float(v)) })
	if lo > hi {
		lo, hi = 0, 0
	}
	lo, hi = o.Number("min", lo), o.Number("max", hi)
	if hi < lo {
		o.Raise("option 'max' is below 'min'")
	}
	return c.Push(c.histogram(lo, hi, int(o.Whole("bins", 10, 1, 1<<16)), func(add func(f float64)) {
		col.each(func(v uint64) { add(col.float(v)) })
	}))
}

// histogram counts the values passed by each in equal bins from lo to hi.
func (c *call) histogram(lo, hi float64, bins int, each func(add func(f float64))) *lua.LTable {
	counts := make([]int, bins)
	below, above := 0, 0
	each(func(f float64) {
		switch {
		case f < lo:
			below++
		case f > hi:
			above++
		case f != f: // NaN
		case hi == lo:
			counts[0]++
		default:
			counts[min(int((f-lo)/(hi-lo)*float64(len(counts))), len(counts)-1)]++
		}
	})
	list := c.L.CreateTable(len(counts), 0)
	for i, n := range counts {
		list.RawSetInt(i+1, lua.LNumber(n))
	}
	t := c.L.NewTable()
	t.RawSetString("counts", list)
	for name, v := range map[string]float64{"min": lo, "max": hi, "width": (hi - lo) / float64(len(counts)),
		"below": float64(below), "above": float64(above)} {
		t.RawSetString(name, lua.LNumber(v))
	}
	return t
}

// AppendJSON appends the values as a JSON array, with null for absent ones.
func (col *column) AppendJSON(out []byte) ([]byte, error) {
	out = append(out, '[')
	for i := range col.values.Len() {
		v := col.values.At(i)
		if i > 0 {
			out = append(out, ',')
		}
		switch {
		case !col.present(i):
			out = append(out, "null"...)
		case col.signed:
			out = strconv.AppendInt(out, int64(v), 10)
		default:
			out = strconv.AppendUint(out, v, 10)
		}
	}
	return append(out, ']'), nil
}

const (
	columnPerRow = 8  // values per row at the prompt
	columnRows   = 16 // maximum number of rows
)

// columnShow formats a column for the prompt: rows of values, each row prefixed with the number of its first packet.
func columnShow(c *call) int {
	col, _ := row.Userdata[*column](c.L.Get(1))
	texts, wide := make([]string, min(col.values.Len(), columnPerRow*columnRows)), 0
	for i := range texts {
		texts[i] = "-"
		if col.present(i) {
			texts[i] = luaformat.FieldText(col.name, col.values.At(i), col.signed)
		}
		wide = max(wide, len(texts[i]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "column %s of %d packets", col.name, col.values.Len())
	for i, text := range texts {
		if i%columnPerRow == 0 {
			fmt.Fprintf(&b, "\n%6d", i+1)
		}
		fmt.Fprintf(&b, "  %*s", wide, text)
	}
	if n := col.values.Len() - len(texts); n > 0 {
		fmt.Fprintf(&b, "\n     … %d more", n)
	}
	return c.Push(lua.LString(b.String()))
}
