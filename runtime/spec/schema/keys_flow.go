package schema

const (
	max24      = 1<<24 - 1
	MaxActions = 7
)

// flowKeys returns the keys of a flow with actions of the given section.
func flowKeys(action *Section, ids string) []Key {
	return []Key{
		{Name: "name", Type: TypeFilled, Required: true, Words: "What the ledger calls it: one flow of the side each."},
		{Name: "id", Type: TypeInteger, Lo: 0, Hi: maxU32, Required: true, Words: ids},
		{Name: "match", Type: TypeMap, Map: matchSection, Words: "Which packets: those that meet all of its keys. Without keys, or absent, all packets."},
		{Name: "action", Type: TypeMap, Map: action, When: "without `actions`", Words: "What is done with them."},
		{Name: "actions", Type: TypeList, Items: TypeMap, Map: action, When: "without `action`", Words: "What is done with them, in order: 1 to 7 actions."},
	}
}

// RXFlowSection has the keys of rx.flows[].
var RXFlowSection = section("rx.flows[]", "A rule of what is received. Flows are asked in the order of the file, but that those which take headers off come first; the first that matches takes the packet.", []string{`
flows:
- name: board_3
  id: 3
  match: {udp_dst: 7148-7151, ipv4_src: 10.17.0.0/16}
  action: {type: queue, id: 0}
- name: tagged
  id: 4
  match: {}
  actions:
  - {type: vlan_pop}
  - {type: queue, ids: [0, 1]}
`}, flowKeys(RXActionSection, "The number that its packets carry (`b:flow_ids()`) and that reorder configs name: one receive flow each among all "+
	"interfaces, but for 0, which is none.")...)

var txFlowSection = section("tx.flows[]", "A rule of what is sent: the first flow in the order of the file that matches has its actions done.", []string{`
flows:
- name: tagged
  id: 1
  match: {udp_dst: 7000}
  actions:
  - {type: vlan_push, vlan_id: 100}
  - {type: vlan_push, vlan_id: 200}
- name: also_tagged
  id: 2
  action: {type: vlan_push, vlan_id: 300}
`}, flowKeys(TXActionSection, "Its number: one transmit flow each among all interfaces, but for 0.")...)

// actionType returns the key that selects the type of an action.
func actionType(words string, kinds ...string) Key {
	return Key{Name: "type", Type: TypeChoice, Choices: kinds, Required: true, Words: words}
}

// actions returns the section of the actions of one direction.
func actions(name, words string, variants ...*Section) *Section {
	var kinds []string
	for _, v := range variants {
		kinds = append(kinds, v.index["type"].Choices[0])
	}
	s := section(name, words, nil, actionType("What the action does.", kinds...))
	s.Variants = variants
	return s
}

var (
	RXActionSection = actions("rx.flows[].action", "A step of a receive flow. The last one is `queue`, and no other is.",
		queueActionSection, popActionSection, decapActionSection)
	TXActionSection = actions("tx.flows[].action", "A step of a transmit flow.", pushActionSection, encapActionSection)
)

var queueActionSection = section("type: queue", "The packets go to a queue.", []string{`
action: {type: queue, id: 0}
`, `
action: {type: queue, ids: [0, 1]}
`},
	actionType("To a queue.", ActionQueue),
	Key{Name: "id", Type: TypeInteger, Lo: 0, Hi: maxU16, When: "without `ids`", Words: "The queue."},
	Key{Name: "ids", Type: TypeList, Items: TypeInteger, Lo: 0, Hi: maxU16, When: "without `id`",
		Words: "Several queues: a hash of addresses and ports chooses, so that packets of one connection stay in one queue."},
)

var popActionSection = section("type: vlan_pop", "The outermost VLAN tag is taken off. The flow is for tagged frames, and its match is asked of the frame inside.", []string{`
actions:
- {type: vlan_pop}
- {type: queue, id: 0}
`}, actionType("Takes a tag off.", ActionVLANPop))

var decapActionSection = nested(ActionTunnelDecap, "Takes a tunnel off.", "A tunnel's outer headers are taken off. The flow is for frames with these headers, "+
	"and its match is asked of the frame inside.", []string{`
actions:
- type: tunnel_decap
  tunnel:
    type: vxlan
    outer_eth_src: "02:00:00:00:00:01"
    outer_eth_dst: "02:00:00:00:00:02"
    outer_ipv4_src: 192.0.2.1
    outer_ipv4_dst: 192.0.2.2
    vni: 7
- {type: queue, id: 0}
`, `
actions:
- type: tunnel_decap
  tunnel_type: gre
  outer_eth_src: "02:00:00:00:00:01"
  outer_eth_dst: "02:00:00:00:00:02"
  outer_ipv4_src: 192.0.2.1
  outer_ipv4_dst: 192.0.2.2
- {type: queue, id: 0}
`}, tunnelKey, tunnelTypeKey)

var encapActionSection = nested(ActionTunnelEncap, "Puts a tunnel on.", "A tunnel's outer headers are put in front.", []string{`
action:
  type: tunnel_encap
  tunnel:
    type: vxlan
    outer_eth_src: "02:00:00:00:00:01"
    outer_eth_dst: "02:00:00:00:00:02"
    outer_ipv4_src: 192.0.2.1
    outer_ipv4_dst: 192.0.2.2
    vni: 7
`, `
action:
  type: tunnel_encap
  tunnel_type: gre
  outer_eth_src: "02:00:00:00:00:01"
  outer_eth_dst: "02:00:00:00:00:02"
  outer_ipv4_src: 192.0.2.1
  outer_ipv4_dst: 192.0.2.2
`}, tunnelKey, tunnelTypeKey)

var pushActionSection = nested(ActionVLANPush, "Puts a tag on.", "A VLAN tag is put in front.", []string{`
action: {type: vlan_push, vlan: {vlan_id: 100}}
`}, Key{Name: "vlan", Type: TypeMap, Map: vlanSection, Words: "The tag. Its keys may stand beside `type` instead."})

var tunnelKey = Key{Name: "tunnel", Type: TypeMap, Map: tunnelSection,
	Words: "The outer headers. Its keys may stand beside `type` instead; `type` is then called `tunnel_type`."}

var tunnelTypeKey = Key{Name: "tunnel_type", Type: TypeChoice, Choices: tunnelTypes, Required: true, When: "without `tunnel`", Words: "The tunnel's `type` where its keys stand beside the action's."}

// nested returns the variant of an action whose keys are in a nested map, and its flat form, in which these keys are next to the action's, together
// with those of flat.
func nested(kind, does, words string, examples []string, in Key, flat ...Key) *Section {
	s := section("type: "+kind, words, examples, actionType(does, kind), in)
	s.Flat = section(s.Name, words, nil, append(s.Keys, flat...)...).with(in.Map)
	return s
}

var vlanSection = section("vlan", "The tag of `vlan_push`.", []string{`
action:
  type: vlan_push
  vlan: {vlan_id: 100, pcp: 3, dei: 0, ethertype: 0x88a8}
`},
	Key{Name: "vlan_id", Type: TypeInteger, Lo: 0, Hi: 4095, Required: true, Words: "The VLAN's number."},
	Key{Name: "pcp", Type: TypeInteger, Lo: 0, Hi: 7, Default: 0, Words: "The priority."},
	Key{Name: "dei", Type: TypeInteger, Lo: 0, Hi: 1, Default: 0, Words: "Whether the frame may be dropped first."},
	Key{Name: "ethertype", Type: TypeInteger, Lo: 1, Hi: maxU16, Default: 0x8100, Words: "The type of the tag, by default 0x8100; of an outer tag 0x88a8."},
)
