package bindings

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Neighbor solicitations are sent a second apart until the timeout; the poll interval for the answer doubles.
const (
	neighbourTimeout = int64(3e9)
	neighbourWait    = int64(1e9)
	neighbourFirst   = int64(1e6)
	neighbourMost    = int64(50e6)
)

// resolve returns the Ethernet address of addr's next hop; if it is unknown, it sends ARP or ND requests and waits for up to timeout ns.
func (c *call) resolve(i *session.Interface, addr netip.Addr, vlan uint16, timeout int64) (net.HardwareAddr, error) {
	n, err := i.Neighbour(addr, vlan)
	if err != nil {
		return nil, err
	}
	asks := 0
	for end := c.rt.Task.In(timeout); asks == 0 || c.rt.Task.Now() < end; asks++ {
		if mac, known, err := n.MAC(); known || err != nil {
			return mac, err
		}
		if err := n.Ask(); errors.Is(err, session.ErrNotReady) {
			return nil, fmt.Errorf("%w: call s:start() first, or give the Ethernet address of %s", err, addr)
		} else if err != nil {
			return nil, err
		}
		until := min(c.rt.Task.In(neighbourWait), end)
		for pause := neighbourFirst; c.rt.Task.Now() < until; pause = min(2*pause, neighbourMost) {
			c.waitFor(min(c.rt.Task.In(pause), until), func(*task.Item) bool { return false })
			if mac, known, err := n.MAC(); known || err != nil {
				return mac, err
			}
		}
	}
	return nil, fmt.Errorf("no answer for %s: asked %d times in %v: %w", n, asks, time.Duration(timeout), session.ErrNotReady)
}

// interfaceResolve implements i:resolve(address, {vlan_id}): the Ethernet address as a string.
func interfaceResolve(c *call) int {
	i := selfInterface(c)
	addr, err := netip.ParseAddr(c.Str(1, "IP address"))
	if err != nil {
		c.ArgError(1, "%q is not an IP address", c.Str(1, "IP address"))
	}
	o := c.options(2)
	timeout, limited := o.Seconds("timeout")
	if !limited {
		timeout = neighbourTimeout
	}
	mac, err := c.resolve(i.i, addr, uint16(o.Whole("vlan_id", 0, 0, 4095)), timeout)
	if err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LString(mac.String()))
}

// autoTunnels replaces "auto" in the tunnels of transmit flows: outer_eth_src by the interface's address, outer_eth_dst by the address resolved
// for the outer destination. Malformed values are left to the parser.
func (c *call) autoTunnels(n int, i *session.Interface, flows any) {
	list, _ := flows.([]any)
	for k, v := range list {
		flow, _ := v.(map[string]any)
		actions, _ := flow["actions"].([]any)
		if a, ok := flow["action"]; ok {
			actions = []any{a}
		}
		for at, v := range actions {
			a, _ := v.(map[string]any)
			t, ok := a["tunnel"].(map[string]any)
			if !ok {
				t = a
			}
			if err := c.autoTunnel(i, t, tagBehind(actions[at+1:])); err != nil {
				c.ArgError(n, "flows[%d]: %v", k, err)
			}
		}
	}
}

func (c *call) autoTunnel(i *session.Interface, t map[string]any, vlan uint16) error {
	if t["outer_eth_src"] == "auto" {
		mac, err := i.MAC()
		if err != nil {
			return fmt.Errorf("outer_eth_src: %w", err)
		}
		t["outer_eth_src"] = mac.String()
	}
	if t["outer_eth_dst"] != "auto" {
		return nil
	}
	text, ok := t["outer_ipv4_dst"].(string)
	if !ok {
		text, _ = t["outer_ipv6_dst"].(string)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("outer_eth_dst: \"auto\" is the one that has outer_ipv4_dst or outer_ipv6_dst: %q is not an IP address", text)
	}
	mac, err := c.resolve(i, addr, vlan, neighbourTimeout)
	if err != nil {
		return fmt.Errorf("outer_eth_dst: %w", err)
	}
	t["outer_eth_dst"] = mac.String()
	return nil
}

// tagBehind returns the VLAN id of the tag that the actions after a tunnel add to its frames; 0: none.
func tagBehind(actions []any) uint16 {
	for _, v := range actions {
		a, _ := v.(map[string]any)
		if tag, ok := a["vlan"].(map[string]any); ok {
			a = tag
		}
		if id, ok := a["vlan_id"].(float64); ok && id >= 0 && id <= 4095 {
			return uint16(id)
		}
	}
	return 0
}

// autoField resolves eth_src or eth_dst = "auto" of b:set on a transmit burst, and of a rewrite before a transmit queue: the interface's own
// address, or the one resolved for the ipv4_dst or ipv6_dst in the same table.
func (c *call) autoField(q *session.Queue, name string, fields *lua.LTable) lua.LValue {
	if q.Rx() {
		c.ArgError(1, "field '%s': \"auto\" is for bursts of a transmit queue; the sender of a received burst isn't known: "+
			"give the address (i.mac, i:resolve)", name)
	}
	if name == "eth_src" {
		mac, err := q.Interface().MAC()
		c.Check(err)
		return lua.LString(mac.String())
	}
	text := lua.LVAsString(fields.RawGetString("ipv4_dst"))
	addr, err := netip.ParseAddr(cmp.Or(text, lua.LVAsString(fields.RawGetString("ipv6_dst"))))
	if err != nil {
		c.ArgError(1, "field 'eth_dst': \"auto\" is the one that has the ipv4_dst or ipv6_dst beside it: give that, or i:resolve(address)")
	}
	vlan, _ := fields.RawGetString("vlan_id").(lua.LNumber)
	mac, err := c.resolve(q.Interface(), addr, uint16(vlan)&0xfff, neighbourTimeout)
	if err != nil {
		c.ArgError(1, "field 'eth_dst': %v", err)
	}
	return lua.LString(mac.String())
}
