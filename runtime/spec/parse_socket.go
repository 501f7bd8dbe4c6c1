package spec

import "math"

func (p *parser) socketConfig(o *object) *SocketConfig {
	s := &SocketConfig{Source: o.Source}
	o.fill(s)
	s.Local = p.endpoint(o, "local")
	s.Remote = p.endpoint(o, "remote")
	if s.MaxPayloadSize > math.MaxUint16 {
		p.warnf(o.Key("max_payload_size"), "%d is above %d and counts as 0, as with the reference: whatever the buffers hold", s.MaxPayloadSize, math.MaxUint16)
		s.MaxPayloadSize = 0
	}
	o.effectless("max_burst_interval_ms")
	o.effectless("min_ipg_ns")
	if f := o.child("framing"); f.ok() {
		s.Framing = p.framing(f)
	}
	o.end()
	return s
}

// endpoint reads SIDE_addr, or the legacy pair SIDE_ip and SIDE_port.
func (p *parser) endpoint(o *object, side string) *Endpoint {
	v, ok := o.lookup(side + "_addr")
	ip := o.text(side + "_ip")
	port := integer[int](o, side+"_port")
	old := o.Has(side+"_ip") || o.Has(side+"_port")
	switch {
	case ok && old:
		p.errorf(v.Source, "stands beside %s_ip or %s_port: keep %s_addr only", side, side, side)
		return nil
	case ok:
		text, ok := p.text(v)
		if !ok {
			return nil
		}
		e, err := ParseEndpoint(text)
		if err != nil {
			p.errorf(v.Source, "%v", err)
			return nil
		}
		e.Source = v.Source
		return e
	case old:
		return p.legacyEndpoint(o, side, ip, port)
	}
	return nil
}

// legacyEndpoint reads legacy keys with the scheme of the interface's other end, or of another endpoint of the file. A client's local_port alone
// means any address.
func (p *parser) legacyEndpoint(o *object, side, ip string, port int) *Endpoint {
	key, at := side+"_ip", o.Key(side+"_ip")
	other := written(o.n)
	if !o.Has(key) {
		at = o.Key(side + "_port")
		if mode := o.n.get("mode"); side != "local" || mode == nil || mode.text != "client" {
			p.errorf(at, "needs %s; or write %s_addr: \"udp://HOST:PORT\"", key, side)
			return nil
		}
		if ip = "0.0.0.0"; other != nil && other.Addr.Is6() {
			ip = "::"
		}
	}
	scheme := p.scheme
	if other != nil {
		scheme = other.Scheme
	}
	if scheme == "" {
		p.errorf(at, "has no scheme: write %s_addr: \"udp://HOST:PORT\" (or tcp, roce)", side)
		return nil
	}
	addr, err := parseHost(ip, false)
	if err != nil {
		p.errorf(at, "%v", err)
		return nil
	}
	return &Endpoint{Source: at, Scheme: scheme, Host: ip, Addr: addr, Port: port}
}

// written returns the first endpoint of a socket_config that is written as a URI, or nil.
func written(socket *node) *Endpoint {
	for _, key := range []string{"local_addr", "remote_addr"} {
		if n := socket.get(key); n != nil {
			if e, err := ParseEndpoint(n.text); err == nil {
				return e
			}
		}
	}
	return nil
}

// fileScheme returns the common scheme of all endpoint URIs of the file, or "".
func fileScheme(interfaces *node) string {
	scheme := ""
	if interfaces == nil {
		return ""
	}
	for _, i := range interfaces.items {
		e := written(i.get("socket_config"))
		if e == nil {
			continue
		}
		if scheme != "" && scheme != e.Scheme {
			return ""
		}
		scheme = e.Scheme
	}
	return scheme
}

func (p *parser) framing(o *object) *Framing {
	f := &Framing{Source: o.Source}
	o.fill(f)
	switch {
	case o.Has("fixed") == o.Has("length_prefix"):
		p.errorf(o.Source, "exactly one of fixed and length_prefix is needed")
	case o.Has("fixed"):
		f.Endianness = ""
		for _, k := range []string{"endianness", "includes_header"} {
			if o.Has(k) {
				p.errorf(o.Key(k), "belongs to length_prefix")
			}
		}
	case f.LengthPrefix != 0 && f.LengthPrefix&(f.LengthPrefix-1) != 0:
		p.errorf(o.Key("length_prefix"), "%d is not one of 1, 2, 4, 8", f.LengthPrefix)
	}
	o.end()
	return f
}
