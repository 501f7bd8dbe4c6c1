-- Endpoints: bursts of payloads to named receivers.
local daqiri, api, t, rig = require "daqiri", require "daqiri.api", require "check", require "rig"
local ok, fails = rig.ok, rig.fails
local camera = { name = "camera", interface = "tx_port", dst_mac = "02:00:00:00:00:09", src_ipv4 = "10.0.0.1", dst_ipv4 = "10.0.0.2",
  src_port = 4096, dst_port = 5000, mtu = 142 }
local function with(changes)
  local c = {}
  for key, value in pairs(camera) do c[key] = value end
  for key, value in pairs(changes) do c[key] = value end
  return c
end
fails("NOT_READY", "daqiri_init", api.add_endpoint(camera))
fails("NOT_READY", "daqiri_init", api.get_endpoint_id("camera"))
fails("NOT_READY", "daqiri_init", api.delete_endpoint(1))
local function open() ok(api.daqiri_init(rig.config("raw", { rig.port("tx_port", "loop0", 1, 2), rig.port("rx_port", "loop1", 1, 1) },
  { loopback = "sw" }))) end
open()

-- adding, finding, refusals
fails("NULL_PTR", "nil", api.add_endpoint(nil))
fails("NULL_PTR", "nil", api.get_endpoint_id(nil))
for words, changes in pairs{ ["no name"] = { name = "" }, ["no interface eth9"] = { interface = "eth9" }, ["src_port: 0"] = { src_port = 0 },
  ["dst_port: 65536"] = { dst_port = 65536 }, ["mtu: 42"] = { mtu = 42 }, ["mtu: 65550"] = { mtu = 65550 },
  ["eth_dst"] = { dst_mac = "02:00:00:00:00" }, ["src_ipv4: 5"] = { src_ipv4 = 5 }, ["ipv4_dst"] = { dst_ipv4 = "10.0.0.256" } } do
  fails("INVALID_PARAMETER", words, api.add_endpoint(with(changes)))
end
local id = ok(api.add_endpoint(camera))
assert(id ~= api.INVALID_ENDPOINT_ID)
fails("INVALID_PARAMETER", "an endpoint camera already", api.add_endpoint(camera))
t.equal(ok(api.get_endpoint_id("camera")), id)
fails("INVALID_PARAMETER", "no endpoint other", api.get_endpoint_id("other"))
local n = ok(api.add_endpoint(with{ name = "n", interface = "loop0", mtu = 1514 })) -- by address

-- sending payloads; the burst stays the caller's after every refusal
local burst = rig.alloc(0, 1, 3)
for i = 0, 2 do
  ok(api.copy_buffer_to_packet(burst, i, ("%d"):rep(i + 1):format(i, i, i)))
  ok(api.set_packet_lengths(burst, i, { i + 1 }))
end
fails("INVALID_PARAMETER", "no endpoint 77", api.send_tx_burst(77, 1, burst))
fails("INVALID_PARAMETER", "not of port 0, queue 0", api.send_tx_burst(id, 0, burst))
fails("NULL_PTR", "nil", api.send_tx_burst(id, 1, nil))
ok(api.set_packet_lengths(burst, 2, { 101 }))
fails("INVALID_PARAMETER", "packet 2 has 101 bytes: endpoint camera takes 100", api.send_tx_burst(id, 1, burst))
ok(api.set_packet_lengths(burst, 2, { 100 }))
local real = burst[1].b -- replaced by one whose headers cannot be written
burst[1].b = setmetatable({ prepend = function() error("template: the packets lie in device memory", 0) end },
  { __index = function(_, name) return function(_, ...) return real[name](real, ...) end end })
fails("NOT_SUPPORTED", "device memory", api.send_tx_burst(id, 1, burst))
burst[1].b = real
t.equal({ api.get_num_packets(burst), api.get_packet_length(burst, 2) }, { 3, 100 }) -- kept, unchanged
ok(api.send_tx_burst(id, 1, burst))
t.raises("the burst was sent at endpoint.lua:", function() api.get_num_packets(burst) end)
local got = rig.poll(1, 0)
for i = 0, 2 do
  local len = ({ 1, 2, 100 })[i + 1]
  local p = api.get_packet_ptr(got, i)
  t.equal({ api.get_packet_length(got, i), p:u16(16), p:u16(38), p:u16(34), p:u16(36) }, { 42 + len, 28 + len, 8 + len, 4096, 5000 })
  t.equal({ p:u8(14), p:u16(20), p:u8(22), p:u8(23) }, { 0x45, 0x4000, 64, 17 }) -- DF, TTL, UDP
  t.equal({ daqiri.hex(p:bytes(0, 6)), p:bytes(42, i + 1) }, { "020000000009", ("%d"):format(i):rep(i + 1) })
  t.equal(daqiri.hex(p:bytes(6, 6)), daqiri.hex(api.format_eth_addr(ok(api.get_mac_addr(0)))))
  local ip, udp = p:u16(24), p:u16(40)
  p:set_u16(24, 0)
  p:set_u16(40, 0)
  got[1].b:checksums(i + 1)
  t.equal({ p:u16(24), p:u16(40) }, { ip, udp })
end
api.free_all_packets_and_burst_rx(got)

-- another segment count, a received burst, deletion, the limit
fails("INVALID_PARAMETER", "was received", (function()
  rig.send(0, 0, 1, 5000)
  local b = rig.poll(1, 0)
  local status, text = api.send_tx_burst(id, 1, b)
  api.free_all_packets_and_burst_rx(b)
  return status, text
end)())
ok(api.delete_endpoint("n"))
fails("INVALID_PARAMETER", "no endpoint " .. n, api.delete_endpoint(n))
for k = 2, 4096 do ok(api.add_endpoint(with{ name = "e" .. k })) end
fails("NO_SPACE_AVAILABLE", "4096", api.add_endpoint(with{ name = "last" }))
ok(api.delete_endpoint(id))
local new = ok(api.add_endpoint(camera))
assert(new ~= id)
api.shutdown()
open()
fails("INVALID_PARAMETER", "no endpoint", api.get_endpoint_id("camera"))
burst = rig.alloc(0, 0, 1)
fails("INVALID_PARAMETER", "no endpoint", api.send_tx_burst(new, 0, burst)) -- of the earlier session
api.free_tx_burst(burst)
api.shutdown()
