package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// checkSocket checks which ends of an endpoint are required.
func (p *parser) checkSocket(i *Interface) {
	s := i.SocketConfig
	if l, r := s.Local, s.Remote; l != nil && r != nil {
		switch {
		case l.Scheme != r.Scheme:
			p.errorf(r.Source, "%s here and %s in the other address: both ends need one scheme", r.Scheme, l.Scheme)
		case l.Addr.IsValid() && r.Addr.IsValid() && l.Addr.Is4() != r.Addr.Is4():
			p.errorf(r.Source, "an IPv4 and an IPv6 address cannot talk to each other")
		}
	}
	local := s.Has("local_addr") || s.Has("local_ip") || s.Has("local_port")
	remote := s.Has("remote_addr") || s.Has("remote_ip")
	roce := s.Scheme() == SchemeRoCE
	switch {
	case s.Mode == "server" && !local:
		p.errorf(s.Source, "local_addr is required for a server")
	case s.Mode == "server" && s.Local != nil && s.Local.Port == 0:
		p.errorf(s.Local.Source, "a server needs a port")
	case s.Mode == "client" && roce && !local:
		p.errorf(s.Source, "local_addr is required for a roce client")
	case s.Mode == "client" && !roce && !remote:
		p.errorf(s.Source, "remote_addr is required for a client")
	case s.Mode == "client" && !roce && s.Local != nil && s.Local.Port == 0 && s.Has("local_addr"):
		p.errorf(s.Local.Source, "needs a port; local_ip alone names the address and leaves the port to the kernel")
	}
	if s.Remote != nil && s.Remote.Port == 0 {
		p.errorf(s.Remote.Source, "a remote address needs a port")
	}
	if s.Mode == "server" && s.Scheme() == SchemeTCP && s.Remote != nil {
		p.warnf(s.Remote.Source, "%s", schema.SocketSection.Key("remote_addr").NoEffect)
	}
	if s.Framing != nil && (s.Scheme() == SchemeUDP || roce) {
		p.errorf(s.Framing.Source, "belongs to tcp:// endpoints: udp and roce keep message boundaries")
	}
	p.checkSocketSides(i)
}

// checkSocketSides rejects keys that apply to frames only.
func (p *parser) checkSocketSides(i *Interface) {
	if rx := i.RX; rx != nil {
		for _, key := range []string{"flows", "flex_items", "reorder_configs"} {
			if rx.Has(key) {
				p.errorf(rx.Key(key), "sockets have no %s: ports and connections select", key)
			}
		}
		for _, key := range []string{"flow_isolation", "outgoing", "joined", "dynamic_flow_capacity"} {
			if rx.Has(key) {
				p.warnf(rx.Key(key), "has no effect on a socket")
			}
		}
	}
	if tx := i.TX; tx != nil && tx.Has("flows") {
		p.errorf(tx.Key("flows"), "sockets have no flows: ports and connections select")
	}
}
