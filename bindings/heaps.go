package bindings

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// sessionHeaps implements s:heaps{...}: a stage that assembles heaps from pieces of different lengths.
func sessionHeaps(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region")
	f := opts.format()
	h := session.HeapsOptions{
		MemoryRegion:   opts.Str("memory_region", ""),
		Fields:         f.With(opts.ownFields("fields")),
		ID:             opts.Str("id", ""),
		Offset:         opts.Str("offset", ""),
		Size:           opts.Str("size", ""),
		HeapBytes:      int(opts.Size("heap_bytes")),
		Segment:        int(opts.Whole("segment", 1, 1, 4)) - 1,
		Window:         int(opts.Whole("window", 0, 1, int64(session.MaxWindow))),
		TimeoutNS:      opts.Whole("timeout_us", 0, 0, 1<<40) * 1000,
		Fill:           opts.fill("fill", f),
		DropIncomplete: opts.choice("missing_action", "passthrough", "drop") == "drop",
		Policy:         opts.Policy(session.Drop),
	}
	opts.heapRule(&h, f)
	at := opts.payloadPlace(f, h.Segment)
	h.PayloadByteOffset, h.AtPayload, h.Header, h.Length = at.offset, at.payload, at.header, at.length
	if f != nil && f.Declared != nil {
		h.Items = itemList(f.Declared)
	}
	st, err := o.s.Heaps(opts.Str("name", ""), h)
	if err == nil {
		c.rt.Shared.heapFormats.Store(st, f)
	}
	return c.pushStage(st, o, err)
}

// heapRule sets the defaults of a SPEAD format's field names.
func (o *options) heapRule(h *session.HeapsOptions, f *luaformat.Format) {
	known := func(name string) bool { return f != nil && (f.Moves(name) || slices.Contains(f.Names(), name)) }
	if h.ID == "" && known("heap_cnt") {
		h.ID = "heap_cnt"
	}
	if h.Offset == "" && known("payload_offset") {
		h.Offset = "payload_offset"
	}
	if h.Size == "" && h.HeapBytes == 0 && known("heap_len") {
		h.Size = "heap_len"
	}
	switch {
	case h.ID == "":
		o.Raise("option 'id' is missing: which heap a packet is of, a number as text over fields")
	case h.Offset == "":
		o.Raise("option 'offset' is missing: where in the heap its payload belongs, bytes, a number as text over fields")
	case h.Size == "" && h.HeapBytes == 0:
		o.Raise("option 'size' (a number as text over fields) or 'heap_bytes' is missing: how long a heap is")
	case h.Size != "" && h.HeapBytes != 0:
		o.Wrong("heap_bytes", "'size' sets the length of a heap, too: keep one of them")
	}
}

// itemList returns the format's first list, without the items present in every packet; nil if there is no list with numeric items.
func itemList(f *format.Format) *session.ItemList {
	if len(f.Lists) == 0 || len(f.Lists[0].Rows) < 2 || f.Lists[0].ItemBits() > 64 {
		return nil
	}
	l := f.Lists[0]
	out := &session.ItemList{At: format.ListBytes(l.List), Count: l.Count, Bytes: l.ItemBits() / 8, ValueBits: l.Rows[len(l.Rows)-1].Bits}
	for _, name := range []string{"heap_cnt", "heap_len", "payload_offset", "heap_payload_len"} {
		if key, ok := f.ItemKey(name); ok {
			out.Skip = append(out.Skip, key)
		}
	}
	return out
}

// heapItems returns the items of a heap in the form of a decoded list; nil for other aggregates.
func heapItems(rt *Runtime, b *burst, a *session.Aggregate) lua.LValue {
	v, ok := rt.Shared.heapFormats.Load(b.b.Queue().Stage())
	if !ok {
		return lua.LNil
	}
	list := rt.root.NewTable()
	f, _ := v.(*luaformat.Format)
	if f == nil || f.Declared == nil || len(f.Declared.Lists) == 0 {
		return list
	}
	l := f.Declared.Lists[0]
	for _, raw := range a.Items {
		item, left := rt.root.NewTable(), l.ItemBits()
		for _, r := range l.Rows {
			left -= r.Bits
			item.RawSetString(r.Name, rt.integer(raw>>left&(1<<r.Bits-1)))
		}
		list.Append(item)
	}
	return list
}
