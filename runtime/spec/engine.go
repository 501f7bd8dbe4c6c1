package spec

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// OfKernel reports whether an engine's interfaces are Linux interfaces, with the kernel's addresses, routes and neighbors.
func OfKernel(engine string) bool { return engine == schema.EngineXDP || engine == schema.EnginePacket }

var (
	pciAddress = regexp.MustCompile(`^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
	linkName   = regexp.MustCompile(`^[^\s/:]{1,15}$`)
)

// IsPCIAddress reports whether a has the form of a PCI address: "8a:00.0", "0000:8A:00.0".
func IsPCIAddress(a string) bool { return pciAddress.MatchString(a) }

// socketsOfVerbs reports whether all interfaces are endpoints of the engine that the reference names for RoCE.
func (c *Config) socketsOfVerbs() bool {
	return c.Engine == schema.EngineIBVerbs && c.StreamType == schema.StreamSocket
}

// chooseEngines selects the engine of each interface. In order of precedence: the captures of --source, the forced engine, the interface's engine
// key, an address pcap:FILE, loopback, the file's engine key, the form of the address.
func (p *parser) chooseEngines(c *Config) {
	forced := p.opts.Engine
	if forced != "" && !slices.Contains(schema.InterfaceEngines, forced) {
		p.errorf(Source{Pos: Pos{File: "--engine " + forced}}, "not one of %s%s",
			strings.Join(schema.InterfaceEngines, ", "), didYouMean(forced, schema.InterfaceEngines))
		return
	}
	if len(p.opts.Sources) > 0 {
		p.replaceSources(c)
		return
	}
	for _, i := range c.Interfaces {
		if i.Socket() {
			i.engine = p.socketEngine(c, i, forced)
		} else {
			i.engine = p.rawEngine(c, i, forced)
			if i.RX != nil && i.RX.Outgoing && i.engine != schema.EnginePacket {
				p.warnf(i.RX.Key("outgoing"), "has no effect on engine %s: only engine packet receives what this machine sends", i.engine)
			}
		}
	}
	for _, i := range c.Interfaces {
		if i.engine == schema.EngineLoop {
			c.Loopback.Mode = "sw"
		}
	}
}

func (p *parser) socketEngine(c *Config, i *Interface, forced string) string {
	engine := schema.EngineSocket
	if i.SocketConfig.Scheme() == SchemeRoCE {
		engine = schema.EngineRDMA
	}
	if forced == "" && strings.HasPrefix(i.Address, "pcap:") {
		p.datagramsOnly(i, i.Key("address"), "a capture")
		if i.Engine != "" && i.Engine != schema.EnginePCAP {
			p.errorf(i.Key("engine"), "engine %s does not replay captures, %s does", i.Engine, schema.EnginePCAP)
		}
		return p.addressEngine(i)
	}
	want, at := i.Engine, i.Key("engine")
	if forced != "" {
		want, at = forced, i.Key("socket_config")
	} else if want == schema.EngineIBVerbs { // the reference's name for both
		want = schema.EngineRDMA
	} else if want == "" && c.Loopback.Mode == "sw" && c.StreamType == schema.StreamSocket {
		want, at = schema.EngineLoop, i.Key("socket_config")
	}
	scheme := i.SocketConfig.Scheme()
	switch {
	case want == schema.EngineLoop:
		p.errorf(at, "sockets cannot run on the loop engine: give the interface a raw address, or run without loop")
	case want != "" && want != engine && scheme != "":
		p.errorf(at, "engine %s does not serve %s endpoints, %s does", want, scheme, engine)
	case want == "" && scheme != "":
		p.sessionSocketEngine(c, engine, scheme)
	}
	return engine
}

// sessionSocketEngine checks the file's engine key against an endpoint.
func (p *parser) sessionSocketEngine(c *Config, engine, scheme string) {
	fits := map[string]string{"default": engine, "gpunetio": engine, "socket": schema.EngineSocket, schema.EngineIBVerbs: schema.EngineRDMA}
	if c.StreamType == schema.StreamSocket && fits[c.Engine] != engine {
		p.errorf(c.Key("engine"), "%s does not serve %s endpoints; leave the key out", c.Engine, scheme)
	}
}

func (p *parser) rawEngine(c *Config, i *Interface, forced string) string {
	want, at := i.Engine, i.Key("engine")
	if forced != "" {
		want, at = forced, i.Source
	}
	if want == schema.EngineSocket || want == schema.EngineRDMA {
		p.errorf(at, "engine %s serves endpoints, and this interface has no socket_config", want)
		return want
	}
	if want != "" {
		return want
	}
	if strings.HasPrefix(i.Address, "pcap:") {
		return p.addressEngine(i)
	}
	if c.Loopback.Mode == "sw" {
		if i.Address == "loopback" && c.Engine == "default" {
			p.warnf(c.Loopback.Source, "since August 2026 DAQIRI needs engine: dpdk for this; here the loop engine serves it")
		}
		return schema.EngineLoop
	}
	switch c.Engine {
	case schema.EngineDPDK, schema.EngineXDP, schema.EnginePacket, schema.EngineIBVerbs, schema.EngineLoop:
		return c.Engine
	case "socket":
		if c.StreamType == schema.StreamRaw {
			p.errorf(c.Key("engine"), "socket does not serve raw interfaces")
		}
	}
	return p.addressEngine(i)
}

// pciEngine chooses the engine of a PCI device without an engine key: ibverbs as in the reference, or dpdk where the device has no verbs.
func (p *parser) pciEngine(i *Interface) string {
	engine := schema.EngineDPDK
	i.why = "no engine is given, and the device offers no verbs"
	if p.opts.Verbs != nil && p.opts.Verbs(i.Address) {
		engine, i.why = schema.EngineIBVerbs, "no engine is given, and the device offers verbs"
	}
	p.warnf(i.Key("address"), "no engine is given: since August 2026 this means ibverbs, before dpdk; here %s serves it; add engine: %s to keep it", engine, engine)
	return engine
}

// addressEngine derives the engine from the form of the address.
func (p *parser) addressEngine(i *Interface) string {
	a, at := i.Address, i.Key("address")
	_, ipErr := netip.ParseAddr(a)
	_, macErr := net.ParseMAC(a)
	switch {
	case a == "":
	case IsPCIAddress(a):
		return p.pciEngine(i)
	case strings.HasPrefix(a, "vdev:"):
		return schema.EngineDPDK
	case strings.HasPrefix(a, "pcap:"):
		if a == "pcap:" {
			p.errorf(at, "the file is missing: pcap:FILE")
		}
		return schema.EnginePCAP
	case strings.Contains(a, "://"):
		p.errorf(at, "an endpoint URI belongs into socket_config.local_addr or remote_addr")
	case ipErr == nil:
		p.errorf(at, "%q is an IP address; a raw interface needs a PCI address, a Linux interface name, vdev:NAME or pcap:FILE", a)
	case macErr == nil:
		p.errorf(at, "%q is an Ethernet address; a raw interface needs a PCI address, a Linux interface name, vdev:NAME or pcap:FILE", a)
	case a == "loopback":
		p.errorf(at, `this address needs loopback: "sw"`)
	case !linkName.MatchString(a) || a == "." || a == "..":
		p.errorf(at, "%q is neither a PCI address, a Linux interface name, vdev:NAME nor pcap:FILE", a)
	}
	return schema.EngineXDP
}

// forVerbs reports whether the file leaves a raw interface to engine ibverbs: by its name, or without an engine.
func (c *Config) forVerbs(i *Interface) bool {
	engine := i.Engine
	if engine == "" {
		engine = c.Engine
	}
	return !i.Socket() && c.Loopback.Mode != "sw" && !strings.HasPrefix(i.Address, "pcap:") &&
		slices.Contains([]string{"", "default", schema.EngineIBVerbs}, engine)
}

// checkLoopback checks loopback: hw, the loopback inside the port of a network card.
func (p *parser) checkLoopback(c *Config) {
	if c.Loopback.Mode != "hw" {
		return
	}
	for _, i := range c.Interfaces {
		if !i.verbs {
			p.errorf(c.Loopback.Source, "hw needs raw interfaces of engine ibverbs, which %s is not", i.Name)
			return
		}
	}
	if len(c.Interfaces) != 1 {
		p.errorf(c.Loopback.Source, "hw needs exactly one interface, not %d", len(c.Interfaces))
		return
	}
	i := c.Interfaces[0]
	if i.RX == nil || i.TX == nil {
		p.errorf(c.Loopback.Source, "hw needs both rx and tx queues of interface %s", i.Name)
	}
	if i.Has("address") && (i.Address == "" || i.Address == "loopback") {
		p.errorf(i.Key("address"), "loopback: hw needs the address of a network card")
	}
}
