package spec

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Schemes of an endpoint URI.
const (
	SchemeTCP  = "tcp"
	SchemeUDP  = "udp"
	SchemeRoCE = "roce"
)

// Endpoint is one end of a socket or RDMA interface: scheme://host[:port]. The host is an IPv4 address, an IPv6 address in brackets, or a name that
// is resolved when the session opens.
type Endpoint struct {
	Source `json:"-"`
	Scheme string     // tcp, udp or roce (rdma:// is an alias of roce://)
	Host   string     // without brackets
	Addr   netip.Addr // the host if it is an address, else the zero Addr
	Port   int        // 0: not specified
}

// String returns the URI.
func (e *Endpoint) String() string {
	s := e.Scheme + "://"
	if e.Addr.Is6() {
		s += "[" + e.Host + "]"
	} else {
		s += e.Host
	}
	if e.Port != 0 {
		s += ":" + strconv.Itoa(e.Port)
	}
	return s
}

// MarshalText returns the URI for inspect.
func (e *Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

var hostname = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*$`)

// ParseEndpoint parses an endpoint URI.
func ParseEndpoint(text string) (*Endpoint, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil, fmt.Errorf("%q has no scheme: write tcp://, udp:// or roce:// in front", text)
	}
	switch scheme {
	case "rdma":
		scheme = SchemeRoCE
	case SchemeTCP, SchemeUDP, SchemeRoCE:
	default:
		return nil, fmt.Errorf("unknown scheme %q: known are tcp, udp and roce", scheme)
	}
	rest, query, asked := strings.Cut(rest, "?")
	if asked && (scheme != SchemeRoCE || query != "engine=ibverbs") {
		return nil, fmt.Errorf("unknown query %q: only roce:// takes one, ?engine=ibverbs", query)
	}
	least := 1
	if scheme == SchemeRoCE {
		least = 0 // a client's port, chosen by the library
	}
	host, port, err := splitHostPort(rest, least)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	addr, err := parseHost(host, strings.HasPrefix(rest, "["))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &Endpoint{Scheme: scheme, Host: host, Addr: addr, Port: port}, nil
}

func splitHostPort(s string, least int) (host string, port int, err error) {
	tail := ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if host, tail, ok = strings.Cut(inner, "]"); !ok {
			return "", 0, fmt.Errorf("the bracket of the IPv6 address is not closed")
		}
	} else {
		if strings.Count(s, ":") > 1 {
			return "", 0, fmt.Errorf("an IPv6 address needs brackets, as in [::1]:5001")
		}
		if i := strings.IndexByte(s, ':'); i >= 0 {
			host, tail = s[:i], s[i:]
		} else {
			host = s
		}
	}
	if tail == "" {
		return host, 0, nil
	}
	digits, ok := strings.CutPrefix(tail, ":")
	if !ok {
		return "", 0, fmt.Errorf("unexpected %q after the host", tail)
	}
	port, err = strconv.Atoi(digits)
	if err != nil || digits[0] < '0' || digits[0] > '9' || port < least || port > 65535 {
		return "", 0, fmt.Errorf("port %q is not a number in %d..65535", digits, least)
	}
	return host, port, nil
}

// parseHost returns the zero address for a name.
func parseHost(host string, bracketed bool) (netip.Addr, error) {
	if host == "" {
		return netip.Addr{}, fmt.Errorf("the host is missing (0.0.0.0 or [::] stand for all addresses)")
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case bracketed && (err != nil || !addr.Is6()):
		return netip.Addr{}, fmt.Errorf("%q is not an IPv6 address", host)
	case err == nil:
		return addr, nil
	case strings.Trim(host, "0123456789.") == "":
		return netip.Addr{}, fmt.Errorf("%q is not an IPv4 address", host)
	case !hostname.MatchString(host):
		return netip.Addr{}, fmt.Errorf("%q is neither an address nor a host name", host)
	}
	return netip.Addr{}, nil
}
