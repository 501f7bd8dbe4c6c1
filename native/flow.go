package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// MatchSet says which members of a Match count; none set matches every packet.
type MatchSet uint32

// Members of a Match.
const (
	MatchEthSrc    MatchSet = C.DQ_MATCH_ETH_SRC
	MatchEthDst    MatchSet = C.DQ_MATCH_ETH_DST
	MatchEtherType MatchSet = C.DQ_MATCH_ETHERTYPE
	MatchVLANID    MatchSet = C.DQ_MATCH_VLAN_ID
	MatchIPProto   MatchSet = C.DQ_MATCH_IP_PROTO
	MatchIPv4Src   MatchSet = C.DQ_MATCH_IPV4_SRC
	MatchIPv4Dst   MatchSet = C.DQ_MATCH_IPV4_DST
	MatchIPv4Len   MatchSet = C.DQ_MATCH_IPV4_LEN
	MatchIPv6Src   MatchSet = C.DQ_MATCH_IPV6_SRC
	MatchIPv6Dst   MatchSet = C.DQ_MATCH_IPV6_DST
	MatchUDPSrc    MatchSet = C.DQ_MATCH_UDP_SRC
	MatchUDPDst    MatchSet = C.DQ_MATCH_UDP_DST
	MatchTCPSrc    MatchSet = C.DQ_MATCH_TCP_SRC
	MatchTCPDst    MatchSet = C.DQ_MATCH_TCP_DST
	MatchFlex      MatchSet = C.DQ_MATCH_FLEX
	MatchECPRI     MatchSet = C.DQ_MATCH_ECPRI
	MatchECPRIType MatchSet = C.DQ_MATCH_ECPRI_TYPE
	MatchECPRIID   MatchSet = C.DQ_MATCH_ECPRI_ID
)

// PortRange is a range of ports, both ends included.
type PortRange struct{ Lo, Hi uint16 }

// Match holds the criteria of a rule; all that are set must hold. It mirrors dq_match.
type Match struct {
	Set                            MatchSet
	IPv4Src, IPv4SrcMask           uint32
	IPv4Dst, IPv4DstMask           uint32
	FlexVal, FlexMask              uint32
	FlexUDPDst, FlexOffset         uint16
	EtherType, VLANID              uint16
	IPv4Len, ECPRIID               uint16
	UDPSrc, UDPDst, TCPSrc, TCPDst PortRange
	EthSrc, EthDst                 [6]byte
	IPv6Src, IPv6Dst               [16]byte
	IPv6SrcPrefix, IPv6DstPrefix   uint8
	IPProto, ECPRIType             uint8
}

// Rule steers the packets that match to queues. It mirrors dq_rule.
type Rule struct {
	Match   Match
	FlowID  uint32
	Order   uint64 // lower is asked first; equal: the earlier one
	NQueues uint16
	RSS     uint16 // 1: spread over the queues by Toeplitz hash
	Queues  [C.DQ_RULE_MAX_QUEUES]uint16
}

var _ = [1]struct{}{}[unsafe.Sizeof(Match{})-C.sizeof_dq_match]
var _ = [1]struct{}{}[unsafe.Offsetof(Match{}.EthSrc)-unsafe.Offsetof(C.dq_match{}.eth_src)]
var _ = [1]struct{}{}[unsafe.Offsetof(Match{}.ECPRIType)-unsafe.Offsetof(C.dq_match{}.ecpri_type)]
var _ = [1]struct{}{}[unsafe.Sizeof(Rule{})-C.sizeof_dq_rule]
var _ = [1]struct{}{}[unsafe.Offsetof(Rule{}.Order)-unsafe.Offsetof(C.dq_rule{}.order)]
var _ = [1]struct{}{}[unsafe.Offsetof(Rule{}.Queues)-unsafe.Offsetof(C.dq_rule{}.queues)]

// SetRules replaces the interface's receive rules as a whole, between two bursts. Without
// any rules everything goes to the first queue. ErrNotSupported on engines without flows.
func (i Iface) SetRules(rules []Rule) error {
	var d C.dq_diag
	rc := C.dq_iface_set_rules(i.c, (*C.dq_rule)(unsafe.Pointer(first(rules))), C.uint32_t(len(rules)), &d)
	return result("flows", rc, &d)
}

// ChangeRules takes out the rules with the orders gone and adds others, between two bursts:
// all of it or nothing. Each rule needs an order of its own. The cost hardly depends on how
// many rules there are.
func (i Iface) ChangeRules(gone []uint64, add []Rule) error {
	var d C.dq_diag
	rc := C.dq_iface_change_rules(i.c, (*C.uint64_t)(unsafe.Pointer(first(gone))), C.uint32_t(len(gone)),
		(*C.dq_rule)(unsafe.Pointer(first(add))), C.uint32_t(len(add)), &d)
	return result("flows", rc, &d)
}
