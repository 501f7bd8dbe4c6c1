package spec

import (
	"slices"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

const olderSchema = "belongs to an older schema; "

func (p *parser) config(v value) *Config {
	o := p.object(v)
	c := &Config{Source: o.Source}
	c.Version = integer[int](o, "version")
	c.StreamType = o.choice("stream_type")
	c.Engine = p.sessionEngine(o)
	c.MasterCore = integer[int](o, "master_core")
	c.LogLevel = o.choice("log_level")
	c.DrainNS = o.quantity("drain")
	c.Debug = o.boolean("debug")
	o.effectless("debug")
	c.TxMetaBuffers = integer[int](o, "tx_meta_buffers")
	c.RxMetaBuffers = integer[int](o, "rx_meta_buffers")
	c.Loopback = p.loopback(o)
	o.refuse(olderSchema+"remove it: stream_type and the addresses of the interfaces choose the engine", "manager")
	o.refuse(olderSchema+`remove it: write the scheme into socket_config.local_addr and remote_addr, as in "udp://10.0.0.1:5001"`, "protocol")
	for _, v := range o.list("memory_regions") {
		c.MemoryRegions = append(c.MemoryRegions, p.region(v))
	}
	p.scheme = fileScheme(o.n.get("interfaces"))
	if p.scheme == "" && c.socketsOfVerbs() {
		p.scheme = SchemeRoCE
	}
	for _, v := range o.list("interfaces") {
		c.Interfaces = append(c.Interfaces, p.iface(v))
	}
	if o.empty("interfaces") {
		p.errorf(o.Key("interfaces"), "at least one interface is needed")
	}
	o.end()
	return c
}

// sessionEngine reads the top-level engine key.
func (p *parser) sessionEngine(o *object) string {
	if v, ok := o.lookup("engine"); ok && v.n.text == "rdma" {
		p.errorf(v.Source, `"rdma" is not an engine of the file: use stream_type: socket with roce:// endpoints`)
		return "default"
	}
	return o.choice("engine")
}

// loopback reads loopback as a word or as a map.
func (p *parser) loopback(o *object) Loopback {
	l := Loopback{Source: o.Key("loopback"), Clock: "real"}
	v, ok := o.lookup("loopback")
	if !ok || v.n.kind == kindNull {
		return l
	}
	if v.n.kind != kindTable && v.n.kind != kindEmpty {
		if s, ok := p.scalar(v); ok && !slices.Contains(v.key.Choices, s) {
			p.errorf(v.Source, `%q is not one of "", "sw", "hw"%s`, s, didYouMean(s, v.key.Choices))
		} else {
			l.Mode = s
		}
		return l
	}
	m := p.object(v)
	l.Source = m.Source
	l.Mode = m.choice("mode")
	l.Seed = integer[int64](m, "seed")
	l.Clock = m.choice("clock")
	l.Loss, l.Dup = m.probability("loss"), m.probability("dup")
	l.Reorder, l.Corrupt = m.probability("reorder"), m.probability("corrupt")
	l.DelayNS = m.quantity("delay")
	l.RateBPS = m.quantity("rate")
	if m.Has("rate") && l.RateBPS == 0 {
		p.errorf(m.Key("rate"), "a rate of 0 sends nothing; leave the key out for no limit")
	}
	m.end()
	return l
}

func (p *parser) region(v value) *MemoryRegion {
	o := p.object(v)
	r := &MemoryRegion{Source: o.Source}
	o.fill(r)
	o.end()
	if p.opts.Memory == schema.KindHost && (r.Kind == schema.KindDevice || r.Kind == schema.KindHostPinned) {
		r.Declared, r.Kind, r.Affinity = r.Kind, schema.KindHost, 0
	}
	switch {
	case r.Shared && !r.Owned:
		p.errorf(r.Key("shared"), "memory of the application (owned: false) can't be shared: its owner has it")
	case r.Shared && r.Kind == schema.KindDevice:
		p.errorf(r.Key("shared"), "memory on a GPU can't be shared: use kind host or host_pinned, or s:copy to a region of such a kind")
	}
	return r
}
