package bindings

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// maxGroups bounds a range of groups.
const maxGroups = 4096

// groups reads the option groups: "239.2.0.64+3:7148" (four groups, one port), a list of such strings, or of {ip, port}. A port must equal the
// interface's receive port.
func (o *options) groups(i *iface) []string {
	var out []string
	add := func(text string, port int) {
		list, p, err := groupRange(text)
		if err == nil && p == 0 {
			p = port
		}
		if err == nil {
			err = i.hasPort(p)
		}
		if err != nil {
			o.Wrong("groups", "%v", err)
		}
		out = append(out, list...)
	}
	switch v := o.Get("groups").(type) {
	case lua.LString:
		add(string(v), 0)
	case *lua.LTable:
		v.ForEach(func(_, e lua.LValue) {
			if t, ok := e.(*lua.LTable); ok {
				in := newOptions(o.c, o.Arg, t)
				in.Allow([]string{"ip", "port"})
				add(in.Str("ip", ""), int(in.Whole("port", 0, 1, 65535)))
				return
			}
			add(e.String(), 0)
		})
	default:
		o.Wrong("groups", "text or a list expected, got %s", row.Describe(v))
	}
	return out
}

// groupRange parses ADDRESS[+N][:PORT]; an IPv6 address with a port is in brackets.
func groupRange(text string) (groups []string, port int, err error) {
	wrong := func() ([]string, int, error) {
		return nil, 0, fmt.Errorf("%q is not a multicast group (write it like 239.2.0.64, 239.2.0.64+3 or 239.2.0.64+3:7148)", text)
	}
	rest := text
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && (strings.Count(rest, ":") == 1 || strings.HasPrefix(rest, "[")) && !strings.HasSuffix(rest, "]") {
		if port, err = strconv.Atoi(rest[at+1:]); err != nil || port < 1 || port > 65535 {
			return wrong()
		}
		rest = rest[:at]
	}
	first, more, ranged := strings.Cut(strings.NewReplacer("[", "", "]", "").Replace(rest), "+")
	n := 0
	if ranged {
		if n, err = strconv.Atoi(more); err != nil || n < 0 || n >= maxGroups {
			return wrong()
		}
	}
	a, err := netip.ParseAddr(first)
	if err != nil || !a.IsMulticast() {
		return wrong()
	}
	for range n + 1 {
		if !a.IsMulticast() {
			return wrong()
		}
		groups = append(groups, a.String())
		a = a.Next()
	}
	return groups, port, nil
}

// hasPort returns an error if port differs from the one to which a socket interface is bound.
func (i *iface) hasPort(port int) error {
	c := i.of.s.Config().Interface(i.i.Name())
	if port == 0 || c == nil || c.SocketConfig == nil || c.SocketConfig.Local == nil || c.SocketConfig.Local.Port == 0 {
		return nil
	}
	if bound := int(c.SocketConfig.Local.Port); bound != port {
		return fmt.Errorf("port %d: interface %s receives on port %d", port, i.i.Name(), bound)
	}
	return nil
}
