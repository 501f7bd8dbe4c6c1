package bindings

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// objectKinds are the keys of which an argument that is a table has one.
var objectKinds = []string{"qp", "qps", "txq", "rxq", "dma", "rdma", "buffers", "address", "key", "semaphore", "exit"}

// impliedOps are the operations of transmit rings that an argument needs, where the kernel names none.
var impliedOps = map[string][]string{"qp": {"send", "put", "get", "add"}, "qps": {"send", "put", "get", "add"}, "rdma": {"send", "put", "get", "add"}, "dma": {"copy"}}

// objectArgument returns argument i of k:start from a table, and its object unless it is a number or an array.
func (k *kernelObject) objectArgument(c *call, o *options, i int, t *lua.LTable, regions map[int]string) (a kernel.Arg, object *session.KernelObject) {
	kind, v := "", lua.LValue(lua.LNil)
	for _, name := range objectKinds {
		if is := t.RawGetString(name); is != lua.LNil {
			kind, v = name, is
		}
	}
	object = &session.KernelObject{Ops: impliedOps[kind], RX: k.ringNumber(c, o, i, t, "rx"), Offset: uint64(k.ringNumber(c, o, i, t, "offset"))}
	switch kind {
	case "":
		c.Check(k.k.Unfit(i, "a table names one of "+strings.Join(objectKinds, ", ")))
	case "qp", "txq", "dma", "rdma":
		object.TX = []int{k.ringNumber(c, o, i, t, kind)}
	case "qps":
		list, _ := v.(*lua.LTable)
		for n := 1; list != nil && n <= list.Len(); n++ {
			object.TX = append(object.TX, int(lua.LVAsNumber(list.RawGetInt(n))))
		}
		if len(object.TX) == 0 {
			c.Check(k.k.Unfit(i, "qps is a list of transmit rings, from 1"))
		}
	case "rxq":
		object.RX = k.ringNumber(c, o, i, t, kind)
	case "exit":
		object.Exit = true
	case "key":
		a, err := k.k.NumberArg(i, 0)
		c.Check(err)
		regions[i] = v.String()
		return a, nil
	case "semaphore":
		return k.semaphoreArgument(c, i, v), nil
	default: // buffers, address
		object.Region, object.Count = v.String(), k.ringNumber(c, o, i, t, "count")
		if kind == "buffers" {
			object.Bytes = k.ringNumber(c, o, i, t, "bytes")
			if object.Bytes == 0 {
				c.Check(k.k.Unfit(i, "buffers have bytes: { buffers = \"region\", bytes = 256 }"))
			}
		}
		if kind == "address" { // a pointer or a number
			return kernel.Arg{}, object
		}
	}
	for _, tx := range object.TX {
		if tx < 1 {
			c.Check(k.k.Unfit(i, kind+" is the number of a transmit ring, from 1"))
		}
	}
	c.Check(k.k.PointerArg(i, kind))
	return kernel.Arg{}, object
}

// ringNumber reads a whole number of an argument's table; 0: there is none.
func (k *kernelObject) ringNumber(c *call, _ *options, i int, t *lua.LTable, key string) int {
	v := t.RawGetString(key)
	if v == lua.LNil {
		return 0
	}
	n, err := row.WholeNumber(v, 0, 1<<40)
	if err != nil {
		c.Check(k.k.Unfit(i, key+": "+err.Error()))
	}
	return int(n)
}

// semaphoreArgument returns an array of uint64 as the items of a semaphore, and writes its header: the bytes of a row, and how many items there are.
func (k *kernelObject) semaphoreArgument(c *call, i int, v lua.LValue) kernel.Arg {
	x, ok := row.Userdata[*arrayObject](v)
	if !ok || x.a.Type.Name != "uint64" || len(x.a.Shape) != 2 || x.a.Shape[0] < 2 || x.a.Shape[1] < 3 {
		c.Check(k.k.Unfit(i, "semaphore is a daqiri.array of uint64 of shape { items + 1, 3 or more words }"))
	}
	c.Check(x.a.Set(0, float64(8*x.a.Shape[1])))
	c.Check(x.a.Set(1, float64(x.a.Shape[0]-1)))
	a, err := k.k.SemaphoreArg(i, x.a)
	c.Check(err)
	return a
}
