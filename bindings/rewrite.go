package bindings

import (
	"cmp"
	"slices"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// rewriteRows are the rows of s:rewrite.
const rewriteRows = `. name? string: of its line in the ledger
	. format? format | format_name: names for further fields
	. per_loop? table<field_name, integer>: by field, how much is added to it in each further loop of a capture that is replayed; it wraps at the field's width
	. tx_queue? queue: the transmit queue that sends on, for 'eth_src = "auto"' and 'eth_dst = "auto"' beside an address (as in 'b:set')
	. checksums boolean | "compute" = true: those of IPv4, UDP, TCP and ICMP follow by the difference (RFC 1624), so that wrong ones stay wrong; false leaves them;
	  '"compute"' computes all of them
	. [string]? any: a field, of the format or one that every packet has, with what it becomes, see below
	-> stage
	Makes a stage that rewrites fields of every packet on its way. A field becomes a value, or '{ start, step }', which counts the packets that pass (of 'ipv6_src' and 'ipv6_dst' the lower 64 bits), or a table by old values, as text. Addresses may be prefixes: '{
	["10.1.0.0/16"] = "239.9.0.0/16" }' keeps the last 16 bits, and leaves other addresses alone. In the list part fields are given by place, '{ at = "payload",
	bit_offset = 0, bit_width = 32, value = 7 }'. A packet that lacks a field keeps the other changes; the ledger's 'rewritten' counts those that had all.

	Packets are changed where they lie, so its pipe is the only one of its queue, and no writer or handler stands before it; after 's:copy' it changes the
	copies. What others have is dropped as 'shared'.
	> local edit = s:rewrite{ format = "simple", udp_dst = 7149, seq = { 0, 1 },
	>   ipv4_dst = { ["10.1.0.0/16"] = "239.9.0.0/16" } }
	> s:pipe(q, s:copy{ memory_region = "others" }, edit, w)`

func sessionRewrite(c *call) int {
	o := selfSession(c)
	var f *luaformat.Format
	if t, ok := c.Arg(1).(*lua.LTable); ok {
		f = newOptions(c, 1, t).format()
	}
	names := slices.Concat(session.FieldNames(), luaformat.WideNames)
	if f != nil {
		names = append(f.Names(), names...)
	}
	opts := c.optionsAndFields(1, names)
	rules := opts.rewrites(f)
	if t := opts.Get("per_loop"); t != lua.LNil {
		rules = append(rules, opts.perLoop(t, f)...)
	}
	if len(rules) == 0 {
		opts.Raise("no field to rewrite: give some, or per_loop")
	}
	st, err := o.s.Rewrite(opts.Str("name", ""), rules, opts.rewriteChecksums())
	return c.pushStage(st, o, err)
}

// optionsAndFields allows field names beside the options; further fields are in the list part.
func (c *call) optionsAndFields(n int, names []string) *options {
	t, ok := c.Arg(n).(*lua.LTable)
	if !ok {
		return c.options(n)
	}
	named := c.L.NewTable()
	t.ForEach(func(k, v lua.LValue) {
		if _, place := k.(lua.LNumber); !place {
			named.RawSet(k, v)
		}
	})
	c.Keys.Read()
	newOptions(c, n, named).Allow(slices.Concat(c.Keys.Names, names))
	return newOptions(c, n, t)
}

func (o *options) rewriteChecksums() session.Csum {
	if o.Get("checksums") == lua.LString("compute") {
		return session.CsumCompute
	}
	if _, text := o.Get("checksums").(lua.LString); text {
		o.Wrong("checksums", "true, false or \"compute\" expected, got %s", row.Describe(o.Get("checksums")))
	}
	if o.Bool("checksums", true) {
		return session.CsumUpdate
	}
	return session.CsumKeep
}

// rewrites reads the fields given beside the options.
func (o *options) rewrites(f *luaformat.Format) []session.Rewrite {
	fields := o.c.L.NewTable()
	o.Table.ForEach(func(k, v lua.LValue) {
		if name, ok := k.(lua.LString); !ok || !o.c.Keys.Known[string(name)] {
			fields.RawSet(k, v)
		}
	})
	var rules []session.Rewrite
	for _, e := range luaformat.Entries(o.Call, o.Arg, fields, f, "", "step", "value") {
		if e.Value == lua.LString("auto") && (e.Name == "eth_src" || e.Name == "eth_dst") {
			e.Value = o.autoAddress(e.Name)
		}
		list, err := e.Rewrites()
		if err != nil {
			o.Raise("field '%s': %v", e.Name, err)
		}
		rules = append(rules, list...)
	}
	return rules
}

// autoAddress resolves eth_src or eth_dst = "auto" for the interface of tx_queue.
func (o *options) autoAddress(name string) lua.LValue {
	q, ok := row.Userdata[*queue](o.Get("tx_queue"))
	if !ok || q.q.Rx() {
		o.Raise("field '%s': \"auto\" is of the interface that sends on: give its transmit queue as tx_queue, or the address (i.mac, i:resolve)", name)
	}
	q.check(o.c)
	return o.c.autoField(q.q, name, o.Table)
}

func (o *options) perLoop(v lua.LValue, f *luaformat.Format) []session.Rewrite {
	t, ok := v.(*lua.LTable)
	if !ok {
		o.Wrong("per_loop", "a table of fields expected, got %s", row.Describe(v))
	}
	var rules []session.Rewrite
	for _, e := range luaformat.Entries(o.Call, o.Arg, t, f, "", "step") {
		step := e.Value
		if at, ok := e.Value.(*lua.LTable); ok {
			step = at.RawGetString("step")
		}
		n, err := row.WholeNumber(step, -row.MaxInt, row.MaxInt)
		if err == nil {
			err = cmp.Or(e.Changeable(), e.TooWide())
		}
		if err != nil {
			o.Wrong("per_loop", "field '%s': %v", e.Name, err)
		}
		rules = append(rules, session.Rewrite{Field: e.Field, Place: e.Place, PerLoop: true, Step: uint64(n)})
	}
	return rules
}
