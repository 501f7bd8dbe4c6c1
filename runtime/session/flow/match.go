package flow

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// NativeMatch returns the engine's form of a match. items are the flex items that it may refer to.
func NativeMatch(m *spec.Match, items []spec.FlexItem) (native.Match, error) {
	var out native.Match
	if m.UDPSrc != nil {
		out.Set |= native.MatchUDPSrc
		out.UDPSrc = native.PortRange{Lo: m.UDPSrc.First, Hi: m.UDPSrc.Last}
	}
	if m.UDPDst != nil {
		out.Set |= native.MatchUDPDst
		out.UDPDst = native.PortRange{Lo: m.UDPDst.First, Hi: m.UDPDst.Last}
	}
	matchTCP(m, &out)
	if m.IPv4Src != nil {
		out.Set |= native.MatchIPv4Src
		out.IPv4Src, out.IPv4SrcMask = ipv4(*m.IPv4Src)
	}
	if m.IPv4Dst != nil {
		out.Set |= native.MatchIPv4Dst
		out.IPv4Dst, out.IPv4DstMask = ipv4(*m.IPv4Dst)
	}
	if m.IPv4Len != nil {
		out.Set |= native.MatchIPv4Len
		out.IPv4Len = *m.IPv4Len
	}
	matchIPv6(m, &out)
	matchLink(m, &out)
	matchEthernet(m.Ethernet, &out)
	matchECPRI(m.ECPRI, &out)
	return out, matchFlex(m.Flex, items, &out)
}

// ipv4 returns a prefix as address and mask in host byte order.
func ipv4(p netip.Prefix) (addr, mask uint32) {
	a := p.Masked().Addr().As4()
	return binary.BigEndian.Uint32(a[:]), uint32(uint64(0xffffffff) << (32 - p.Bits()))
}

func matchTCP(m *spec.Match, out *native.Match) {
	if m.TCPSrc != nil {
		out.Set |= native.MatchTCPSrc
		out.TCPSrc = native.PortRange{Lo: m.TCPSrc.First, Hi: m.TCPSrc.Last}
	}
	if m.TCPDst != nil {
		out.Set |= native.MatchTCPDst
		out.TCPDst = native.PortRange{Lo: m.TCPDst.First, Hi: m.TCPDst.Last}
	}
}

func matchIPv6(m *spec.Match, out *native.Match) {
	if m.IPv6Src != nil {
		out.Set |= native.MatchIPv6Src
		out.IPv6Src, out.IPv6SrcPrefix = m.IPv6Src.Addr().As16(), uint8(m.IPv6Src.Bits())
	}
	if m.IPv6Dst != nil {
		out.Set |= native.MatchIPv6Dst
		out.IPv6Dst, out.IPv6DstPrefix = m.IPv6Dst.Addr().As16(), uint8(m.IPv6Dst.Bits())
	}
}

// matchLink sets the link-layer criteria except addresses.
func matchLink(m *spec.Match, out *native.Match) {
	if m.VLANID != nil {
		out.Set |= native.MatchVLANID
		out.VLANID = *m.VLANID
	}
	if m.EtherType != nil {
		out.Set |= native.MatchEtherType
		out.EtherType = *m.EtherType
	}
}

func matchEthernet(m *spec.EthernetMatch, out *native.Match) {
	if m == nil {
		return
	}
	if m.Src != nil {
		out.Set |= native.MatchEthSrc
		out.EthSrc = *m.Src
	}
	if m.Dst != nil {
		out.Set |= native.MatchEthDst
		out.EthDst = *m.Dst
	}
}

func matchECPRI(m *spec.ECPRIMatch, out *native.Match) {
	if m == nil {
		return
	}
	out.Set |= native.MatchECPRI
	if m.MsgType != nil {
		out.Set |= native.MatchECPRIType
		out.ECPRIType = *m.MsgType
	}
	if m.ID != nil {
		out.Set |= native.MatchECPRIID
		out.ECPRIID = *m.ID
	}
}

func matchFlex(m *spec.FlexMatch, items []spec.FlexItem, out *native.Match) error {
	if m == nil {
		return nil
	}
	for _, it := range items {
		if it.ID == m.ItemID {
			out.Set |= native.MatchFlex
			out.FlexVal, out.FlexMask = m.Val, m.Mask
			out.FlexUDPDst, out.FlexOffset = uint16(it.UDPDstPort), uint16(it.Offset)
			return nil
		}
	}
	return fmt.Errorf("flex item %d: there is none with this id", m.ItemID)
}
