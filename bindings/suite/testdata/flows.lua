-- flows, multicast, drop_all_traffic, and pipes between two ports.
local daqiri, t = require "daqiri", require "check"
local s = daqiri.open{
  version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = daqiri.args{ clock = "real" }.clock },
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 8192, buf_size = 2048 } },
  interfaces = {
    { name = "a", address = "wire0",
      rx = { queues = { { name = "q0", id = 0, poll_mode = "direct", memory_regions = { "m" } } } },
      tx = { queues = { { name = "t0", id = 0, poll_mode = "direct", memory_regions = { "m" } } } } },
    { name = "b", address = "wire1",
      rx = { flow_isolation = true, flex_items = { { name = "word", id = 4, offset = 0, udp_dst_port = 7009 } }, queues = {
        { name = "q0", id = 0, poll_mode = "direct", memory_regions = { "m" } },
        { name = "q1", id = 1, poll_mode = "direct", memory_regions = { "m" } } } },
      tx = { queues = { { name = "t0", id = 0, poll_mode = "direct", memory_regions = { "m" } } } } },
  },
}
local a, b = s:interface("a"), s:interface("b")
local tx, q0, q1 = s:tx_queue("a"), s:rx_queue("b", 0), s:rx_queue("b", 1)
t.raises("interface b has 2 such queues", function() s:rx_queue("b") end)
s:start()
q0:get_burst{ timeout_us = 0 }
q1:get_burst{ timeout_us = 0 }

local function match(port) return { match = { udp_dst = port }, action = { type = "queue", id = port % 2 } } end
local ids = assert(b:add_flows("even", { match(7000), match(7002) }))
t.equal(#ids, 2)
assert(b:add_flows("odd", { { name = "one", match = { udp_dst = 7001 }, action = { type = "queue", id = 1 } } }))
local list = b:flows()
t.equal(#list, 3)
t.equal(list[3].name, "one")
t.equal(list[3].group, "odd")
t.equal(list[3].queues, { 1 })
t.equal(list[3].match, { udp_dst = "7001" })
t.equal(list[3].actions, { { type = "queue", ids = { 1 } } })
local elsewhere = assert(a:add_flows("even", { { match = {}, action = { type = "queue", id = 0 } } }))
assert(elsewhere[1] > list[3].id, "no two interfaces give the same id out")

t.send(tx, 4, { payload_bytes = 10, udp_dst = 7001 })
local got = t.receive(q1, 4)[1]
t.equal(got:flow_ids()[1], list[3].id)
got:free()
list = b:flows()
t.equal({ list[1].packets, list[3].packets, list[3].bytes }, { 0, 4, 4 * 52 })
t.equal(b:delete_flows("odd"), 1)
t.equal(b:delete_flows(ids[1]), 1)
local n, status, why = b:delete_flows("odd")
t.equal(n, nil)
t.equal(status, "INVALID_PARAMETER")
assert(why:find("odd"))
assert(b:replace_flows("even", { match(7004) }))
t.equal(#b:flows(), 1)

-- what is listed may be added again
assert(b:replace_flows("even", {
  { name = "macs", match = { ethernet = { src = "02:00:00:00:00:01" }, ipv6_dst = "fd00::/64", tcp_src = "1-9" }, action = { type = "queue", ids = { 0, 1 } } },
  { name = "flex", match = { flex_item_id = 4, val = 0x10, mask = 0xf0 }, actions = { { type = "vlan_pop" }, { type = "queue", id = 1 } } },
  { name = "ecpri", match = { ecpri = { msg_type = 0, pc_id = 7 } }, action = { type = "queue", ids = { 1, 0 } } },
  { name = "tunnel", match = { ipv4_dst = "10.0.0.1" }, actions = { { type = "tunnel_decap", tunnel = { type = "vxlan", vni = 0,
    outer_eth_src = "02:00:00:00:00:01", outer_eth_dst = "02:00:00:00:00:02", outer_ipv4_src = "10.0.0.2", outer_ipv4_dst = "10.0.0.1" } },
    { type = "queue", id = 0 } } },
}))
local before, again = b:flows(), {}
for k, f in ipairs(before) do again[k] = { name = f.name, match = f.match, actions = f.actions } end
assert(b:replace_flows("even", again))
for k, f in ipairs(b:flows()) do
  t.equal({ f.name, f.match, f.actions, f.queues }, { before[k].name, before[k].match, before[k].actions, before[k].queues })
end
t.equal(#before, 4)
assert(b:replace_flows("even", { match(7004) }))

-- transmit flows come and go, too
local vxlan = { type = "tunnel_encap", tunnel = { type = "vxlan", vni = 5, outer_eth_src = "02:00:00:00:00:01",
  outer_eth_dst = "02:00:00:00:00:02", outer_ipv4_src = "10.0.0.1", outer_ipv4_dst = "10.0.0.2" } }
local out = assert(a:add_tx_flows("out", { { name = "push", match = { udp_dst = 7004 }, action = { type = "vlan_push", vlan_id = 9 } },
  { match = { udp_dst = 7006 }, actions = { vxlan } } }))
t.equal({ #out, #a:tx_flows(), a:tx_flows()[1].name, a:tx_flows()[1].actions[1].vlan.vlan_id }, { 2, 2, "push", 9 })
local listed = {}
for k, f in ipairs(a:tx_flows()) do listed[k] = { name = f.name, match = f.match, actions = f.actions } end
assert(a:replace_tx_flows("out", listed))
local function pushed(want)
  t.send(tx, 2, { payload_bytes = 18, udp_dst = 7004 })
  local one = t.receive(q0, 2)[1]
  t.equal({ one:lengths()[1], one:packet(1):u16(12) }, want)
  one:free()
end
pushed{ 64, 0x8100 }
t.equal(#assert(a:replace_tx_flows("out", { { match = { udp_dst = 1 }, action = { type = "vlan_push", vlan_id = 9 } } })), 1)
pushed{ 60, 0x0800 }
t.equal(a:delete_tx_flows("out"), 1)
t.equal((select(2, a:delete_tx_flows(out[1]))), "INVALID_PARAMETER")
t.raises("bad argument #2 to 'add_tx_flows' (flows[0].action", function()
  a:add_tx_flows("x", { { match = {}, action = { type = "queue", id = 0 } } })
end)
local deep = { match = {}, actions = { vxlan, vxlan, vxlan } }
local none, code, reason = a:add_tx_flows("x", { { match = {}, action = { type = "vlan_push", vlan_id = 1 } }, deep })
t.equal({ none, code, #a:tx_flows() }, { nil, "INVALID_PARAMETER", 0 })
assert(reason:find("at most 128 are possible", 1, true), reason)

-- flows that change packets
local tagged = assert(b:add_flows("tags", { { name = "seven", match = { vlan_id = 7, udp_dst = 7005 }, actions = { { type = "vlan_pop" },
  { type = "queue", id = 1 } } } }))
t.send(tx, 2, { payload_bytes = 18, udp_dst = 7005, vlan_id = 7 })
got = t.receive(q1, 2)[1]
t.equal({ got:flow_ids()[1], got:lengths()[1], got:packet(1):u16(12) }, { tagged[1], 60, 0x0800 })
got:free()
assert(b:replace_flows("tags", { { name = "word", match = { flex_item_id = 4, val = 0, mask = 0 }, actions = { { type = "vlan_pop" },
  { type = "queue", id = 1 } } } }))
t.send(tx, 2, { payload_bytes = 18, udp_dst = 7009, vlan_id = 7 })
got = t.receive(q1, 2)[1]
t.equal({ got:lengths()[1], got:packet(1):u16(12) }, { 60, 0x0800 })
got:free()
t.raises("flows[0].actions[0].type: vlan_push belongs to a transmit flow", function()
  b:add_flows("x", { { match = {}, actions = { { type = "vlan_push", vlan_id = 1 }, { type = "queue", id = 0 } } } })
end)
t.equal(b:delete_flows("tags"), 1)
t.raises("bad argument #2 to 'add_flows' (flows[0].match.udp_dts: unknown key", function()
  b:add_flows("x", { { match = { udp_dts = 1 }, action = { type = "queue", id = 0 } } })
end)
t.raises("the session gives dynamic flows their ids", function()
  b:add_flows("x", { { id = 4, match = {}, action = { type = "queue", id = 0 } } })
end)
t.raises("flows[0].action.id", function() b:add_flows("x", { { match = {}, action = { type = "queue", id = 9 } } }) end)

-- drop and allow
assert(b:drop_all_traffic())
t.send(tx, 2, { payload_bytes = 10, udp_dst = 7004 })
t.equal(q0:get_burst{ timeout_us = 1000 }, nil)
assert(b:allow_all_traffic())
t.send(tx, 2, { payload_bytes = 10, udp_dst = 7004 })
t.receive(q0, 2)[1]:free()

-- a pipe that ends in a transmit queue
s:pipe(q0, s:tx_queue("b"))
t.send(tx, 3, { payload_bytes = 10, udp_dst = 7004 })
t.receive(s:rx_queue("a"), 3)[1]:free()

-- groups
t.raises("is not a multicast group", function() b:join_multicast{ groups = "10.0.0.1" } end)
t.raises("option 'groups' is missing", function() b:leave_multicast{} end)
t.raises("leave the option out", function() b:join_multicast{ groups = "239.0.0.1", queues = { q0 } } end)
local joined, code = b:join_multicast{ groups = { "239.2.0.64+3:7148", { ip = "239.9.0.1", port = 7148 } }, queues = { q0, q1 } }
assert(joined == 5, code)
t.equal(b:leave_multicast{ groups = "239.2.0.64+3" }, 4)

-- answers for addresses
t.raises('"10.0.0" is no', function() b:answer{ addresses = "10.0.0" } end)
t.raises("text or a list expected", function() b:answer{ addresses = 7 } end)
t.raises("option 'addresses' is missing", function() b:answer{} end)

-- resolving addresses
b:answer{ addresses = { "10.0.0.7", "fd00::7" } }
local received = s:rx_queue("a", 0)
received:get_burst{ timeout_us = 0 }
t.equal({ a:resolve("10.0.0.7"), a:resolve("fd00::7"), a:resolve("10.0.0.7", { vlan_id = 12 }) }, { b.mac, b.mac, b.mac })
local one = tx:alloc(1)
one:fill(tx:template{ eth_dst = "auto", eth_src = "auto", ipv6_dst = "fd00::7", payload_bytes = 10 })
t.equal({ one:column("eth_dst"):text(1), one:column("eth_src"):text(1) }, { b.mac, a.mac })
one:fill(tx:template{ payload_bytes = 10 })
t.equal({ one:column("eth_dst"):text(1), one:column("eth_src"):text(1) }, { "ff:ff:ff:ff:ff:ff", a.mac })
one:set{ eth_src = "02:00:00:00:00:09" }
one:set{ ipv4_dst = "10.0.0.7", eth_dst = "auto", eth_src = "auto" }
t.equal({ one:column("eth_dst"):text(1), one:column("eth_src"):text(1) }, { b.mac, a.mac })
t.raises("field 'eth_dst': \"auto\" is the one that has the ipv4_dst", function() one:set{ eth_dst = "auto" } end)
one:free()
vxlan.tunnel.outer_eth_src, vxlan.tunnel.outer_eth_dst, vxlan.tunnel.outer_ipv4_dst = "auto", "auto", "10.0.0.7"
assert(a:add_tx_flows("auto", { { match = { udp_dst = 7006 }, actions = { vxlan, { type = "vlan_push", vlan_id = 12 } } } }))
t.equal(a:tx_flows()[1].actions[1].tunnel.outer_eth_dst, b.mac)
t.raises("give one of them, or the Ethernet address", function() tx:template{ eth_dst = "auto", payload_bytes = 1 } end)
assert(select(3, a:resolve("239.0.0.1")):find("239.0.0.1 is not a host's address", 1, true))
if daqiri.args{ clock = "real" }.clock == "virtual" then -- it takes three seconds
  t.raises("no answer for 10.0.0.8 in VLAN 5 on interface a", function()
    tx:template{ eth_dst = "auto", ipv4_dst = "10.0.0.8", vlan_id = 5, payload_bytes = 1 }
  end)
end

local sum = s:stop()
assert(sum.b.tx.answered >= 10) -- reports of the groups, joined and left
t.equal(sum.b.tx.packets, 3 + sum.b.tx.answered)
t.equal(sum.a.wire.dropped_by.drop_all, 2)
