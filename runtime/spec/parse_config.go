package spec

import "math"

const (
	maxCount = math.MaxInt32 // buffers of a region, bytes of a buffer
	maxU16   = math.MaxUint16
	maxU32   = math.MaxUint32
)

// configKeys are the keys below daqiri: cfg:.
var configKeys = []string{
	"version", "stream_type", "engine", "master_core", "log_level", "debug", "loopback",
	"tx_meta_buffers", "rx_meta_buffers", "memory_regions", "interfaces",
}

var (
	streamTypes = []string{StreamRaw, StreamSocket, StreamMixed}
	logLevels   = []string{"trace", "debug", "info", "warn", "error", "critical", "off"}
	regionKinds = []string{KindHuge, KindDevice, KindHostPinned, KindHost}
	accessWords = []string{"local", "rdma_read", "rdma_write"}
)

const olderSchema = "belongs to an older schema; "

func (p *parser) config(v value) *Config {
	o := p.object(v)
	c := &Config{Source: o.Source}
	c.Version = integer[int](o, "version", 1, 1)
	c.StreamType = o.choice("stream_type", streamTypes)
	c.Engine = p.sessionEngine(o)
	c.MasterCore = integer[int](o, "master_core", 0, maxU16)
	c.LogLevel = o.level("log_level")
	c.Debug = o.boolean("debug", false)
	o.effectless("debug", "; use log_level")
	c.TxMetaBuffers = integer(o, "tx_meta_buffers", 1, 1<<20, 256)
	c.RxMetaBuffers = integer(o, "rx_meta_buffers", 1, 1<<20, 256)
	c.Loopback = p.loopback(o)
	o.refuse("manager", olderSchema+"remove it: stream_type and the addresses of the interfaces choose the engine")
	o.refuse("protocol", olderSchema+`remove it: write the scheme into socket_config.local_addr and remote_addr, as in "udp://10.0.0.1:5001"`)
	for _, v := range o.list("memory_regions", true) {
		c.MemoryRegions = append(c.MemoryRegions, p.region(v))
	}
	p.scheme = fileScheme(o.n.get("interfaces"))
	if p.scheme == "" && c.Engine == "ibverbs" && c.StreamType == StreamSocket {
		p.scheme = SchemeRoCE
	}
	for _, v := range o.list("interfaces", false) {
		c.Interfaces = append(c.Interfaces, p.iface(v))
	}
	if o.empty("interfaces") {
		p.errorf(o.Key("interfaces"), "at least one interface is needed")
	}
	o.end()
	return c
}

var sessionEngines = []string{"default", "dpdk", "ibverbs", "socket", "gpunetio", "loop", "xdp"}

// sessionEngine reads the top-level engine key.
func (p *parser) sessionEngine(o *object) string {
	v, ok := o.lookup("engine")
	if !ok {
		return "default"
	}
	if v.n.text == "rdma" {
		p.errorf(v.Source, `"rdma" is not an engine of the file: use stream_type: socket with roce:// endpoints`)
		return "default"
	}
	return p.choice(v, sessionEngines)
}

// loopback reads "", "sw", "hw" or our map.
func (p *parser) loopback(o *object) Loopback {
	l := Loopback{Source: o.Key("loopback"), Clock: "real"}
	modes := []string{"", "sw", "hw"}
	v, ok := o.lookup("loopback")
	if !ok || v.n.kind == kindNull {
		return l
	}
	if v.n.kind != kindTable && v.n.kind != kindEmpty {
		if s, ok := p.scalar(v); ok && !contains(modes, s) {
			p.errorf(v.Source, `%q is not one of "", "sw", "hw"%s`, s, didYouMean(s, modes))
		} else {
			l.Mode = s
		}
		return l
	}
	m := p.object(v)
	l.Source = m.Source
	l.Mode = m.choice("mode", []string{"sw"})
	l.Seed = integer[int64](m, "seed", 0, math.MaxInt64, 0)
	l.Clock = m.choice("clock", []string{"real", "virtual"}, "real")
	l.Loss, l.Dup = m.probability("loss"), m.probability("dup")
	l.Reorder, l.Corrupt = m.probability("reorder"), m.probability("corrupt")
	l.DelayNS = m.quantity("delay", "ns", ParseDuration)
	l.RateBPS = m.quantity("rate", "bit/s", ParseRate)
	if m.Has("rate") && l.RateBPS == 0 {
		p.errorf(m.Key("rate"), "a rate of 0 sends nothing; leave the key out for no limit")
	}
	m.end()
	return l
}

func (p *parser) region(v value) *MemoryRegion {
	o := p.object(v)
	r := &MemoryRegion{Source: o.Source}
	r.Name = o.name("name")
	r.Kind = o.choice("kind", regionKinds)
	r.Affinity = integer[int](o, "affinity", 0, maxU16)
	r.NumBufs = integer[int](o, "num_bufs", 1, maxCount)
	r.BufSize = integer[int](o, "buf_size", 1, maxCount)
	r.Owned = o.boolean("owned", true)
	for _, a := range o.list("access", true) {
		r.Access = p.addUnique(r.Access, a, p.choice(a, accessWords))
	}
	if len(r.Access) == 0 {
		r.Access = []string{"local"}
	}
	o.end()
	if p.opts.Memory == KindHost && (r.Kind == KindDevice || r.Kind == KindHostPinned) {
		r.Declared, r.Kind, r.Affinity = r.Kind, KindHost, 0
	}
	return r
}

// addUnique appends a word that was read, and reports it when the list has it already.
func (p *parser) addUnique(list []string, at value, word string) []string {
	if word == "" {
		return list
	}
	if contains(list, word) {
		p.errorf(at.Source, "%q is listed twice", word)
		return list
	}
	return append(list, word)
}
