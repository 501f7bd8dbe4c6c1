package spec

import (
	"fmt"
	"net/netip"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Flow is a rule: matching packets get the actions in order. On receive the last action selects the queues; on transmit all actions are transforms.
type Flow struct {
	Source  `json:"-"`
	Name    string    `json:"name"`
	ID      uint32    `json:"id"`
	Match   Match     `json:"match"`
	Actions []*Action `json:"actions"`
}

// QueueIDs returns the destination queues of the flow; more than one means RSS.
func (f *Flow) QueueIDs() []int {
	for _, a := range f.Actions {
		if a.Type == schema.ActionQueue {
			return a.Queues
		}
	}
	return nil
}

// Transforms returns the actions that change packets, in order.
func (f *Flow) Transforms() []*Action {
	var list []*Action
	for _, a := range f.Actions {
		if a.Type != schema.ActionQueue {
			list = append(list, a)
		}
	}
	return list
}

// Match holds the criteria of a flow, all of which must hold. An empty Match matches all packets.
type Match struct {
	Source    `json:"-"`
	UDPSrc    *PortRange     `json:"udp_src,omitempty"`
	UDPDst    *PortRange     `json:"udp_dst,omitempty"`
	IPv4Src   *netip.Prefix  `json:"ipv4_src,omitempty"`
	IPv4Dst   *netip.Prefix  `json:"ipv4_dst,omitempty"`
	IPv4Len   *uint16        `json:"ipv4_len,omitempty"` // total length field of the IPv4 header
	IPv6Src   *netip.Prefix  `json:"ipv6_src,omitempty"`
	IPv6Dst   *netip.Prefix  `json:"ipv6_dst,omitempty"`
	TCPSrc    *PortRange     `json:"tcp_src,omitempty"`
	TCPDst    *PortRange     `json:"tcp_dst,omitempty"`
	VLANID    *uint16        `json:"vlan_id,omitempty"`   // of the outermost tag
	EtherType *uint16        `json:"ethertype,omitempty"` // after the tags
	Ethernet  *EthernetMatch `json:"ethernet,omitempty"`
	Flex      *FlexMatch     `json:"flex,omitempty"`
	ECPRI     *ECPRIMatch    `json:"ecpri,omitempty"`
}

// ip4 and ip6 report whether an IPv4 or IPv6 criterion is set, udp and tcp whether a port criterion is.
func (m *Match) ip4() bool { return m.IPv4Src != nil || m.IPv4Dst != nil || m.IPv4Len != nil }
func (m *Match) ip6() bool { return m.IPv6Src != nil || m.IPv6Dst != nil }
func (m *Match) udp() bool { return m.UDPSrc != nil || m.UDPDst != nil }
func (m *Match) tcp() bool { return m.TCPSrc != nil || m.TCPDst != nil }

// ipPorts reports whether a network or transport criterion is set.
func (m *Match) ipPorts() bool { return m.ip4() || m.ip6() || m.udp() || m.tcp() }

// PortRange is an inclusive range of UDP or TCP ports.
type PortRange struct {
	First, Last uint16
}

// String returns "4096" or "1000-1010".
func (r PortRange) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// MarshalText returns the text form, for inspect.
func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MAC is an Ethernet address.
type MAC [6]byte

// String returns the address as "02:00:00:00:00:01".
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText returns the result of String, for inspect.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// EthernetMatch matches MAC addresses; nil matches any.
type EthernetMatch struct {
	Src *MAC `json:"src,omitempty"`
	Dst *MAC `json:"dst,omitempty"`
}

// FlexMatch matches the 32 bits sampled by a flex item: sample & Mask == Val & Mask.
type FlexMatch struct {
	ItemID int    `json:"flex_item_id"`
	Val    uint32 `json:"val"`
	Mask   uint32 `json:"mask"`
}

// ECPRIMatch matches eCPRI frames (EtherType 0xAEFE); nil matches any.
type ECPRIMatch struct {
	MsgType *uint8  `json:"msg_type,omitempty"`
	ID      *uint16 `json:"id,omitempty"` // pc_id or rtc_id
}

// FlexItem samples 32 bits of the UDP payload of packets to one port.
type FlexItem struct {
	Source     `json:"-"`
	Name       string `json:"name"`
	ID         int    `json:"id"`
	Offset     int    `json:"offset"` // bytes after the UDP header, a multiple of 4
	UDPDstPort int    `json:"udp_dst_port"`
}

// Action is one action of a flow. Queues, VLAN and Tunnel are set for the corresponding types only.
type Action struct {
	Source `json:"-"`
	Type   string  `json:"type"`
	Queues []int   `json:"queues,omitempty"`
	VLAN   *VLAN   `json:"vlan,omitempty"`
	Tunnel *Tunnel `json:"tunnel,omitempty"`

	queueAt []Source // positions of the entries of Queues
}

// VLAN is the tag that vlan_push adds.
type VLAN struct {
	ID        uint16 `json:"vlan_id"`
	PCP       uint8  `json:"pcp"`
	DEI       uint8  `json:"dei"`
	EtherType uint16 `json:"ethertype"`
}

// Tunnel is the outer header that tunnel_encap adds and tunnel_decap removes.
type Tunnel struct {
	Source      `json:"-"`
	Type        string     `json:"type"` // vxlan, gre or nvgre
	EthSrc      MAC        `json:"outer_eth_src"`
	EthDst      MAC        `json:"outer_eth_dst"`
	IPv4Src     netip.Addr `json:"outer_ipv4_src,omitzero"`
	IPv4Dst     netip.Addr `json:"outer_ipv4_dst,omitzero"`
	TTL         uint8      `json:"outer_ipv4_ttl,omitempty"`
	TOS         uint8      `json:"outer_ipv4_tos,omitempty"`
	IPv6Src     netip.Addr `json:"outer_ipv6_src,omitzero"` // instead of IPv4 (an extension, as are the next three)
	IPv6Dst     netip.Addr `json:"outer_ipv6_dst,omitzero"`
	HopLimit    uint8      `json:"outer_ipv6_hop_limit,omitempty"`
	Class       uint8      `json:"outer_ipv6_traffic_class,omitempty"`
	UDPSrc      uint16     `json:"outer_udp_src,omitempty"` // vxlan; 0: the engine chooses
	UDPDst      uint16     `json:"outer_udp_dst,omitempty"` // vxlan
	VNI         uint32     `json:"vni,omitempty"`           // vxlan, 24 bits
	GREProtocol uint16     `json:"gre_protocol,omitempty"`  // gre
	TNI         uint32     `json:"tni,omitempty"`           // nvgre, 24 bits
	FlowID      uint8      `json:"flow_id,omitempty"`       // nvgre
}

// IPv6 reports whether the outer header is IPv6.
func (t *Tunnel) IPv6() bool { return t.IPv6Src.IsValid() }

// Reorder collects packets of some flows into batches in sequence order.
type Reorder struct {
	Source            `json:"-"`
	Name              string     `json:"name"`
	ReorderType       string     `json:"reorder_type"`   // gpu or cpu
	ReorderEngine     string     `json:"reorder_engine"` // sw or hw
	CyclicSequence    bool       `json:"cyclic_sequence"`
	MissingAction     string     `json:"missing_action"` // drop or passthrough
	MemoryRegion      string     `json:"memory_region"`
	PayloadByteOffset int        `json:"payload_byte_offset"`
	PayloadSegment    int        `json:"payload_segment,omitempty"` // segment with the payload, an index of the queues' memory_regions
	PacketSize        int        `json:"packet_size,omitempty"`     // payload bytes per slot, for hw
	FlowIDs           []uint32   `json:"flow_ids"`
	DataTypes         *DataTypes `json:"data_types,omitempty"`
	Method            string     `json:"method"`
	SequenceNumber    BitField   `json:"sequence_number"`
	BatchNumber       *BitField  `json:"batch_number,omitempty"` // seq_batch_number only
	PacketsPerBatch   int64      `json:"packets_per_batch"`      // derived for seq_batch_number

	flowAt []Source // positions of the entries of FlowIDs
}

// BitField is a big-endian field: bits are counted from the first bit of the packet, most significant bit first.
type BitField struct {
	Source    `json:"-"`
	BitOffset int `json:"bit_offset"`
	BitWidth  int `json:"bit_width"`
}

// DataTypes describes the conversion of payload elements.
type DataTypes struct {
	InputType  string `json:"input_type"`
	OutputType string `json:"output_type"`
	Endianness string `json:"endianness"` // of the input: host or network
}
