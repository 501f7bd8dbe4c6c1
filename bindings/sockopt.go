package bindings

import (
	"encoding/binary"
	"sort"
	"syscall"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
)

// sockoptLevels and sockoptNames are the names known to c:setsockopt; others are given as numbers. Linux values that package syscall lacks are
// from <asm-generic/socket.h>.
var sockoptLevels = map[string]int{
	"SOL_SOCKET": syscall.SOL_SOCKET, "IPPROTO_IP": syscall.IPPROTO_IP, "IPPROTO_IPV6": syscall.IPPROTO_IPV6,
	"IPPROTO_TCP": syscall.IPPROTO_TCP, "IPPROTO_UDP": syscall.IPPROTO_UDP,
}

var sockoptNames = map[string]int{
	"SO_RCVBUF": syscall.SO_RCVBUF, "SO_SNDBUF": syscall.SO_SNDBUF, "SO_RCVBUFFORCE": syscall.SO_RCVBUFFORCE,
	"SO_SNDBUFFORCE": syscall.SO_SNDBUFFORCE, "SO_KEEPALIVE": syscall.SO_KEEPALIVE, "SO_PRIORITY": syscall.SO_PRIORITY,
	"SO_MARK": syscall.SO_MARK, "SO_BUSY_POLL": 46, "SO_REUSEADDR": syscall.SO_REUSEADDR, "SO_LINGER": syscall.SO_LINGER,
	"IP_TOS": syscall.IP_TOS, "IP_TTL": syscall.IP_TTL, "IP_MULTICAST_TTL": syscall.IP_MULTICAST_TTL,
	"IP_MULTICAST_LOOP": syscall.IP_MULTICAST_LOOP, "IP_MULTICAST_IF": syscall.IP_MULTICAST_IF,
	"IPV6_UNICAST_HOPS": syscall.IPV6_UNICAST_HOPS, "IPV6_MULTICAST_HOPS": syscall.IPV6_MULTICAST_HOPS,
	"IPV6_MULTICAST_LOOP": syscall.IPV6_MULTICAST_LOOP, "IPV6_TCLASS": syscall.IPV6_TCLASS,
	"TCP_NODELAY": syscall.TCP_NODELAY, "TCP_QUICKACK": syscall.TCP_QUICKACK, "TCP_MAXSEG": syscall.TCP_MAXSEG,
	"TCP_KEEPIDLE": syscall.TCP_KEEPIDLE, "TCP_KEEPINTVL": syscall.TCP_KEEPINTVL, "TCP_KEEPCNT": syscall.TCP_KEEPCNT,
}

// connectionSetSockopt implements c:setsockopt(level, option, value): level and option are numbers or names; the value is a number (a C int) or a
// string of bytes.
func connectionSetSockopt(c *call) int {
	x := selfConnection(c)
	level := c.constant(1, "level", sockoptLevels)
	option := c.constant(2, "option", sockoptNames)
	var value []byte
	switch v := c.Arg(3).(type) {
	case lua.LString:
		value = []byte(v)
	case lua.LBool:
		value = binary.NativeEndian.AppendUint32(nil, map[bool]uint32{true: 1}[bool(v)])
	default:
		value = binary.NativeEndian.AppendUint32(nil, uint32(c.Whole(3, "value", -1<<31, 1<<32-1)))
	}
	if err := x.c.SetSockopt(level, option, value); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// constant reads a number or one of the names.
func (c *call) constant(n int, what string, names map[string]int) int {
	s, ok := c.Arg(n).(lua.LString)
	if !ok {
		return int(c.Whole(n, what, 0, 1<<31-1))
	}
	if v, ok := names[string(s)]; ok {
		return v
	}
	var known []string
	for name := range names {
		known = append(known, name)
	}
	sort.Strings(known)
	c.ArgError(n, "%s", row.Unknown(what, string(s), known))
	return 0
}
