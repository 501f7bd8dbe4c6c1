package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// MatchSet selects the members of a Match in use; an empty set matches every packet.
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
	Order   uint64 // lower has priority; if equal, the earlier one
	NQueues uint16
	RSS     uint16 // 1: distribute over the queues by Toeplitz hash
	Queues  [C.DQ_RULE_MAX_QUEUES]uint16

	nActions    uint16
	firstAction uint32
}

// MaxActions is the maximum number of actions of a rule.
const MaxActions = C.DQ_RULE_MAX_ACTIONS

// ActionKind is the kind of an action on frames.
type ActionKind uint8

// TunnelKind is the kind of tunnel that an action encapsulates or decapsulates.
type TunnelKind uint8

func (k ActionKind) String() string { return C.GoString(C.dq_action_name(C.int(k))) }

// ActionNamed returns the action with that configuration name; it panics if there is none.
func ActionNamed(name string) ActionKind {
	for k := range ActionKind(C.DQ_ACTS) {
		if k.String() == name {
			return k
		}
	}
	panic("native: no action is called " + name)
}

// Kinds of tunnel.
const (
	TunnelVXLAN TunnelKind = C.DQ_TUNNEL_VXLAN
	TunnelGRE   TunnelKind = C.DQ_TUNNEL_GRE
	TunnelNVGRE TunnelKind = C.DQ_TUNNEL_NVGRE
)

// Action is one change that a rule makes to the frames that match. It mirrors dq_action.
type Action struct {
	Kind             ActionKind
	Tunnel           TunnelKind
	TTL, TOS         uint8
	TPID, TCI        uint16 // VLAN
	IPv4Src, IPv4Dst uint32
	ID               uint32 // VNI or TNI
	UDPSrc, UDPDst   uint16 // VXLAN; source 0: a hash of the inner frame
	Protocol         uint16 // GRE: EtherType of the payload
	EthSrc, EthDst   [6]byte
	FlowID           uint8 // NVGRE
	IPv6             bool  // outer header is IPv6 instead of IPv4
	IPv6Src, IPv6Dst [16]byte
}

// ActedRule is a rule with its actions, which are applied before its queues.
type ActedRule struct {
	Rule
	Actions []Action
}

var _ = [1]struct{}{}[unsafe.Sizeof(Match{})-C.sizeof_dq_match]
var _ = [1]struct{}{}[unsafe.Offsetof(Match{}.EthSrc)-unsafe.Offsetof(C.dq_match{}.eth_src)]
var _ = [1]struct{}{}[unsafe.Offsetof(Match{}.ECPRIType)-unsafe.Offsetof(C.dq_match{}.ecpri_type)]
var _ = [1]struct{}{}[unsafe.Sizeof(Rule{})-C.sizeof_dq_rule]
var _ = [1]struct{}{}[unsafe.Offsetof(Rule{}.Order)-unsafe.Offsetof(C.dq_rule{}.order)]
var _ = [1]struct{}{}[unsafe.Offsetof(Rule{}.Queues)-unsafe.Offsetof(C.dq_rule{}.queues)]
var _ = [1]struct{}{}[unsafe.Offsetof(Rule{}.firstAction)-unsafe.Offsetof(C.dq_rule{}.first_action)]
var _ = [1]struct{}{}[unsafe.Sizeof(Action{})-C.sizeof_dq_action]
var _ = [1]struct{}{}[unsafe.Offsetof(Action{}.ID)-unsafe.Offsetof(C.dq_action{}.id)]
var _ = [1]struct{}{}[unsafe.Offsetof(Action{}.FlowID)-unsafe.Offsetof(C.dq_action{}.flow_id)]
var _ = [1]struct{}{}[unsafe.Offsetof(Action{}.IPv6Dst)-unsafe.Offsetof(C.dq_action{}.ipv6_dst)]

// flat separates rules and actions into the two arrays that C uses.
func flat(acted []ActedRule) (rules []Rule, actions []Action) {
	rules = make([]Rule, len(acted))
	for k, a := range acted {
		rules[k] = a.Rule
		rules[k].nActions, rules[k].firstAction = uint16(len(a.Actions)), uint32(len(actions))
		actions = append(actions, a.Actions...)
	}
	return rules, actions
}

// ChangeRules removes the rules with the orders in gone and adds others, atomically and between two bursts. Each rule needs a
// distinct order, and one with actions a distinct flow id. The cost hardly depends on the number of rules without actions.
// ErrNotSupported on engines without flows.
func (i Iface) ChangeRules(gone []uint64, add []ActedRule) error {
	var d C.dq_diag
	rules, actions := flat(add)
	rc := C.dq_iface_change_rules(i.c, (*C.uint64_t)(unsafe.Pointer(first(gone))), C.uint32_t(len(gone)),
		(*C.dq_rule)(unsafe.Pointer(first(rules))), C.uint32_t(len(rules)),
		(*C.dq_action)(unsafe.Pointer(first(actions))), &d)
	return result("flows", rc, &d)
}

// SetTxRules replaces the interface's transmit rules, atomically and between two bursts: the first rule that a frame matches is
// applied before it is sent.
func (i Iface) SetTxRules(add []ActedRule) error {
	var d C.dq_diag
	rules, actions := flat(add)
	rc := C.dq_iface_set_tx_rules(i.c, (*C.dq_rule)(unsafe.Pointer(first(rules))), C.uint32_t(len(rules)),
		(*C.dq_action)(unsafe.Pointer(first(actions))), &d)
	return result("transmit flows", rc, &d)
}
