package bindings

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// arrayObject is an array in GPU or host memory shared by kernels and the script. Cold.
type arrayObject struct{ a *kernel.Array }

func (*arrayObject) LuaType() string { return "array" }

var arrayType = &typeDef{
	name: "array",
	self: "array",
	doc: `an array
		Numbers of one type that kernels and the script share ('daqiri.array'); the last index is the fastest. '#array' is how many there are. What the script reads
		is what the array has at that moment: a kernel that is under way may change it ('op:wait()' waits for one).`,
	fields: []field{
		{"kind", `-> string: host, host_pinned or device
			Where it is.
			> print(array.kind)`},
		{"shape", `-> integer[]
			How many elements it has in each dimension.
			> print(#array.shape)`},
		{"type", `-> string: "fp32", …
			The type of its elements.
			> print(array.type)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		a := self.(*arrayObject).a
		switch key {
		case lua.LString("kind"):
			return lua.LString(a.Kind)
		case lua.LString("type"):
			return lua.LString(a.Type.Name)
		case lua.LString("shape"):
			t := rt.root.NewTable()
			for _, n := range a.Shape {
				t.Append(lua.LNumber(n))
			}
			return t
		}
		return nil
	},
	methods: []entry{
		{"fill", arrayFill, `- value number: of all elements
			Sets all elements to the same number.
			> array:fill(0)`},
		{"get", arrayGet, `- ... integer: an index for each dimension, from 1; none: all elements
			-> number | u64 | table: an element; or all of them in order, a list
			Reads an element, or all.
			> print(array:get(1), #array:get())`},
		{"histogram", arrayHistogram, `. bins integer = 10: how many, 1 to 65536
			. min? number: the lower end; by default the smallest element
			. max? number: the upper end; by default the largest element
			-> table: counts (a list), min, max, width, below, above
			Counts the elements in bins of equal width. What lies outside is in 'below' and 'above'.
			> print(array:histogram{ bins = 4, min = 0, max = 1 }.counts[1])`},
		{"max", arrayMax, `-> number | u64 | nil
			The largest element; nil where none is a number.
			> print(array:max())`},
		{"min", arrayMin, `-> number | u64 | nil
			The smallest element; nil where none is a number.
			> print(array:min())`},
		{"set", arraySet, `- ... any: an index for each dimension, from 1, and the number; or one argument: a list of all numbers in order, or a string with all bytes
			Writes an element, or all. A whole number that the type has not raises; others are rounded. An element of type uint64 takes a u64 exactly.
			> array:set(1, 0.5)
			> array:set{ 1, 2, 3, 4 }`},
		{"snapshot", arraySnapshot, `-> array
			A copy in the host's memory, which no kernel of a GPU changes.
			> print(array:snapshot():sum())`},
		{"sum", arraySum, `-> number | u64
			The sum of the elements; raises where 64 bits don't hold that of whole numbers.
			> print(array:sum())`},
		{"write", arrayWrite, `- file string: its name; where that ends in '.npy' numpy reads it ('numpy.load'), else the file has the elements' bytes alone
			. overwrite boolean = false: replaces a file that is there; else it stays, and the call fails
			-> true | failure
			Writes the elements to a file, in the host's byte order.
			> assert(array:write(dir .. "/out.npy"))`},
	},
	meta: []entry{
		{name: "__len", fn: func(c *call) int {
			a, _ := row.Userdata[*arrayObject](c.L.Get(1))
			return c.Push(lua.LNumber(a.a.N))
		}},
		{name: "__tostring", fn: func(c *call) int {
			a, _ := row.Userdata[*arrayObject](c.L.Get(1))
			return c.Push(lua.LString(a.a.String()))
		}},
	},
}

func selfArray(c *call) *kernel.Array { return receiver[*arrayObject](c, "array").a }

// moduleArray implements daqiri.array{}.
func moduleArray(c *call) int {
	c.AtMost(1)
	o := c.options(1)
	o.Need("kind", "type", "shape")
	kind := o.choice("kind", kernel.Kinds...)
	typ := o.choice("type", kernel.TypeNames()...)
	a, err := kernel.NewArray(kind, typ, o.shape("shape"), o.gpuNumber())
	c.Check(err)
	return c.Push(c.rt.newObject(&arrayObject{a}))
}

// bindings reads regions' memory: a table of arrays, or of tables that describe the memory, by region.
func (o *options) bindings(key string) map[string]session.Binding {
	if !o.Has(key) {
		return nil
	}
	t, ok := o.Get(key).(*lua.LTable)
	if !ok {
		o.Wrong(key, "a table of regions expected, got %s", row.Describe(o.Get(key)))
	}
	list := map[string]session.Binding{}
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			o.Wrong(key, "names of regions expected, got %s", row.Describe(k))
		}
		wrong := func(format string, args ...any) { o.Wrong(key, format, args...) }
		list[string(name)] = o.c.binding(o.Arg, string(name), v, wrong)
	})
	return list
}

// memory reads argument n as memory of the application for a region; nil: it is absent.
func (c *call) memory(n int, region string) *session.Binding {
	if c.Arg(n) == lua.LNil {
		return nil
	}
	b := c.binding(n, region, c.Arg(n), func(format string, args ...any) { c.ArgError(n, format, args...) })
	return &b
}

// binding reads the memory of one region, in argument n. wrong raises an error for other values.
func (c *call) binding(n int, region string, v lua.LValue, wrong func(string, ...any)) session.Binding {
	b := session.Binding{Bytes: -1}
	if a, ok := row.Userdata[*arrayObject](v); ok {
		b.Array = a.a
		return b
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		wrong("region %s: an array or a table expected, got %s", region, row.Describe(v))
	}
	m := c.OptionsOf(n, t)
	m.Allow([]string{"array", "bytes", "cuda_ipc", "fd", "file", "offset", "shm"})
	m.ExactlyOne("array", "fd", "file", "shm", "cuda_ipc")
	switch {
	case m.Has("array"):
		a, ok := row.Userdata[*arrayObject](m.Get("array"))
		if !ok {
			m.Wrong("array", "an array expected, got %s", row.Describe(m.Get("array")))
		}
		b.Array = a.a
	case m.Has("fd"):
		b.FD = int(m.Whole("fd", 0, 0, math.MaxInt32))
	case m.Has("file"):
		b.Path = m.Str("file", "")
	case m.Has("shm"):
		name := strings.TrimPrefix(m.Str("shm", ""), "/")
		if name == "" || strings.Contains(name, "/") {
			m.Wrong("shm", "the name of a POSIX shared memory object expected")
		}
		b.Path = "/dev/shm/" + name
	default:
		if b.Handle = m.Str("cuda_ipc", ""); len(b.Handle) != session.IPCBytes {
			m.Wrong("cuda_ipc", "the %d bytes of a handle expected, got %d", session.IPCBytes, len(b.Handle))
		}
	}
	if b.Offset = m.Size("offset"); m.Has("bytes") {
		b.Bytes = m.Size("bytes")
	}
	return b
}

// moduleMemoryRequirements implements daqiri.memory_requirements.
func moduleMemoryRequirements(c *call) int {
	c.AtMost(2)
	o := c.options(2)
	_, cfg, _, err := c.configuration(o.openOptions())
	c.Check(err)
	env := session.Env{Scheduler: c.rt.Scheduler, Bindings: o.bindings("bindings")}
	list, err := session.Requirements(cfg, env)
	if err != nil { // memory of another process, too, may be what does not fit
		c.L.Push(lua.LNil)
		c.L.Push(lua.LString(session.StatusName(err)))
		c.L.Push(lua.LString(err.Error()))
		return 3
	}
	t := c.L.NewTable()
	for _, r := range list {
		of := c.L.NewTable()
		of.RawSetString("kind", lua.LString(r.Kind))
		for name, v := range map[string]int{"slot_size": r.SlotSize, "headroom": r.Headroom, "num_bufs": r.NumBufs, "capacity": int(r.Capacity),
			"alignment": int(r.Alignment)} {
			of.RawSetString(name, lua.LNumber(v))
		}
		t.RawSetString(r.Name, of)
	}
	return c.Push(t)
}

const maxDimensions = 8

// shape reads a number of elements, or a list with one number per dimension.
func (o *options) shape(key string) []int {
	t, ok := o.Get(key).(*lua.LTable)
	if !ok {
		return []int{int(o.Whole(key, 1, 1, row.MaxInt))}
	}
	if t.Len() < 1 || t.Len() > maxDimensions {
		o.Wrong(key, "a list of 1 to %d numbers expected", maxDimensions)
	}
	var shape []int
	for i := range t.Len() {
		n, err := row.WholeNumber(t.RawGetInt(i+1), 1, row.MaxInt)
		if err != nil {
			o.Wrong(key, "%v", err)
		}
		shape = append(shape, int(n))
	}
	return shape
}

// element converts an element to a Lua value; a signed one above 2^53 is rounded.
func (rt *Runtime) element(v any) lua.LValue {
	switch v := v.(type) {
	case uint64:
		return rt.integer(v)
	case nil:
		return lua.LNil
	default:
		return lua.LNumber(kernel.Number(v))
	}
}

// elementAt returns the flat index of the element addressed by the first n arguments.
func (c *call) elementAt(a *kernel.Array, n int) int {
	at := make([]int, n)
	for i := range at {
		at[i] = int(c.Whole(i+1, "index", 1, row.MaxInt)) - 1
	}
	k, err := a.Index(at)
	c.Check(err)
	return k
}

func arrayGet(c *call) int {
	a := selfArray(c)
	if c.Count() == 0 {
		t := c.L.CreateTable(a.N, 0)
		c.Check(a.Each(func(v any) { t.Append(c.rt.element(v)) }))
		return c.Push(t)
	}
	v, err := a.Get(c.elementAt(a, c.Count()))
	c.Check(err)
	return c.Push(c.rt.element(v))
}

func arraySet(c *call) int {
	a := selfArray(c)
	n := c.Count()
	switch v := c.Arg(n).(type) {
	case *lua.LTable:
		c.AtMost(1)
		values := make([]float64, v.Len())
		for i := range values {
			f, ok := v.RawGetInt(i + 1).(lua.LNumber)
			if !ok {
				c.ArgError(1, "element %d: a number expected, got %s", i+1, row.Describe(v.RawGetInt(i+1)))
			}
			values[i] = float64(f)
		}
		c.Check(a.SetAll(values))
	case lua.LString:
		c.AtMost(1)
		if len(v) != a.N*a.Type.Bytes {
			c.ArgError(1, "%d bytes expected, got %d", a.N*a.Type.Bytes, len(v))
		}
		c.Check(a.SetBytes(0, []byte(v)))
	case *lua.LUserData:
		wide, ok := v.Value.(row.U64)
		if !ok {
			c.Wanted(n, "number, u64, list or string")
		}
		c.Check(a.SetWide(c.elementAt(a, n-1), uint64(wide)))
	default:
		f, ok := v.(lua.LNumber)
		if !ok {
			c.Wanted(n, "number, u64, list or string")
		}
		c.Check(a.Set(c.elementAt(a, n-1), float64(f)))
	}
	return 0
}

func arrayFill(c *call) int {
	f, ok := c.Arg(1).(lua.LNumber)
	if !ok {
		c.Wanted(1, "number")
	}
	c.Check(selfArray(c).Fill(float64(f)))
	return 0
}

// figure pushes a number computed from the elements, or raises err.
func (c *call) figure(v any, err error) int {
	c.Check(err)
	return c.Push(c.rt.element(v))
}

func arraySum(c *call) int { return c.figure(selfArray(c).Sum()) }
func arrayMin(c *call) int { return c.figure(selfArray(c).Least()) }
func arrayMax(c *call) int { return c.figure(selfArray(c).Most()) }

func arraySnapshot(c *call) int {
	s, err := selfArray(c).Snapshot()
	c.Check(err)
	return c.Push(c.rt.newObject(&arrayObject{s}))
}

func arrayWrite(c *call) int {
	a := selfArray(c)
	return c.Done(a.WriteFile(c.Str(1, "file name"), c.options(2).Bool("overwrite", c.rt.Open.Overwrite)))
}

// arrayHistogram implements a:histogram: counts in equal bins from min to max, by default those of the array.
func arrayHistogram(c *call) int {
	a := selfArray(c)
	o := c.options(1)
	lo, hi := math.Inf(1), math.Inf(-1)
	c.Check(a.Each(func(v any) {
		if f := kernel.Number(v); f == f && !math.IsInf(f, 0) {
			lo, hi = min(lo, f), max(hi, f)
		}
	}))
	if lo > hi {
		lo, hi = 0, 0
	}
	lo, hi = o.any("min", lo), o.any("max", hi)
	if hi < lo {
		o.Raise("option 'max' is below 'min'")
	}
	return c.Push(c.histogram(lo, hi, int(o.Whole("bins", 10, 1, 1<<16)), func(add func(f float64)) {
		c.Check(a.Each(func(v any) { add(kernel.Number(v)) }))
	}))
}

// any reads a number of either sign.
func (o *options) any(key string, missing float64) float64 {
	v := o.Get(key)
	if v == lua.LNil {
		return missing
	}
	f, ok := v.(lua.LNumber)
	if !ok || math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		o.Wrong(key, "a number expected, got %s", row.Describe(v))
	}
	return float64(f)
}
