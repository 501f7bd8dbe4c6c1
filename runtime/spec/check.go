package spec

import (
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// check performs the checks that span several keys: references, uniqueness, and compatibility.
func (p *parser) check(c *Config) {
	p.regions = index(c.MemoryRegions, func(r *MemoryRegion) string { return r.Name })
	p.checkNames(c)
	for _, i := range c.Interfaces {
		i.verbs = c.forVerbs(i)
	}
	p.checkLoopback(c)
	p.chooseEngines(c)
	used := map[string]bool{}
	flowIDs := map[string]*Flow{}
	for _, i := range c.Interfaces {
		p.checkStream(c, i)
		if i.Socket() {
			p.checkSocket(i)
		}
		for _, s := range i.sides() {
			p.checkQueues(c, i, s, used)
			p.checkFlows(i, s, flowIDs)
		}
		if i.RX != nil {
			p.checkJoined(c, i, used)
			p.checkFlex(i)
			p.checkReorder(c, i, used)
		}
	}
	p.checkUnused(c, used)
	p.checkAccess(c)
}

// checkJoined checks the region for packets that the kernel joined.
func (p *parser) checkJoined(c *Config, i *Interface, used map[string]bool) {
	name := i.RX.Joined
	switch {
	case name == "":
		return
	case p.regions[name] == nil:
		p.errorf(i.RX.Key("joined"), "no memory region %q%s", name, p.didYouMeanRegion(c, name))
	case i.engine != schema.EnginePacket:
		p.warnf(i.RX.Key("joined"), "has no effect on engine %s: only engine packet receives what the kernel joined", i.engine)
	}
	used[name] = true
}

// checkAccess warns about access rights of one-sided transfers if no interface supports these.
func (p *parser) checkAccess(c *Config) {
	for _, i := range c.Interfaces {
		if i.engine == schema.EngineRDMA {
			return
		}
	}
	for _, r := range c.MemoryRegions {
		if slices.Contains(r.Access, "rdma_read") || slices.Contains(r.Access, "rdma_write") {
			p.warnf(r.Key("access"), "rdma_read and rdma_write have no effect: no interface is a roce:// endpoint")
		}
	}
}

// index maps a list by key; for duplicate keys the first element wins.
func index[K comparable, T any](list []T, key func(T) K) map[K]T {
	m := make(map[K]T, len(list))
	for _, t := range list {
		if _, there := m[key(t)]; !there {
			m[key(t)] = t
		}
	}
	return m
}

func byID(queues []*Queue) map[int]*Queue { return index(queues, func(q *Queue) int { return q.ID }) }

// side is one direction of an interface.
type side struct {
	Source
	name   string // rx or tx
	queues []*Queue
	flows  []*Flow
}

func (i *Interface) sides() []side {
	var s []side
	if i.RX != nil {
		s = append(s, side{i.RX.Source, "rx", i.RX.Queues, i.RX.Flows})
	}
	if i.TX != nil {
		s = append(s, side{i.TX.Source, "tx", i.TX.Queues, i.TX.Flows})
	}
	return s
}

// unique reports duplicate names and ids.
type unique struct {
	p    *parser
	what string
	seen map[string]Pos
}

func (p *parser) unique(what string) unique { return unique{p, what, map[string]Pos{}} }

func (u unique) add(at Source, v any) {
	key := fmt.Sprint(v)
	if key == "" || !at.known() {
		return
	}
	first, dup := u.seen[key]
	if !dup {
		u.seen[key] = at.Pos
		return
	}
	u.p.errorf(at, "%s %s is used twice%s", u.what, key, atLine(first))
}

// atLine returns the line of the first occurrence, if its source has lines.
func atLine(first Pos) string {
	if first.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (first at line %d)", first.Line)
}

// known reports whether the source is that of a written key or entity.
func (s Source) known() bool { return s.Pos.File != "" }

// given returns the source of a key if it was written, else an unknown one.
func (s Source) given(key string) Source {
	if !s.Has(key) {
		return Source{}
	}
	return s.Key(key)
}

func (p *parser) checkNames(c *Config) {
	regions, interfaces := p.unique("name"), p.unique("name")
	for _, r := range c.MemoryRegions {
		regions.add(r.given("name"), r.Name)
	}
	for _, i := range c.Interfaces {
		interfaces.add(i.given("name"), i.Name)
		for _, s := range i.sides() {
			names, ids, flows := p.unique("name"), p.unique("id"), p.unique("name")
			for _, q := range s.queues {
				names.add(q.given("name"), q.Name)
				ids.add(q.given("id"), q.ID)
			}
			for _, f := range s.flows {
				flows.add(f.given("name"), f.Name)
			}
		}
		if i.RX == nil {
			continue
		}
		flexNames, flexIDs, reorders := p.unique("name"), p.unique("id"), p.unique("name")
		for _, f := range i.RX.FlexItems {
			flexNames.add(f.given("name"), f.Name)
			flexIDs.add(f.given("id"), f.ID)
		}
		for _, r := range i.RX.ReorderConfigs {
			reorders.add(r.given("name"), r.Name)
		}
	}
}

// checkStream checks an interface against stream_type.
func (p *parser) checkStream(c *Config, i *Interface) {
	roce := i.Socket() && i.SocketConfig.Scheme() == SchemeRoCE
	switch {
	case c.StreamType == schema.StreamRaw && i.Socket():
		p.errorf(i.Key("socket_config"), "stream_type is raw: use socket, or mixed to have both kinds of interface")
	case c.StreamType == schema.StreamSocket && !i.Socket() && i.Has("name"):
		p.errorf(i.Source, "socket_config is required with stream_type: socket (mixed allows both kinds of interface)")
	case i.RoCEConfig != nil && !roce && (!i.Socket() || i.SocketConfig.Scheme() != ""):
		p.errorf(i.Key("roce_config"), "belongs to roce:// endpoints")
	case roce && !i.Has("roce_config"):
		p.errorf(i.Source, "roce_config is required with roce:// endpoints")
	}
	if len(p.opts.Sources) == 0 {
		p.checkReplay(i)
	}
}

func (p *parser) checkQueues(c *Config, i *Interface, s side, used map[string]bool) {
	for _, q := range s.queues {
		if q.CPUCore == c.MasterCore && q.CPUCore >= 0 && q.Has("cpu_core") && c.Has("master_core") {
			p.warnf(q.Key("cpu_core"), "core %d is the master_core, which is not meant for packets", q.CPUCore)
		}
		at, room := q.Key("memory_regions"), 0
		known := true
		for n, name := range q.MemoryRegions {
			r := p.regions[name]
			if r == nil {
				known = false
				p.errorf(q.regionAt[n], "no memory region %q%s", name, p.didYouMeanRegion(c, name))
				continue
			}
			used[name] = true
			room += r.BufSize
			if i.engine == schema.EngineSocket && r.Kind == schema.KindDevice {
				p.errorf(q.regionAt[n], "region %q is device memory: tcp and udp need %s", name, schema.JoinOr(schema.KindsFor("cpu")))
			}
		}
		if f := i.framing(); f != nil && s.name == "rx" && known && room > 0 && f.Fixed > room {
			p.errorf(at, "buffers of %d bytes are smaller than the messages of %d bytes (framing.fixed)", room, f.Fixed)
		}
	}
}

func (i *Interface) framing() *Framing {
	if i.Socket() {
		return i.SocketConfig.Framing
	}
	return nil
}

// maxCompared is the total number of names compared for misspelt regions of a document, which takes about a second.
const maxCompared = 1 << 20

func (p *parser) didYouMeanRegion(c *Config, name string) string {
	if p.compared += len(c.MemoryRegions); p.compared > maxCompared {
		return ""
	}
	var names []string
	for _, r := range c.MemoryRegions {
		names = append(names, r.Name)
	}
	return didYouMean(name, names)
}

// checkUnused finds regions that no key refers to. RDMA operations select their regions at run time, so a session with an RDMA interface reports
// none.
func (p *parser) checkUnused(c *Config, used map[string]bool) {
	for _, i := range c.Interfaces {
		if i.engine == schema.EngineRDMA {
			return
		}
	}
	for _, r := range c.MemoryRegions {
		if r.Name != "" && !used[r.Name] {
			c.unused = append(c.unused, UnusedRegion{r.Name, r.Errorf("region %q is used by no queue and no reorder config", r.Name)})
		}
	}
}
