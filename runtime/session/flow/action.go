package flow

import (
	"encoding/binary"
	"net/netip"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

var tunnelKinds = map[string]native.TunnelKind{
	schema.TunnelVXLAN: native.TunnelVXLAN,
	schema.TunnelGRE:   native.TunnelGRE,
	schema.TunnelNVGRE: native.TunnelNVGRE,
}

// nativeActions returns the engine's form of a flow's transforms.
func nativeActions(actions []*spec.Action) []native.Action {
	var out []native.Action
	for _, a := range actions {
		x := native.Action{}
		if a.Tunnel != nil {
			x = tunnelAction(a.Tunnel)
		}
		if v := a.VLAN; v != nil {
			x.TPID, x.TCI = v.EtherType, uint16(v.PCP)<<13|uint16(v.DEI)<<12|v.ID
		}
		x.Kind = native.ActionNamed(a.Type)
		out = append(out, x)
	}
	return out
}

func tunnelAction(t *spec.Tunnel) native.Action {
	a := native.Action{
		Tunnel:   tunnelKinds[t.Type],
		ID:       max(t.VNI, t.TNI), // at most one of them is set
		UDPSrc:   t.UDPSrc,
		UDPDst:   t.UDPDst,
		Protocol: t.GREProtocol,
		EthSrc:   t.EthSrc,
		EthDst:   t.EthDst,
		FlowID:   t.FlowID,
	}
	if a.IPv6 = t.IPv6(); a.IPv6 {
		a.TTL, a.TOS = t.HopLimit, t.Class
		a.IPv6Src, a.IPv6Dst = t.IPv6Src.As16(), t.IPv6Dst.As16()
	} else {
		a.TTL, a.TOS = t.TTL, t.TOS
		a.IPv4Src, a.IPv4Dst = address4(t.IPv4Src), address4(t.IPv4Dst)
	}
	return a
}

// address4 returns an IPv4 address in host byte order.
func address4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}
